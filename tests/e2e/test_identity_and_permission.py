"""Who asks and may they, with the real kube-apiserver: through it and directly, and compared with what it answers itself."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest

from apiserver.certificates import KeyPair, make_client, prepare_certificates
from apiserver.config import AuthConfig
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.aggregated import API, Aggregated, serving, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

GADGETS = f"{API}/namespaces/default/gadgets"
MASTERS = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}


def gadget(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": metadata, "spec": {}}


async def is_code(code: int, answer: Awaitable[tuple[int, Any]]) -> bool:
    return (await answer)[0] == code


async def bearer(server: Aggregated, name: str, *arguments: str) -> dict[str, str]:
    token = (await server.kubectl("create", "token", name, *arguments)).strip()
    return {"Authorization": f"Bearer {token}"}


async def test_kubectl_reads_and_explains_through_the_aggregator(server: Aggregated) -> None:
    """T007: the aggregator fetches the documents as a user without groups."""
    await server.kubectl("create", "-f", "-", value=gadget(name="seen"))
    assert "seen" in await server.kubectl("get", "gadgets", "-A")

    async def explained() -> bool:
        try:
            return "replicas" in await server.kubectl("explain", "gadget.spec", "--recursive")
        except CalledProcessError:  # the aggregator has not fetched the documents yet
            return False

    await until(explained)
    for path in ("/openapi/v2", "/openapi/v3"):
        code, _ = await server.ask("GET", path, server.proxy(), through=False, headers={"X-Remote-User": "system:aggregator"})
        assert code == 200
    await server.kubectl("delete", "gadgets/seen")


async def test_t005_there_is_no_api_of_the_core_group(server: Aggregated) -> None:
    for path in ("/api", "/api/v1", "/apis/nope.example", f"{API}9"):
        code, status = await server.ask("GET", path, server.plane.pki.admin, through=False)
        assert (code, status["reason"]) == (404, "NotFound")


@pytest.mark.parametrize("headers", [{}, MASTERS], ids=["", "T087 forged headers"])
@pytest.mark.parametrize("who", ["nobody", "user", "foreign", "expired proxy name", "own serving"])
async def test_t087_t096_we_answer_as_kube_apiserver_does_to_whoever_comes_directly(
    server: Aggregated, tmp_path: Path, who: str, headers: dict[str, str]
) -> None:
    foreign = prepare_certificates(tmp_path, ["localhost"])
    identities: dict[str, KeyPair | None] = {
        "nobody": None,
        "user": server.user("alice", "dev"),
        "foreign": foreign.admin,
        "expired proxy name": server.proxy("somebody"),
        "own serving": server.plane.pki.serving,
    }
    for path in ("/version", "/apis", "/metrics", "/healthz"):
        theirs = await server.ask("GET", path, identities[who], through=True, headers=headers)
        ours = await server.ask("GET", path, identities[who], through=False, headers=headers)
        assert ours[0] == theirs[0], path
        if theirs[0] >= 400:
            assert ours[1] == theirs[1]


async def test_t093_a_user_without_rights_is_told_in_the_usual_words(server: Aggregated) -> None:
    alice = server.user("alice", "dev")
    problem = 'User "alice" cannot get resource "gadgets" in API group "example.dev" in the namespace "default"'
    direct = await server.ask("GET", f"{GADGETS}/x", alice, through=False)
    through = await server.ask("GET", f"{GADGETS}/x", alice)
    as_proxy = await server.ask("GET", f"{GADGETS}/x", server.proxy(), through=False, headers={"X-Remote-User": "alice"})
    assert direct == through == as_proxy
    assert (direct[0], direct[1]["message"]) == (403, f'gadgets.example.dev "x" is forbidden: {problem}')


async def test_a14_what_is_granted_counts_and_nothing_else(server: Aggregated) -> None:
    """Each way in: certificate, token, and through kube-apiserver; also what is taken away again."""
    await server.kubectl("create", "serviceaccount", "robot")
    await server.kubectl("create", "role", "lister", "--verb=list,create", "--resource=gadgets.example.dev")
    robot = await bearer(server, "robot")
    bob = server.user("bob")
    ways: list[tuple[KeyPair | None, dict[str, str], bool]] = [(bob, {}, True), (bob, {}, False), (None, robot, True), (None, robot, False)]
    for identity, headers, through in ways:
        assert (await server.ask("GET", GADGETS, identity, through=through, headers=headers))[0] == 403
    binding = ("rolebinding", "listers", "--role=lister", "--user=bob", "--serviceaccount=default:robot")
    await server.kubectl("create", *binding)
    for identity, headers, through in ways:
        codes = {
            f"{method} {path}": (await server.ask(method, GADGETS + path, identity, through=through, headers=headers, value=value))[0]
            for method, path, value in (
                ("GET", "", None),
                ("GET", "?watch=1", None),
                ("GET", "/x", None),
                ("GET", "/x/status", None),
                ("GET", "/x/scale", None),
                ("POST", "?dryRun=All", gadget(name="x")),
                ("PUT", "/x", gadget(name="x")),
                ("DELETE", "", None),
                ("DELETE", "/x", None),
            )
        }
        allowed = {"GET ": 200, "POST ?dryRun=All": 201}
        assert codes == {key: allowed.get(key, 403) for key in codes}
    assert (await server.kubectl("auth", "can-i", "list", "gadgets.example.dev", "--as=bob")).strip() == "yes"
    await server.kubectl("delete", "rolebinding", "listers")
    await until(lambda: is_code(403, server.ask("GET", GADGETS, bob, through=False)))


async def test_an_apply_that_creates_needs_the_permission_to_create(server: Aggregated) -> None:
    await server.kubectl("create", "role", "patcher", "--verb=get,patch", "--resource=gadgets.example.dev")
    await server.kubectl("create", "rolebinding", "patcher", "--role=patcher", "--user=carol")
    headers = {"Content-Type": "application/apply-patch+yaml"}
    path, carol = f"{GADGETS}/applied?fieldManager=carol", server.user("carol")
    code, status = await server.ask("PATCH", path, carol, value=gadget(name="applied"), headers=headers)
    assert code == 403
    assert 'User "carol" cannot create resource "gadgets"' in status["message"]
    assert (await server.ask("PATCH", path, server.plane.pki.admin, value=gadget(name="applied"), headers=headers))[0] == 201
    assert (await server.ask("PATCH", path, carol, value=gadget(name="applied"), headers=headers))[0] in (200, 409)


IMPERSONATIONS = {
    "bob": {"Impersonate-User": "bob"},
    "bob of dev": {"Impersonate-User": "bob", "Impersonate-Group": "dev"},
    "bob of ops": {"Impersonate-User": "bob", "Impersonate-Group": "ops"},
    "bob of masters": {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"},
    "bob of nothing": {"Impersonate-User": "bob", "Impersonate-Group": ""},
    "bob with a uid": {"Impersonate-User": "bob", "Impersonate-Uid": "7"},
    "bob with extra": {"Impersonate-User": "bob", "Impersonate-Extra-Acme.io%2fa": "1"},
    "bob with other extra": {"Impersonate-User": "bob", "Impersonate-Extra-Acme.io%2fb": "1"},
    "bob with odd extra": {"Impersonate-User": "bob", "Impersonate-Extra-A": "1"},
    "carol": {"Impersonate-User": "carol"},
    "account": {"Impersonate-User": "system:serviceaccount:default:robot"},
    "account with groups": {"Impersonate-User": "system:serviceaccount:default:robot", "Impersonate-Group": "dev"},
    "no account": {"Impersonate-User": "system:serviceaccount:default:Robot"},
    "node": {"Impersonate-User": "system:node:n1"},
    "other node": {"Impersonate-User": "system:node:n2"},
    "node with groups": {"Impersonate-User": "system:node:n1", "Impersonate-Group": "dev"},
}


async def test_whoever_acts_as_somebody_else_is_answered_as_kube_apiserver_answers(server: Aggregated) -> None:
    """In each mode of impersonation: what somebody may do as somebody else, and what is said to who may not."""
    await server.kubectl("create", "-f", "-", value={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    await server.kubectl("create", "serviceaccount", "agent")
    agent = await bearer(server, "agent", "--bound-object-kind=Node", "--bound-object-name=n1")
    here = f"{API}/namespaces/acting/gadgets"
    await server.kubectl("create", "namespace", "acting")
    await server.kubectl("create", "role", "lister", "-n", "acting", "--verb=list", "--resource=gadgets.example.dev")
    await server.kubectl("create", "rolebinding", "everybody", "-n", "acting", "--role=lister", "--group=system:authenticated")
    await _grant(server, "of-agents", ("system:serviceaccounts",), *_constrained("associated-node", nodes=("*",)))
    await _grant(server, "of-finest", ("finest",), *_constrained("user-info", users=("bob",), groups=("dev",), extra=("1",)))
    await _grant(server, "of-finest-2", ("finest",), *_constrained("serviceaccount", serviceaccounts=("robot",)))
    await _grant(server, "of-finest-3", ("finest",), *_constrained("arbitrary-node", nodes=("n1",)))
    oldest = {"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]}
    await _grant(server, "of-oldest", ("oldest",), oldest)
    ways: dict[str, tuple[KeyPair | None, dict[str, str]]] = {
        "finest": (server.user("finest", "finest"), {}),
        "oldest": (server.user("oldest", "oldest"), {}),
        "nothing": (server.user("nothing"), {}),
        "agent": (None, agent),
        "master": (server.plane.pki.admin, {}),
    }
    await until(lambda: is_code(200, server.ask("GET", here, ways["oldest"][0], through=False, headers=IMPERSONATIONS["bob of ops"])))
    may: dict[str, set[str]] = {}
    for who, (identity, token) in ways.items():
        for whom, headers in IMPERSONATIONS.items():
            for path in (here, f"{here}/x", "/version"):
                theirs, ours = [
                    await server.ask("GET", path, identity, through=through, headers={**token, **headers}) for through in (True, False)
                ]
                assert ours[0] == theirs[0], (who, whom, path)
                if theirs[0] != 200:
                    assert ours[1] == theirs[1]
                if (theirs[0], path) == (200, here):
                    may.setdefault(who, set()).add(whom)
    assert may == {
        "finest": {"bob", "bob of dev", "bob with extra", "account", "node"},
        "oldest": {whom for whom in IMPERSONATIONS if "extra" not in whom and "uid" not in whom},
        "agent": {"node"},
        "master": set(IMPERSONATIONS),
    }


def _constrained(mode: str, *, extra: tuple[str, ...] = (), **names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rules that let somebody list gadgets in this mode of impersonation, as somebody of these names."""
    rules = [{"apiGroups": ["example.dev"], "resources": ["gadgets"], "verbs": [f"impersonate-on:{mode}:list"]}]
    parts = {**names, **({"userextras/acme.io/a": extra} if extra else {})}
    common = {"apiGroups": ["authentication.k8s.io"], "verbs": [f"impersonate:{mode}"]}
    return [*rules, *({**common, "resources": [resource], "resourceNames": [*given]} for resource, given in parts.items())]


async def _grant(server: Aggregated, name: str, groups: tuple[str, ...], *rules: dict[str, Any]) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}
    await server.kubectl("create", "-f", "-", value=role)
    await server.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", *(f"--group={group}" for group in groups))


async def test_a12_tokens_for_others_or_of_those_who_have_gone_are_refused(server: Aggregated) -> None:
    await server.kubectl("create", "serviceaccount", "leaving")
    good, other = await bearer(server, "leaving"), await bearer(server, "leaving", "--audience=other")
    assert (await server.ask("GET", GADGETS, through=False, headers=good))[0] == 403
    for headers in (other, {"Authorization": "Bearer no.such.token"}):
        code, status = await server.ask("GET", GADGETS, through=False, headers={**headers, **MASTERS})
        assert (code, status["message"]) == (401, "Unauthorized")
    await server.kubectl("delete", "serviceaccount", "leaving")
    await until(lambda: is_code(401, server.ask("GET", GADGETS, through=False, headers=good)))


async def test_a12_a_server_with_audiences_of_its_own_takes_tokens_for_them_alone(server: Aggregated, tmp_path: Path) -> None:
    await server.kubectl("create", "serviceaccount", "visitor")
    async with serving(server.plane, tmp_path, AuthConfig(api_audiences=("elsewhere", "ours"))) as other:
        for audience, code in (((), 401), (("--audience=theirs",), 401), (("--audience=ours", "--audience=theirs"), 403)):
            headers = await bearer(server, "visitor", *audience)
            assert (await other.ask("GET", GADGETS, through=False, headers=headers))[0] == code


async def test_a8_a9_much_that_is_said_of_a_user_and_of_labels_comes_through(server: Aggregated) -> None:
    groups = [f"group-{number:04}" for number in range(500)]
    headers = [("Impersonate-User", "many"), *(("Impersonate-Group", group) for group in groups)]
    headers += [(f"Impersonate-Extra-Key-{number}", "v" * 300) for number in range(200)]
    await server.kubectl("create", "rolebinding", "many", "--role=lister", "--group=group-0499")
    selector = ",".join(f"key-{number}!={'v' * 60}" for number in range(400))
    for query in ("", f"?labelSelector={selector}"):
        code, listed = await server.ask("GET", GADGETS + query, server.plane.pki.admin, headers=headers)
        assert code == 200, listed


async def test_t089_the_configmap_is_followed(server: Aggregated, tmp_path: Path) -> None:
    """A second authority is added, and used; the ConfigMap is deleted, and what it said before counts until it is there again."""
    new = prepare_certificates(tmp_path, ["localhost"])
    proxy = make_client(tmp_path, new.authority, "new-proxy")
    assert (await server.ask("GET", GADGETS, proxy, through=False, headers=MASTERS))[0] == 401
    name = ("-n", "kube-system", "configmap", "extension-apiserver-authentication")
    data = json.loads(await server.kubectl("get", *name, "-o", "json"))["data"]
    both = data["requestheader-client-ca-file"] + new.authority.certificate_file.read_text()
    patch = {"requestheader-client-ca-file": both, "requestheader-allowed-names": '["front-proxy-client","new-proxy"]'}
    await server.kubectl("patch", *name, "-p", json.dumps({"data": patch}))
    await until(lambda: is_code(200, server.ask("GET", GADGETS, proxy, through=False, headers=MASTERS)))
    assert (await server.ask("GET", GADGETS, server.proxy(), through=False, headers=MASTERS))[0] == 200
    await server.kubectl("delete", *name)

    async def the_new_one_is_refused() -> bool:
        code, _ = await server.ask("GET", GADGETS, server.proxy(), through=False, headers=MASTERS)
        assert code == 200
        return await is_code(401, server.ask("GET", GADGETS, proxy, through=False, headers=MASTERS))

    await until(the_new_one_is_refused, seconds=120)


async def test_missing_and_terminating_namespaces_are_answered_as_kube_apiserver_answers(server: Aggregated) -> None:
    admin = server.plane.pki.admin
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-"}}
    held = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "held", "finalizers": ["example.dev/hold"]}}
    await server.kubectl("create", "-f", "-", value=held)
    assert (await server.ask("POST", f"{API}/namespaces/held/gadgets", admin, value=gadget(name="early")))[0] == 201
    await server.kubectl("delete", "namespace", "held", "--wait=false")
    await until(lambda: is_code(403, server.ask("POST", f"{API}/namespaces/held/gadgets?dryRun=All", admin, value=gadget(name="late"))))
    for namespace in ("nowhere", "held"):
        theirs = await server.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", admin, value=config_map)
        ours = await server.ask("POST", f"{API}/namespaces/{namespace}/gadgets", admin, value=gadget(generateName="g-"))
        said = json.dumps(ours[1]).replace("gadgets.example.dev", "configmaps").replace('"group": "example.dev", ', "")
        assert (ours[0], json.loads(said.replace("gadgets", "configmaps"))) == theirs
    assert (await server.ask("DELETE", f"{API}/namespaces/held/gadgets/early", admin))[0] == 200
    fresh = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "fresh-"}}
    for _ in range(20):
        _, made = await server.ask("POST", "/api/v1/namespaces", admin, value=fresh)
        path = f"{API}/namespaces/{made['metadata']['name']}/gadgets"
        assert (await server.ask("POST", path, admin, value=gadget(name="first"), through=False))[0] == 201


async def test_t093_who_may_not_review_answers_500_and_is_alive(plane: ControlPlane, tmp_path: Path) -> None:
    """And not ready, since it may not read the ConfigMap either. Health needs nobody."""
    async with serving(plane, tmp_path, user="powerless") as server:
        alice = server.user("alice", "dev")
        token = {"Authorization": "Bearer some.token"}
        own = {"identity": make_client(tmp_path, server.listening.pki.authority, "own"), "headers": {}}
        for identity, headers in ((own["identity"], {}), (None, token), (None, {})):
            code, status = await server.ask("GET", GADGETS, identity, through=False, headers=headers)  # type: ignore[arg-type]
            assert (code, status["reason"]) == (500, "InternalError")
        assert (await server.ask("GET", GADGETS, alice, through=False))[0] == 401
        assert (await server.ask("GET", "/livez", through=False))[0] == 200
        assert (await server.ask("GET", "/readyz", through=False))[0] == 500
        assert (await server.ask("GET", GADGETS, server.listening.pki.admin, through=False))[0] == 200


async def test_t093_without_kube_apiserver_nobody_is_let_in_and_nothing_has_to_be_restarted_after_it(server: Aggregated) -> None:
    await server.kubectl("create", "clusterrole", "all-gadgets", "--verb=*", "--resource=gadgets.example.dev")
    await server.kubectl("create", "clusterrolebinding", "dora", "--clusterrole=all-gadgets", "--user=dora")
    dora, admin = server.user("dora"), server.plane.pki.admin
    token = await bearer(server, "robot")
    assert (await server.ask("GET", GADGETS, dora, through=False))[0] == 200
    with server.plane.away():
        for identity, headers in ((dora, {}), (None, token), (None, {})):
            code, status = await server.ask("GET", GADGETS, identity, through=False, headers=headers)
            assert (code, status["reason"]) == (500, "InternalError")
        for path in ("/livez", "/readyz", "/healthz"):
            assert (await server.ask("GET", path, through=False))[0] == 200
        # Who needs no review is let in, and what is known of namespaces still counts.
        value = gadget(generateName="away-")
        assert (await server.ask("POST", GADGETS, server.proxy(), through=False, value=value, headers=MASTERS))[0] == 201
        assert (await server.ask("POST", GADGETS, admin, through=False, value=value))[0] == 201
        elsewhere = f"{API}/namespaces/elsewhere/gadgets"
        assert (await server.ask("POST", elsewhere, admin, through=False, value=value))[0] == 500
    assert (await server.ask("GET", GADGETS, dora, through=False))[0] == 200
    await server.kubectl("create", "namespace", "elsewhere")
    assert (await server.ask("POST", elsewhere, admin, through=False, value=value))[0] == 201
    await until(lambda: is_code(200, server.ask("GET", GADGETS, dora)))


async def test_t081_a_namespace_goes_with_everything_in_it(server: Aggregated) -> None:
    server.plane.start_controller_manager()
    await server.kubectl("create", "namespace", "leaving")
    admin, path = server.plane.pki.admin, f"{API}/namespaces/leaving/gadgets"
    for number in range(100):
        finalizers = {"finalizers": ["example.dev/hold"]} if number < 3 else {}
        value = gadget(name=f"g-{number:03}", **finalizers)
        assert (await server.ask("POST", path, admin, through=False, value=value))[0] == 201
    await server.kubectl("delete", "namespace", "leaving", "--wait=false")
    conditions: dict[str, str] = {}

    async def three_are_left() -> bool:
        namespace = json.loads(await server.kubectl("get", "namespace", "leaving", "-o", "json"))
        conditions.update({condition["type"]: condition["message"] for condition in namespace["status"].get("conditions", ())})
        return "gadgets.example.dev has 3 resource instances" in conditions.get("NamespaceContentRemaining", "")

    await until(three_are_left)
    assert "example.dev/hold in 3 resource instances" in conditions["NamespaceFinalizersRemaining"]
    for number in range(3):
        patch = {"metadata": {"finalizers": None}}
        merge = {"Content-Type": "application/merge-patch+json"}
        assert (await server.ask("PATCH", f"{path}/g-{number:03}", admin, value=patch, headers=merge))[0] == 200
    await server.kubectl("wait", "--for=delete", "namespace/leaving", "--timeout=90s")
