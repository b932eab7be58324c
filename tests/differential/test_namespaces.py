"""What is answered in namespaces that are not there, that are going away, and that are new: here this server follows kube-apiserver's.

Nobody completes a deletion in this control plane: a namespace that is deleted stays Terminating.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.apiserver.process import serving
from tests.differential.conftest import Pair
from tests.differential.exchange import ALL_POOLS, POOLS, YAML, Request, Step, Watch, edited, send
from tests.differential.lockstep import Difference, Lockstep, Tally
from tests.differential.objects import (
    apply,
    create,
    create_worker,
    delete,
    delete_all,
    get,
    json_patch,
    listed,
    merge,
    pool,
    update,
    worker,
)
from tests.differential.side import Side, side

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_NAMESPACES = "/api/v1/namespaces"
_NOTICED_SECONDS = 60.0
_RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "alice"},
    "rules": [
        {"apiGroups": ["clrk.apoxy.dev"], "resources": ["workerpools"], "verbs": ["get", "patch", "deletecollection"]},
        {"apiGroups": ["clrk.apoxy.dev"], "resources": ["workerpools/status"], "verbs": ["update"]},
        {"apiGroups": ["clrk.apoxy.dev"], "resources": ["workerpools"], "verbs": ["update", "watch"], "resourceNames": ["x"]},
    ],
}
_BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "alice"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "alice"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
}
_FORCED = "?fieldManager=m1&force=true"
_TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
_METADATA = {"Accept": "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
_BROKEN = '{"apiVersion":"clrk.apoxy.dev/v1alpha1","kind":"WorkerPool","metadata":{"name":"n"'
_YAML = "metadata: {generateName: gen-}\napiVersion: clrk.apoxy.dev/v1alpha1\nkind: WorkerPool\nspec: {template: {image: a}}\n"
_UNNAMED = {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "metadata": {}, "spec": {"template": {"image": "a"}}}

CREATIONS: Sequence[Step] = [
    create(pool("n")),
    create(pool("n"), "?dryRun=All"),
    create(pool("n"), "?dryRun=Some"),
    create_worker(worker("n", image="a")),
    create(pool("", metadata={"generateName": "gen-"})),
    create(pool("named", metadata={"generateName": "gen-"})),
    create(pool("", metadata={"generateName": "Bad_"})),
    create(_UNNAMED),
    create(pool("Bad_Name")),
    create(pool("n", replicas=-1)),
    create(pool("n", replicas="x")),
    create(pool("n", template={"image": ""})),
    create(pool("n", metadata={"labels": {"bad key": "x"}})),
    create(pool("n", metadata={"namespace": "{{other}}"})),
    create(pool("n", metadata={"namespace": "{{ns}}"})),
    create(pool("n", metadata={"resourceVersion": "5"})),
    create(pool("n", metadata={"uid": "11111111-1111-4111-8111-111111111111", "deletionTimestamp": "2024-01-01T00:00:00Z"})),
    create(pool("n", metadata={"managedFields": [{"manager": "x", "operation": "Frob", "fieldsType": "FieldsV1"}]})),
    create(_BROKEN),
    create("[]"),
    create(""),
    create(pool("n") | {"kind": "Other"}),
    create(pool("n") | {"apiVersion": "v1"}),
    create(pool("n"), content_type="text/plain"),
    create(
        _YAML,
        content_type=YAML,
    ),
    *[create(pool("n") | {"extra": 1}, f"?fieldValidation={level}") for level in ("Strict", "Warn", "Ignore", "Bogus")],
    create(pool("n"), "?fieldManager=" + "x" * 129),
    *[create(pool("n"), headers=headers) for headers in (_TABLE, _METADATA, {"Accept": "application/yaml"}, {"Accept": "text/plain"})],
    create(pool("n"), identity=""),
    update("n", pool("n")),
    update("n", pool("n", replicas=-1)),
    update("n", pool("n", metadata={"resourceVersion": "5"})),
    update("n", pool("other")),
    update("n", _BROKEN),
    update("n", pool("n"), "?dryRun=All"),
    apply("n", pool("n")),
    apply("n", pool("n"), _FORCED),
    apply("n", pool("n"), "?fieldManager=m1&dryRun=All"),
    apply("n", pool("n"), ""),
    apply("n", pool("other")),
    apply("n", pool("n", replicas=-1)),
    apply("n", pool("n", replicas="x")),
    apply("n", pool("n") | {"extra": 1}),
    apply("n", pool("n") | {"extra": 1}, "?fieldManager=m1&fieldValidation=Strict"),
    apply("n", pool("n", metadata={"resourceVersion": "5"})),
    apply("n", pool("n", metadata={"uid": "11111111-1111-4111-8111-111111111111"})),
    apply("n", pool("n", metadata={"namespace": "{{other}}"})),
    apply("Bad_Name", pool("Bad_Name")),
    apply("n/status", {**pool("n"), "status": {"readyReplicas": 1}}),
    apply("n", pool("n"), headers=_TABLE),
    merge("n", {"spec": {"replicas": 1}}),
    merge("n", {"spec": {"replicas": "x"}}),
    merge("n", "{"),
    merge("n/status", {"status": {"readyReplicas": 1}}),
    json_patch("n", [{"op": "replace", "path": "/spec/replicas", "value": 1}]),
    update("n/status", pool("n")),
    get("n/scale"),
    merge("n/scale", {"spec": {"replicas": 1}}),
    update("n/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "n"}, "spec": {"replicas": 1}}),
]
"""Whatever could create something, and what looks as if it could. Nothing comes of any of them."""

OTHERS: Sequence[Step] = [
    get("n"),
    get("n", headers=_METADATA),
    listed(),
    listed(headers=_TABLE),
    listed("?limit=1"),
    listed("?fieldSelector=metadata.namespace%3D{{ns}}", ALL_POOLS),
    Watch("watch", f"{POOLS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"),
    Watch("watch", f"{POOLS}?watch=true"),
    delete("n"),
    delete("n", "?dryRun=All"),
    delete("n", value={"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}}),
    delete_all("?dryRun=All"),
]

_HELD = {"finalizers": ["example.dev/f"], "labels": {"held": "yes"}}
BEFORE: Sequence[Step] = [create(pool("x", metadata=_HELD)), create(pool("y")), create_worker(worker("w", image="a"))]
AFTER: Sequence[Step] = [
    create(pool("x")),
    apply("x", pool("x", replicas=3)),
    apply("x", pool("x", replicas=4), _FORCED),
    apply("x", {**pool("x"), "status": {"readyReplicas": 1}}, "?fieldManager=m2"),
    update("x", edited("x", lambda value: value["spec"].update(replicas=5))),
    update("x", edited("x", lambda value: value["metadata"].update(resourceVersion="1"))),
    merge("x", {"spec": {"replicas": 6}}),
    merge("x", {"spec": {"replicas": 7}}, "?dryRun=All"),
    merge("x", {"spec": {"replicas": -1}}),
    json_patch("x", [{"op": "replace", "path": "/spec/replicas", "value": 8}]),
    merge("x/status", {"status": {"readyReplicas": 2}}),
    merge("x/scale", {"spec": {"replicas": 9}}),
    get("x"),
    listed(),
    Watch(
        "watch",
        f"{POOLS}?watch=true",
        (merge("x", {"spec": {"replicas": 2}}), delete("y"), delete("x"), merge("x", {"metadata": {"finalizers": None}})),
    ),
    apply("x", pool("x")),
    create(pool("x")),
    delete_all(),
    listed(),
]

BY_ALICE: Sequence[Request] = [
    get("x"),
    listed(),
    listed("", ALL_POOLS),
    create(pool("y")),
    create(pool("y"), "?dryRun=All"),
    apply("y", pool("y")),
    apply("y", pool("y"), "?fieldManager=m1&dryRun=All"),
    apply("y", _BROKEN),
    apply("x", pool("x", replicas=2), _FORCED),
    merge("x", {"spec": {"replicas": 3}}),
    merge("missing", {"spec": {"replicas": 3}}),
    update("x", edited("x", lambda value: value["spec"].update(replicas=4))),
    update("y", pool("y")),
    update("x/status", edited("x", lambda value: value.update(status={"readyReplicas": 1}))),
    merge("x/status", {"status": {"readyReplicas": 2}}),
    get("x/status"),
    get("x/scale"),
    merge("x/scale", {"spec": {"replicas": 5}}),
    send("watch", "GET", f"{POOLS}?watch=true&timeoutSeconds=1"),
    send("watch", "GET", f"{POOLS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dy"),
    create_worker(worker("w", image="a")),
    delete("x"),
    delete_all(),
]


@pytest.fixture(scope="module")
def follower(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of ours that follows the namespaces of kube-apiserver."""
    flags = (*pair.our_flags, f"--kubeconfig={pair.kubeconfig}", "--anonymous-auth=false")
    with serving(tmp_path_factory.mktemp("follower") / "ours", *flags) as ours:
        yield ours.url


@pytest.fixture
async def followers(pair: Pair, follower: str) -> AsyncIterator[tuple[Side, Side]]:
    """Clients of both."""
    async with side("kube-apiserver", pair.real_url, pair.contexts) as real, side("this server", follower, pair.contexts) as ours:
        yield real, ours


async def test_in_a_namespace_that_is_not_there(followers: tuple[Side, Side], tally: Tally) -> None:
    lockstep = Lockstep(*followers, "n-missing", tally)
    _check(await lockstep.run([*CREATIONS, *OTHERS]))


async def test_in_a_namespace_that_is_going_away(followers: tuple[Side, Side], tally: Tally) -> None:
    lockstep = Lockstep(*followers, "n-ending", tally)
    await lockstep.prepare()
    _check(await lockstep.run(BEFORE))
    await _end("n-ending", followers)
    _check(await lockstep.run([*CREATIONS, *OTHERS, *AFTER]))
    await lockstep.clean()


async def test_in_a_namespace_that_has_just_come(followers: tuple[Side, Side], tally: Tally) -> None:
    for number in range(5):
        lockstep = Lockstep(*followers, f"n-fresh-{number}", tally)
        await lockstep.prepare()
        _check(await lockstep.run([create(pool("n")), apply("m", pool("m")), create_worker(worker("n", image="a"))]))
        await lockstep.clean()


async def test_in_a_namespace_that_has_come_back(followers: tuple[Side, Side], tally: Tally) -> None:
    lockstep = Lockstep(*followers, "n-again", tally)
    await lockstep.prepare()
    await _end("n-again", followers)
    _check(await lockstep.run([create(pool("n"))]))
    await _complete("n-again", followers)
    _check(await lockstep.run([create(pool("n")), apply("n", pool("n"))]))
    await lockstep.prepare()
    _check(await lockstep.run([create(pool("n")), apply("n", pool("n"))]))
    await lockstep.clean()


async def test_somebody_who_may_do_this_and_not_that(followers: tuple[Side, Side], tally: Tally) -> None:
    """An apply that would create needs the right to create; a name that is watched alone is a right to one object."""
    lockstep = Lockstep(*followers, "n-rights", tally)
    await lockstep.prepare()
    for kind, value in (("roles", _RIGHTS), ("rolebindings", _BINDING)):
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/n-rights/{kind}"
        await _ask(followers[0], "POST", path, value)
    for each in followers:
        await _until(each, 404, "GET", f"{POOLS.replace('{{ns}}', 'n-rights')}/none", "alice")
    _check(await lockstep.run([create(pool("x")), *(replace(request, identity="alice") for request in BY_ALICE)]))
    await lockstep.clean()


def _check(difference: Difference | None) -> None:
    assert difference is None, f"\n{difference}"


async def _end(namespace: str, sides: tuple[Side, Side]) -> None:
    """Delete a namespace, and return when both know of it."""
    await _ask(sides[0], "DELETE", f"{_NAMESPACES}/{namespace}")
    for each in sides:
        await _until(each, 403, "POST", _probe(namespace))


async def _complete(namespace: str, sides: tuple[Side, Side]) -> None:
    """Do as the controller of namespaces does when one is empty, and return when both know that it is gone."""
    value = json.loads(await _ask(sides[0], "GET", f"{_NAMESPACES}/{namespace}"))
    await _ask(sides[0], "PUT", f"{_NAMESPACES}/{namespace}/finalize", {**value, "spec": {"finalizers": []}})
    for each in sides:
        await _until(each, 404, "POST", _probe(namespace))


def _probe(namespace: str) -> str:
    return f"{POOLS.replace('{{ns}}', namespace)}?dryRun=All"


async def _ask(side: Side, method: str, path: str, value: Any = None) -> str:
    answer = await side.ask(method, path, value and json.dumps(value).encode(), {"Content-Type": "application/json"}, "admin")
    assert answer.status in (200, 201), answer
    return answer.text


async def _until(side: Side, status: int, method: str, path: str, identity: str = "admin") -> None:
    """Ask until the answer has this code: what it depends on is followed, and kept for a while."""
    headers = {"Content-Type": "application/json"}
    body = json.dumps(pool("probe")).encode() if method == "POST" else None
    async with asyncio.timeout(_NOTICED_SECONDS):
        while (await side.ask(method, path, body, headers, identity)).status != status:  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.1)
