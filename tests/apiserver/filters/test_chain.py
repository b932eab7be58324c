"""What every request passes: errors, time, limits, identity, permission, and the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import aiohttp
import orjson
import pytest
from aiohttp import web

from apiserver.certificates import Certificates, KeyPair
from apiserver.filters.access_log import AccessLog
from apiserver.filters.deadline import Deadlines, parse_duration_seconds
from apiserver.filters.limits import InFlightLimits
from apiserver.meta import errors
from apiserver.meta.errors import APIError, GroupResource
from apiserver.request import Call
from tests.apiserver.shell import shell
from tests.apiserver.status_assertions import assert_status

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"


class Gate:
    """An endpoint that answers when it is told to."""

    def __init__(self) -> None:
        self.waiting = asyncio.Semaphore(0)
        self.opened = asyncio.Event()

    async def __call__(self, call: Call) -> web.Response:
        self.waiting.release()
        await self.opened.wait()
        return web.Response(text="through")


async def fail(call: Call) -> web.StreamResponse:
    """Fail as the path says."""
    match call.info.path:
        case "/conflict":
            raise errors.conflict(GroupResource("example.dev", "gadgets"), "g1", "it has changed")
        case "/busy":
            raise errors.service_unavailable("the store is away", retry_after_seconds=3)
        case "/begun":
            response = web.StreamResponse()
            await response.prepare(call.http)
            await response.write(b"part")
            raise errors.bad_request("too late to say so")
    raise KeyError("a secret of the inside")


async def test_an_api_error_is_its_status(pki: Certificates) -> None:
    async with shell(pki, fail) as listener, listener.client(pki.admin) as client:
        async with client.get("/conflict", headers={"Audit-Id": "my-id"}) as response:
            status = await assert_status(response, 409, "Conflict")
            assert status["details"] == {"name": "g1", "group": "example.dev", "kind": "gadgets"}
            assert response.headers["Audit-Id"] == "my-id"
            assert response.headers["Cache-Control"] == "no-cache, private"
        async with client.get("/busy") as response:
            await assert_status(response, 503, "ServiceUnavailable")
            assert response.headers["Retry-After"] == "3"
        async with client.get("/conflict", headers={"Accept": "application/yaml"}) as response:
            assert response.content_type == "application/yaml"
            assert "reason: Conflict\n" in await response.text()


async def test_t006_a_bug_is_a_500_status_that_tells_nothing_of_the_inside(pki: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    async with shell(pki, fail) as listener, listener.client(pki.admin) as client, client.get("/bug") as response:
        status = await assert_status(response, 500, "InternalError")
        assert "secret" not in await response.text()
        assert response.headers["Audit-Id"] in status["message"]
    assert "a secret of the inside" in caplog.text


async def test_a_failure_after_the_response_has_begun_cuts_the_connection(pki: Certificates) -> None:
    async with shell(pki, fail) as listener, listener.client(pki.admin) as client, client.get("/begun") as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_every_response_has_an_audit_id_of_its_own_and_takes_the_clients(pki: Certificates) -> None:
    async with shell(pki, fail) as listener, listener.client(pki.admin) as client:
        seen = set()
        for given in ("", "x" * 65, "\xe9"):
            async with client.get("/conflict", headers={"Audit-Id": given} if given else {}) as response:
                seen.add(response.headers["Audit-Id"])
        assert len(seen) == 3
        assert {len(audit_id) for audit_id in seen} == {36}


async def test_a_request_out_of_time_is_a_504_status_and_the_connection_stays(pki: Certificates) -> None:
    gate = Gate()
    deadlines = Deadlines(timeout_seconds=0.01, look_every_seconds=0.01)
    async with shell(pki, gate, deadlines=deadlines) as listener, listener.client(pki.admin) as client:
        looking = asyncio.create_task(deadlines.run())
        async with client.get(GADGETS) as response:
            status = await assert_status(response, 504, "Timeout")
            assert status["message"] == "Timeout: request did not complete within the allotted timeout"
        gate.opened.set()
        async with client.get(GADGETS) as response:
            assert await response.text() == "through"
        looking.cancel()


async def test_a_request_may_bring_a_shorter_time(pki: Certificates) -> None:
    gate = Gate()
    async with shell(pki, gate) as listener, listener.client(pki.admin) as client:
        async with client.get(f"{GADGETS}?timeout=1ms") as response:
            await assert_status(response, 504, "Timeout")
        async with client.get(f"{GADGETS}?timeout=abc") as response:
            status = await assert_status(response, 400, "BadRequest")
            assert status["message"] == 'invalid timeout specified in the request URL - time: invalid duration "abc"'


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("5s", 5), ("1m30s", 90), ("500ms", 0.5), ("1.5h", 5400), (".5s", 0.5), ("1us", 1e-6), ("-5s", -5), ("+2s", 2)],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert parse_duration_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5", "s", "1 s", "5sx", "--5s", "1d", "٣s"])
def test_other_durations_are_a_400(text: str) -> None:
    with pytest.raises(APIError, match="invalid duration"):
        parse_duration_seconds(text)


@pytest.fixture
def group_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is too privileged to be turned away."""
    monkeypatch.setattr("apiserver.filters.limits.SYSTEM_MASTERS", "nobody")


@pytest.mark.usefixtures("group_of_nobody")
@pytest.mark.parametrize(("method", "other"), [("GET", "POST"), ("POST", "GET")])
async def test_requests_over_the_limit_are_a_429_at_once_while_the_other_kind_and_watches_go_on(
    pki: Certificates, method: str, other: str
) -> None:
    gate = Gate()
    limits = InFlightLimits(max_requests_in_flight=2, max_mutating_requests_in_flight=2)
    async with shell(pki, gate, limits=limits) as listener, listener.client(pki.admin) as client:
        running = [asyncio.create_task(client.request(method, GADGETS)) for _ in range(2)]
        for _ in running:
            await gate.waiting.acquire()
        async with client.request(method, GADGETS) as response:
            status = await assert_status(response, 429, "TooManyRequests")
            assert status["message"] == "Too many requests, please try again later."
            assert response.headers["Retry-After"] == "1"
        running += [asyncio.create_task(client.get(f"{GADGETS}?watch=1")), asyncio.create_task(client.request(other, GADGETS))]
        for _ in range(2):
            await gate.waiting.acquire()
        gate.opened.set()
        for response in await asyncio.gather(*running):
            assert await response.text() == "through"
        async with client.request(method, GADGETS) as response:
            assert response.status == 200


async def test_the_masters_are_never_turned_away(pki: Certificates) -> None:
    gate = Gate()
    limits = InFlightLimits(max_requests_in_flight=1)
    async with shell(pki, gate, limits=limits) as listener, listener.client(pki.admin) as client:
        running = [asyncio.create_task(client.get(GADGETS)) for _ in range(3)]
        for _ in running:
            await gate.waiting.acquire()
        gate.opened.set()
        assert [response.status for response in await asyncio.gather(*running)] == [200] * 3


async def test_a_certificate_is_a_user_with_groups(pki: Certificates) -> None:
    async with shell(pki) as listener, listener.client(pki.admin) as client, client.get("/who") as response:
        who = await response.json()
        assert (who["user"], who["groups"]) == ("admin", ["system:masters", "system:authenticated"])


@pytest.mark.parametrize(
    ("method", "path", "message", "details"),
    [
        pytest.param(
            "GET",
            "/apis/example.dev/v1/gadgets",
            'gadgets.example.dev is forbidden: User "alice" cannot list resource "gadgets" in API group "example.dev" at the cluster scope',
            {"group": "example.dev", "kind": "gadgets"},
            id="list everywhere",
        ),
        pytest.param(
            "PUT",
            f"{GADGETS}/x/status",
            'gadgets.example.dev "x" is forbidden: User "alice" cannot update resource "gadgets/status" in API group "example.dev" '
            'in the namespace "ns1"',
            {"name": "x", "group": "example.dev", "kind": "gadgets"},
            id="a subresource",
        ),
        pytest.param(
            "GET",
            f"{GADGETS}?watch=1&fieldSelector=metadata.name%3Dq",
            'gadgets.example.dev "q" is forbidden: User "alice" cannot watch resource "gadgets" in API group "example.dev" '
            'in the namespace "ns1"',
            {"name": "q", "group": "example.dev", "kind": "gadgets"},
            id="a watch of one object",
        ),
        pytest.param("GET", "/foo<b>", 'forbidden: User "alice" cannot get path "/foo&lt;b&gt;"', {}, id="a path"),
    ],
)
async def test_somebody_who_may_not_is_told_so_in_kubernetes_words(
    pki: Certificates, user: KeyPair, method: str, path: str, message: str, details: dict[str, str]
) -> None:
    """Taken from kube-apiserver 1.37.2's own answers."""
    async with shell(pki) as listener, listener.client(user) as client, client.request(method, path) as response:
        status = await assert_status(response, 403, "Forbidden")
        assert (status["message"], status["details"]) == (message, details)
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_headers_that_claim_an_identity_count_for_nothing(pki: Certificates, user: KeyPair) -> None:
    claims = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters", "Impersonate-User": "admin", "Authorization": "Bearer x"}
    async with shell(pki) as listener:
        async with listener.client(None) as client, client.get("/x", headers=claims) as response:
            await assert_status(response, 401, "Unauthorized")
        async with listener.client(user) as client, client.get("/x", headers=claims) as response:
            await assert_status(response, 403, "Forbidden")


@pytest.fixture
async def access_lines() -> AsyncIterator[list[str]]:
    lines: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.getLogger("test.access")
    logger.setLevel(logging.INFO)
    handler = Collector()
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


async def test_the_access_log_is_one_line_a_request_that_no_client_can_forge(pki: Certificates, access_lines: list[str]) -> None:
    logger = logging.getLogger("test.access")
    async with shell(pki, access_log=AccessLog(logger, "json")) as listener:
        async with listener.client(pki.admin) as client:
            await client.get(f"{GADGETS}/x?a=b", headers={"User-Agent": 'me "\t\\'})
        async with listener.client(None) as client:
            await client.get("/y", headers={"Audit-Id": "abc"})
    first, second = map(orjson.loads, access_lines)
    assert (first["method"], first["uri"], first["verb"], first["code"], first["user"]) == ("GET", f"{GADGETS}/x?a=b", "get", 200, "admin")
    assert first["userAgent"] == 'me "\t\\'
    assert (second["code"], second["user"], second["auditId"]) == (401, "system:anonymous", "abc")
    access_lines.clear()
    async with shell(pki, access_log=AccessLog(logger, "plain")) as listener, listener.client(pki.admin) as client:
        await client.get("/z")
    assert access_lines[0].startswith("method='GET' uri='/z' verb='get' code=200 seconds=")
