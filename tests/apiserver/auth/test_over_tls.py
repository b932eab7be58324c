"""The whole way in: a real listener, real certificates, and a made up kube-apiserver that knows tokens and permissions."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from apiserver.access import Access
from apiserver.auth.always_allow import HEALTH_PATHS, AlwaysAllowPaths, PrivilegedGroup
from apiserver.auth.authorities import Authorities
from apiserver.auth.authorization import Authorization
from apiserver.auth.bearer_token import BearerToken, TokenReviews
from apiserver.auth.client_certificate import ClientCertificate
from apiserver.auth.request_header import RequestHeader
from apiserver.auth.subject_access_review import SubjectAccessReviews
from apiserver.auth.trust import FrontProxies, Trust
from apiserver.certificates import Certificates
from apiserver.request import User
from tests.apiserver.auth.signing import Signed, authority
from tests.apiserver.cluster.fake_cluster import FakeCluster, fake_cluster
from tests.apiserver.running import Listening
from tests.apiserver.shell import shell
from tests.apiserver.status_assertions import assert_status
from tests.connector import Connector

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"
CLIENTS, PROXIES, UNKNOWN = authority("clients"), authority("proxies"), authority("unknown")
PROXY = PROXIES.sign("front-proxy-client")
ALICE = CLIENTS.sign("alice", "dev")
MASTERS = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
REASONS = {401: "Unauthorized", 403: "Forbidden", 500: "InternalError"}
TWICE = [("x-remote-user", "admin"), ("X-REMOTE-USER", "root"), ("X-Remote-Group", "system:masters"), ("x-remote-group", "system:masters")]
TOKEN = {"Authorization": "Bearer robot"}


async def rules(spec: dict[str, Any]) -> dict[str, Any]:
    """Know one token; let the robot, alice and bob read."""
    if "token" in spec:
        known = spec["token"] == "robot"
        return {"authenticated": known, **({"user": {"username": "robot"}} if known else {"error": "no such token"})}
    return {"allowed": spec["user"] in ("robot", "alice", "bob") and spec.get("resourceAttributes", {}).get("verb") == "list"}


@dataclass(slots=True)
class Server:
    listening: Listening
    trust: Trust
    cluster: FakeCluster
    folder: Path

    def tls(self, identity: Signed | None, *sent_along: Signed) -> ssl.SSLContext:
        context = self.listening.tls(None)
        if identity is not None:
            file = self.folder / f"{identity.certificate.serial_number}.pem"
            key = identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            chain = b"".join(link.certificate.public_bytes(Encoding.PEM) for link in (identity, *sent_along))
            file.write_bytes(key + chain)
            context.load_cert_chain(file)
        return context

    async def get(
        self, path: str, identity: Signed | None = None, headers: Any = None, *, sent_along: tuple[Signed, ...] = ()
    ) -> tuple[int, dict[str, Any]]:
        connector = Connector(ssl=self.tls(identity, *sent_along))
        async with (
            aiohttp.ClientSession(self.listening.url, connector=connector) as session,
            session.get(path, headers=headers) as response,
        ):
            if response.status >= 400:
                await assert_status(
                    response, response.status, {401: "Unauthorized", 403: "Forbidden", 500: "InternalError"}[response.status]
                )
            return response.status, await response.json()


def access_to(trust: Trust, core: Any, *, anonymous: bool = True) -> Access:
    authorization = Authorization((PrivilegedGroup(), AlwaysAllowPaths(HEALTH_PATHS), SubjectAccessReviews(core)))
    user = User("system:anonymous", groups=("system:unauthenticated",)) if anonymous else None
    return Access(trust, (RequestHeader(trust), ClientCertificate(trust), BearerToken(TokenReviews(core))), authorization, user)


@pytest.fixture
def trust() -> Trust:
    proxies = FrontProxies(Authorities((PROXIES.certificate,)), ("front-proxy-client",))
    return Trust(Authorities((CLIENTS.certificate,)), proxies)


@pytest.fixture
async def server(pki: Certificates, trust: Trust, tmp_path: Path) -> AsyncIterator[Server]:
    cluster = FakeCluster(rules)
    async with fake_cluster(cluster) as core, shell(pki, access=access_to(trust, core)) as listening:
        yield Server(listening, trust, cluster, tmp_path)


@pytest.mark.parametrize("headers", [None, MASTERS, TWICE], ids=["no headers", "T087 forged headers", "T087 headers in every case"])
@pytest.mark.parametrize(
    ("identity", "user"),
    [
        pytest.param(None, "system:anonymous", id="no certificate"),
        pytest.param(CLIENTS.sign("front-proxy-client"), "front-proxy-client", id="the clients' authority, the proxy's name"),
        pytest.param(UNKNOWN.sign("front-proxy-client"), "", id="unknown authority"),
        pytest.param(PROXIES.sign("mallory", "system:masters"), "", id="the proxies' authority, another name"),
        pytest.param(authority("front-proxy-client"), "", id="signed by itself"),
    ],
)
async def test_t087_nobody_is_believed_who_may_not_speak_for_others(
    server: Server, identity: Signed | None, user: str, headers: Any
) -> None:
    code, status = await server.get(GADGETS, identity, headers)
    if not user:
        assert (code, status["message"]) == (401, "Unauthorized")
    else:
        assert code == 403
        assert f'User "{user}" cannot list resource "gadgets"' in status["message"]


@pytest.mark.parametrize(
    "identity", [None, UNKNOWN.sign("x"), PROXIES.sign("x"), authority("x")], ids=["none", "unknown", "proxies", "own"]
)
async def test_t087_a_token_counts_whatever_certificate_comes_along(server: Server, identity: Signed | None) -> None:
    code, seen = await server.get(GADGETS, identity, {**TOKEN, **MASTERS})
    assert (code, seen["user"]) == (200, "robot")


async def test_t088_where_clients_and_proxies_have_one_authority_only_their_names_tell_them_apart(server: Server, trust: Trust) -> None:
    both = Authorities((CLIENTS.certificate,))
    trust.replace(clients=both, front_proxies=FrontProxies(both, ("front-proxy-client",)))
    assert (await server.get(GADGETS, ALICE))[1]["user"] == "alice"
    assert (await server.get(GADGETS, ALICE, MASTERS))[1]["user"] == "alice"
    assert (await server.get(GADGETS, CLIENTS.sign("front-proxy-client"), {"X-Remote-User": "bob"}))[1]["user"] == "bob"


@pytest.mark.parametrize("listed", [(), ("X-Remote-Uid",)], ids=["not listed", "listed"])
@pytest.mark.parametrize("uid", ["", "u-1"], ids=["without", "with"])
async def test_t092_a_review_has_the_uid_that_a_listed_header_names(
    server: Server, trust: Trust, listed: tuple[str, ...], uid: str
) -> None:
    assert trust.front_proxies is not None
    trust.replace(front_proxies=replace(trust.front_proxies, uid_headers=listed))
    code, seen = await server.get(GADGETS, PROXY, {"X-Remote-User": "bob"} | ({"X-Remote-Uid": uid} if uid else {}))
    assert (code, seen["user"]) == (200, "bob")
    assert server.cluster.asked[-1]["spec"].get("uid", "") == (uid if listed else "")


async def test_t093_a_thousand_requests_of_one_user_are_one_review(server: Server) -> None:
    async def ask(session: aiohttp.ClientSession, count: int) -> None:
        for _ in range(count):
            async with session.get(GADGETS, headers={"X-Remote-User": "bob"}) as response:
                assert response.status == 200

    connector = Connector(ssl=server.tls(PROXY))
    async with aiohttp.ClientSession(server.listening.url, connector=connector) as session:
        await asyncio.gather(*(ask(session, 100) for _ in range(10)))
    assert len(server.cluster.asked) == 1


async def test_who_comes_first(server: Server) -> None:
    """The proxy's headers, then the certificate, then the token."""
    for identity, headers, user in (
        (PROXY, {**TOKEN, "X-Remote-User": "bob"}, "bob"),
        (PROXY, TOKEN, "robot"),
        (ALICE, {**TOKEN, "X-Remote-User": "bob"}, "alice"),
    ):
        code, seen = await server.get(GADGETS, identity, headers)
        assert (code, seen["user"]) == (200, user)


async def test_a_proof_that_does_not_hold_is_not_taken_for_anonymous(server: Server) -> None:
    for identity, headers in (
        (None, {"Authorization": "Bearer wrong"}),
        (PROXY, {"X-Remote-Group": "system:masters"}),
        (UNKNOWN.sign("x"), {}),
    ):
        assert (await server.get("/healthz", identity, headers))[0] == 401
    assert (await server.get("/healthz"))[0] == 200


async def test_certificates_may_bring_intermediates(server: Server) -> None:
    middle = CLIENTS.sign("middle", authority=True, purposes=None)
    assert (await server.get(GADGETS, middle.sign("alice"), sent_along=(middle,)))[1]["user"] == "alice"
    assert (await server.get(GADGETS, middle.sign("alice")))[0] == 401


async def test_a8_a_user_of_many_groups_comes_through(server: Server) -> None:
    headers = [("X-Remote-User", "bob"), *(("X-Remote-Group", f"group-{number}") for number in range(500))]
    headers += [(f"X-Remote-Extra-Key-{number}", "v" * 300) for number in range(200)]
    code, seen = await server.get(GADGETS, PROXY, headers)
    assert (code, seen["user"], len(seen["groups"])) == (200, "bob", 501)
    assert len(server.cluster.asked[-1]["spec"]["extra"]) == 200


@pytest.mark.parametrize(
    "line",
    [
        b"X_Remote_User: admin",
        b"X-Remote-User : admin",
        b"X-Remote\t-User: admin",
        b"X-Remote-User\0: admin",
        b"X-Remote-\xc3\xbcser: admin",
        b"X: y\r\n X-Remote-User: admin",
        b" X-Remote-User: admin",
        b"X-Remote-User\r: admin",
    ],
)
async def test_a10_no_odd_header_names_a_user(server: Server, line: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.listening.port, ssl=server.tls(PROXY))
    writer.write(
        b"GET " + GADGETS.encode() + b" HTTP/1.1\r\nHost: x\r\nX-Remote-Group: system:masters\r\n" + line + b"\r\nConnection: close\r\n\r\n"
    )
    head = (await reader.read()).partition(b"\r\n")[0]
    assert head.split()[1] in (b"400", b"401")
    writer.close()


async def test_identity_belongs_to_the_request_not_to_the_connection(server: Server) -> None:
    requests = [MASTERS, {"X-Remote-User": "bob"}, {"X-Remote-User": "eve"}, {}, {"X-Remote-User": "bob"}]
    connector = Connector(ssl=server.tls(PROXY), limit=1)
    async with aiohttp.ClientSession(server.listening.url, connector=connector) as session:
        codes = []
        for headers in requests:
            async with session.get(GADGETS, headers=headers) as response:
                codes.append(response.status)
                await response.read()
    assert codes == [200, 200, 403, 401, 200]


async def test_a11_t089_trust_that_ends_ends_for_open_connections(server: Server, trust: Trust) -> None:
    connector = Connector(ssl=server.tls(PROXY), limit=1)
    async with aiohttp.ClientSession(server.listening.url, connector=connector) as session:
        codes = []
        for authorities in ((PROXIES,), (PROXIES, UNKNOWN), (UNKNOWN,), (PROXIES,)):
            certificates = tuple(one.certificate for one in authorities)
            trust.replace(front_proxies=FrontProxies(Authorities(certificates), ("front-proxy-client",)))
            async with session.get(GADGETS, headers=MASTERS) as response:
                codes.append(response.status)
                await response.read()
    assert codes == [200, 200, 401, 200]


async def test_a14_what_is_allowed_for_one_verb_is_not_for_another(server: Server) -> None:
    async with aiohttp.ClientSession(server.listening.url, connector=Connector(ssl=server.tls(ALICE))) as session:
        for method, path in (
            ("GET", f"{GADGETS}/g1"),
            ("GET", f"{GADGETS}?watch=1"),
            ("DELETE", GADGETS),
            ("POST", GADGETS),
            ("PATCH", f"{GADGETS}/g1/status"),
            ("GET", "/metrics"),
            ("GET", "/debug/pprof"),
            ("GET", "/openapi/v3"),
            ("GET", "/version"),
        ):
            async with session.request(method, path) as response:
                await assert_status(response, 403, "Forbidden")
        async with session.get(f"{GADGETS}?fieldSelector=metadata.name%3Dg1&labelSelector=a") as response:
            assert response.status == 200
    assert server.cluster.asked[-1]["spec"]["resourceAttributes"]["name"] == "g1"


async def test_a17_impersonation_is_for_those_who_may(server: Server) -> None:
    wanted = {"Impersonate-User": "bob", "Impersonate-Uid": "7", "Impersonate-Group": "ops", "Impersonate-Extra-Acme.io%2fSc%6fpe": "all"}
    code, refused = await server.get(f"{GADGETS}?labelSelector=a", ALICE, {**wanted, "Impersonate-User": "root"})
    assert code == 403
    assert 'User "alice" cannot impersonate-on:user-info:list resource "gadgets" in API group "example.dev"' in refused["message"]

    first, *_, last = (review["spec"]["resourceAttributes"] for review in server.cluster.asked)
    assert first["labelSelector"] == {"requirements": [{"key": "a", "operator": "Exists"}]}
    assert last == {"verb": "impersonate", "version": "v1", "resource": "users", "name": "root"}

    server.cluster.asked.clear()
    server.cluster.answer = lambda _: asyncio.sleep(0, {"allowed": True})
    code, seen = await server.get(GADGETS, ALICE, wanted)
    assert (code, seen["user"], seen["groups"]) == (200, "bob", ["ops", "system:authenticated"])
    asked = [review["spec"] for review in server.cluster.asked]
    assert {spec["user"] for spec in asked[:-1]} == {"alice"}
    assert asked[0]["resourceAttributes"]["verb"] == "impersonate-on:user-info:list"
    common = {"verb": "impersonate:user-info", "group": "authentication.k8s.io", "version": "v1"}
    assert [spec["resourceAttributes"] for spec in asked[1:-1]] == [
        {**common, "resource": "users", "name": "bob"},
        {**common, "resource": "uids", "name": "7"},
        {**common, "resource": "groups", "name": "ops"},
        {**common, "resource": "userextras", "subresource": "acme.io/scope", "name": "all"},
    ]
    assert (asked[-1]["user"], asked[-1]["uid"], asked[-1]["extra"]) == ("bob", "7", {"acme.io/scope": ["all"]})


async def test_t093_while_nobody_answers_reviews_health_still_does(server: Server) -> None:
    server.cluster.answer = lambda _: asyncio.sleep(0, web.Response(status=403))
    for headers in ({"X-Remote-User": "eve"}, {}):
        assert (await server.get(GADGETS, PROXY if headers else None, headers))[0] == 500
    assert (await server.get(GADGETS, None, TOKEN))[0] == 500
    for path in HEALTH_PATHS:
        assert (await server.get(path))[0] == 200
    assert (await server.get(GADGETS, PROXY, MASTERS))[0] == 200


async def test_anonymous_requests_can_be_switched_off(pki: Certificates, trust: Trust, tmp_path: Path) -> None:
    cluster = FakeCluster(lambda _: asyncio.sleep(0, {"allowed": True}))
    async with fake_cluster(cluster) as core, shell(pki, access=access_to(trust, core, anonymous=False)) as listening:
        server = Server(listening, trust, cluster, tmp_path)
        assert (await server.get(GADGETS, None, MASTERS))[0] == 401
        assert (await server.get("/version"))[0] == 401
        assert (await server.get("/healthz"))[0] == 200
    assert not cluster.asked


async def test_names_in_messages_are_quoted_as_go_quotes_them(server: Server) -> None:
    for name, quoted in (('a"b\\c', r'"a\"b\\c"'), ("<b>", '"&lt;b&gt;"'), ("søren", '"søren"')):
        _, status = await server.get("/version", PROXY, {"X-Remote-User": name})
        assert status["message"] == f'forbidden: User {quoted} cannot get path "/version"'
