"""Server-side apply over HTTP, and the owners that every other write leaves behind."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Hashable
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apiserver.config import Config
from apiserver.registry.resource_store import ResourceStore
from apiserver.registry.stored_object import StoredObject
from storage.memory import MemoryStore
from tests.apiserver.status_assertions import assert_status

Value = dict[str, Any]

THINGS = "/apis/example.dev/v1/namespaces/ns1/things"
X = f"{THINGS}/x"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
TYPED = "failed to create typed patch object (/x; example.dev/v1, Kind=Thing): "


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(data_dir=tmp_path, kinds=("tests.apiserver.apply.things",), store_name="etcd")


def thing(spec: Value | None = None, *, name: str = "x", status: Value | None = None, **metadata: Any) -> Value:
    value = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": name, **metadata}, "spec": spec, "status": status}
    return {member: part for member, part in value.items() if part is not None}


async def apply(client: aiohttp.ClientSession, value: Value | str, query: str, *, path: str = X, code: int = 200) -> Value:
    body = value if isinstance(value, str) else json.dumps(value)
    async with client.patch(f"{path}?{query}", data=body, headers=APPLY) as response:
        answer: Value = await response.json()
        assert response.status == code, answer
        return answer


async def applied(client: aiohttp.ClientSession, spec: Value, manager: str = "m1", *, query: str = "", code: int = 200) -> Value:
    return await apply(client, thing(spec), f"fieldManager={manager}{query}", code=code)


async def refused(
    client: aiohttp.ClientSession, value: Value | str, query: str, code: int, reason: str, message: str, *, path: str = X
) -> None:
    body = value if isinstance(value, str) else json.dumps(value)
    async with client.patch(f"{path}?{query}", data=body, headers=APPLY) as response:
        status = await assert_status(response, code, reason)
        assert status["message"] == message


def owners(value: Value) -> dict[tuple[str, str, str], Value]:
    """The fields of each owner: by name, operation and subresource."""
    entries = value["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"] for entry in entries}


@pytest.fixture
async def untouched(client: aiohttp.ClientSession, store: MemoryStore) -> AsyncIterator[None]:
    """Nothing may have been stored at the end of the test."""
    before = await store.current_revision()
    yield
    assert await store.current_revision() == before


async def test_apply_creates_and_then_changes(client: aiohttp.ClientSession) -> None:
    """T035"""
    first = await applied(client, {"note": "a"}, code=201)
    [entry] = first["metadata"]["managedFields"]
    assert entry == {
        "manager": "m1",
        "operation": "Apply",
        "apiVersion": "example.dev/v1",
        "time": entry["time"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:note": {}}},
    }
    assert first["spec"] == {"count": 1, "note": "a"}
    again = await applied(client, {"note": "b"})
    assert (again["spec"]["note"], again["metadata"]["generation"]) == ("b", 2)


async def test_yaml_can_be_applied(client: aiohttp.ClientSession) -> None:
    """T035"""
    text = "apiVersion: example.dev/v1\nkind: Thing\nmetadata:\n  name: x\nspec:\n  note: a # said\n  tags: [p, q]\n"
    value = await apply(client, text, "fieldManager=m1", code=201)
    assert value["spec"] == {"count": 1, "note": "a", "tags": ["p", "q"]}


async def test_a_dry_run_stores_nothing(client: aiohttp.ClientSession, untouched: None) -> None:
    value = await applied(client, {"note": "a"}, query="&dryRun=All", code=201)
    assert "resourceVersion" not in value["metadata"]
    assert owners(value) == {("m1", "Apply", ""): {"f:spec": {"f:note": {}}}}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "fieldManager: Required value: is required for apply patch"),
        ("fieldManager=" + "m" * 129, "fieldManager: Too long: may not be more than 128 bytes"),
    ],
)
async def test_an_apply_needs_a_manager(client: aiohttp.ClientSession, untouched: None, query: str, message: str) -> None:
    """T035"""
    await refused(client, thing({}), query, 422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: {message}')


async def test_only_an_apply_can_be_forced(client: aiohttp.ClientSession) -> None:
    """T035"""
    await applied(client, {"note": "a"}, code=201)
    async with client.patch(f"{X}?force=true", data=b"{}", headers=MERGE) as response:
        status = await assert_status(response, 422, "Invalid")
    assert "force: Forbidden: may not be specified for non-apply patch" in status["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "Thing", "metadata": {"name": "x"}}, "invalid object type: /, Kind=Thing"),
        (thing({}, name="y"), "the name of the object (y) does not match the name on the URL (x)"),
        (
            {"apiVersion": "example.dev/v1", "kind": "Thing"},
            "the name of the object (x based on URL) was undeterminable: name must be provided",
        ),
        (thing({}, namespace="other"), "the namespace of the provided object does not match the namespace sent on the request"),
        (thing({}, managedFields=[]), "metadata.managedFields must be nil"),
        (thing({}, managedFields=[{"manager": "x"}]), "metadata.managedFields must be nil"),
        (thing({"timedThing": {}}), TYPED + ".spec.timedThing: field not declared in schema"),
        (thing({"items": [{"name": "A"}, {"name": "A"}]}), TYPED + '.spec.items: duplicate entries for key [name="A"]'),
        ("", "invalid object type: /, Kind="),
        ("null", "invalid object type: /, Kind="),
        (
            "[]",
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}",
        ),
        ("a: b: c", "error encoding patch: yaml: mapping values are not allowed in this context"),
        ("{", "error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected node content"),
    ],
)
async def test_what_cannot_be_applied_is_a_bad_request(
    client: aiohttp.ClientSession, untouched: None, body: Value | str, message: str
) -> None:
    """T035, T039, T043, T044; upstream gives 500 for what does not fit the schema."""
    await refused(client, body, "fieldManager=m1", 400, "BadRequest", message)
    await refused(client, body, "fieldManager=m1&fieldValidation=Ignore&dryRun=All", 400, "BadRequest", message)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("a: &a [x,x]\n" + "".join(f"{n}: &{n} [{', '.join([f'*{m}'] * 9)}]\n" for m, n in pairwise("abcdefghij")), "excessive aliasing"),
        ("[" * 100_000 + "]" * 100_000, "exceeded maximum nesting depth"),
        ('{"a":' * 100_000, "exceeded max depth"),
        ("a: !!python/object/apply:os.system [ls]", "is not supported"),
    ],
    ids=["aliases", "lists", "objects", "tag"],
)
async def test_a_body_that_is_more_than_it_seems_is_refused(
    client: aiohttp.ClientSession, untouched: None, body: str, problem: str
) -> None:
    """T027"""
    async with client.patch(f"{X}?fieldManager=m1", data=body, headers=APPLY) as response:
        status = await assert_status(response, 400, "BadRequest")
        assert problem in status["message"]


async def test_an_object_as_it_was_read_cannot_be_applied(client: aiohttp.ClientSession) -> None:
    """T039"""
    value = await applied(client, {"note": "a"}, code=201)
    await refused(client, value, "fieldManager=m1", 400, "BadRequest", "metadata.managedFields must be nil")


async def test_fields_that_are_there_twice_are_told(client: aiohttp.ClientSession) -> None:
    body = json.dumps(thing({"note": "a"})).replace('"note": "a"', '"note": "b", "note": "a"')
    problem = 'error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key "note" already set in map'
    await refused(client, body, "fieldManager=m1&fieldValidation=Strict", 400, "BadRequest", problem)
    async with client.patch(f"{X}?fieldManager=m1", data=body, headers=APPLY) as response:
        assert response.status == 201
        assert response.headers["Warning"] == '299 - "line 1: key \\"note\\" already set in map"'
        assert (await response.json())["spec"]["note"] == "a"


async def test_applying_the_same_again_writes_nothing(client: aiohttp.ClientSession, store: MemoryStore) -> None:
    """T036"""
    spec = {"note": "a", "items": [{"name": "A"}], "options": {}, "flag": False, "ports": [{"port": 1}]}
    first = await applied(client, spec, code=201)
    revision = await store.current_revision()
    for _ in range(3):
        assert await applied(client, spec) == first
    assert await store.current_revision() == revision
    second = await applied(client, spec, "m2")
    assert await store.current_revision() == revision + 1
    assert second["metadata"]["generation"] == 1
    assert await applied(client, spec, "m2") == second == await applied(client, spec, "m1")
    assert await store.current_revision() == revision + 1


async def test_what_is_known_to_change_nothing_is_answered_as_if_it_were_not(
    client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two objects that are applied to in the same way, one has to be looked at anew each time."""
    remembered = ResourceStore.unchanged_by
    hits = 0

    async def of_x_only(self: ResourceStore, namespace: str, name: str, change: Hashable) -> StoredObject | None:
        nonlocal hits
        found = await remembered(self, namespace, name, change) if name == "x" else None
        hits += found is not None
        return found

    monkeypatch.setattr(ResourceStore, "unchanged_by", of_x_only)
    specs: list[Value] = [{"note": "a"}, {"note": "b", "flag": True}, {"tags": ["t"]}, {"unknown": 1}, {"items": [{"name": "A"}]}]
    options = ("", "", "&force=true", "&fieldValidation=Strict", "&fieldValidation=Ignore", "&dryRun=All")
    chance = random.Random(7)
    for _ in range(200):
        spec, manager, times = chance.choice(specs), chance.choice(("m1", "m2")), chance.choice((1, 2, 3))
        query = f"fieldManager={manager}{chance.choice(options)}"
        path, status = ("/status", {"ready": chance.randrange(2)}) if chance.random() < 0.2 else ("", None)
        for _ in range(times):
            x, y = [await _answered(client, f"{THINGS}/{name}{path}?{query}", thing(spec, name=name, status=status)) for name in "xy"]
            assert x == y
        if chance.random() < 0.2:
            for name in "xy":
                await client.patch(f"{THINGS}/{name}", data=json.dumps({"spec": {"note": "other"}}), headers=MERGE)
    assert hits > 50


async def _answered(client: aiohttp.ClientSession, address: str, value: Value) -> tuple[int, list[str], Any]:
    """What is answered to an apply, without what tells two objects or two moments apart."""
    async with client.patch(address, data=json.dumps(value), headers=APPLY) as response:
        answer = await response.json()
    metadata = answer["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp"):
        metadata.pop(name, None)
    for entry in metadata.get("managedFields", ()):
        entry.pop("time", None)
    metadata.get("managedFields", []).sort(key=json.dumps)  # they stand in the order of their times
    name = value["metadata"]["name"]
    answer = json.loads(json.dumps(answer).replace(f'"{name}"', '"N"').replace(f"/{name};", "/N;").replace(f'\\"{name}\\"', "N"))
    return response.status, response.headers.getall("Warning", []), answer


async def test_updates_and_patches_that_change_nothing_write_nothing(client: aiohttp.ClientSession, store: MemoryStore) -> None:
    """T038"""
    async with client.post(THINGS, json=thing({"note": "a"}, labels={"l": "1"})) as response:
        value = await response.json()
    async with client.patch(f"{X}/status", data=json.dumps({"status": {"ready": 1}}), headers=MERGE) as response:
        value = await response.json()
    revision = await store.current_revision()
    for body in ({}, {"metadata": {"labels": {"l": "1"}}}, {"spec": {"note": "a"}}):
        async with client.patch(f"{X}?fieldManager=other", data=json.dumps(body), headers=MERGE) as response:
            assert await response.json() == value
    for path in (X, f"{X}/status"):
        async with client.put(path, json=value) as response:
            assert await response.json() == value
    assert await store.current_revision() == revision


async def test_a_conflict_names_the_manager_and_each_field(client: aiohttp.ClientSession) -> None:
    await applied(client, {"note": "a", "flag": True}, code=201)
    async with client.patch(f"{X}?fieldManager=m2", data=json.dumps(thing({"note": "b"})), headers=APPLY) as response:
        status = await assert_status(response, 409, "Conflict")
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "m1": .spec.note'
    assert status["details"] == {"causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".spec.note"}]}
    value = await applied(client, {"note": "b"}, "m2", query="&force=true")
    assert owners(value) == {("m1", "Apply", ""): {"f:spec": {"f:flag": {}}}, ("m2", "Apply", ""): {"f:spec": {"f:note": {}}}}


async def test_a_field_that_is_given_up_goes(client: aiohttp.ClientSession) -> None:
    """T045"""
    items = [{"name": "A"}, {"name": "B"}]
    await apply(client, thing({"count": 3, "items": items}, labels={"a": "1"}), "fieldManager=m1", code=201)
    await applied(client, {"count": 3}, "m2")
    value = await apply(client, thing({"items": items[:1]}), "fieldManager=m1")
    assert value["spec"] == {"count": 3, "items": items[:1]}
    assert "labels" not in value["metadata"]
    value = await apply(client, thing(), "fieldManager=m2")
    assert value["spec"] == {"count": 1, "items": items[:1]}
    assert list(owners(value)) == [("m1", "Apply", "")]


async def test_status_is_owned_through_its_subresource_only(client: aiohttp.ClientSession) -> None:
    """T040"""
    first = await apply(client, thing({"note": "a"}, status={"ready": 9}), "fieldManager=m1", code=201)
    assert "status" not in first
    assert owners(first) == {("m1", "Apply", ""): {"f:spec": {"f:note": {}}}}

    def condition(status: str) -> Value:
        moment = "2020-01-01T00:00:00Z"
        return {"type": "A", "status": status, "reason": "R", "message": "m", "lastTransitionTime": moment}

    status = {"conditions": [condition("True"), {**condition("True"), "type": "B"}]}
    value = await apply(client, thing(status=status), "fieldManager=m2", path=f"{X}/status")
    fields = {"k:" + json.dumps({"type": kind}, separators=(",", ":")) for kind in "AB"}
    assert set(owners(value)["m2", "Apply", "status"]["f:status"]["f:conditions"]) == fields
    message = 'Apply failed with 1 conflict: conflict with "m2" with subresource "status": .status.conditions[type="A"].status'
    other = thing(status={"conditions": [condition("False")]})
    await refused(client, other, "fieldManager=m3", 409, "Conflict", message, path=f"{X}/status")
    await refused(client, other, "fieldManager=kubectl", 409, "Conflict", message, path=f"{X}/status")


async def test_a_subresource_creates_nothing(client: aiohttp.ClientSession, untouched: None) -> None:
    for subresource in ("status", "scale"):
        path = f"{X}/{subresource}"
        await refused(client, thing(), "fieldManager=m1", 404, "NotFound", 'things.example.dev "x" not found', path=path)


async def test_preconditions_in_what_is_applied(client: aiohttp.ClientSession) -> None:
    problem = "uid mismatch: the provided object specified uid u, and no existing object was found"
    message = f'Operation cannot be fulfilled on things.example.dev "x": {problem}'
    await refused(client, thing({}, uid="u"), "fieldManager=m1", 409, "Conflict", message)
    value = await apply(client, thing({}, resourceVersion="5"), "fieldManager=m1", code=201)
    assert value["metadata"]["resourceVersion"] != "5"
    message = message.replace(problem, "the object has been modified; please apply your changes to the latest version and try again")
    await refused(client, thing({}, resourceVersion="5000"), "fieldManager=m1", 409, "Conflict", message)


async def test_a_null_that_cannot_be_stored_says_nothing(client: aiohttp.ClientSession) -> None:
    """T029"""
    value = await applied(client, {"note": None, "count": None}, code=201)
    assert value["spec"] == {"count": 1}
    assert owners(value) == {("m1", "Apply", ""): {"f:spec": {"f:count": {}}}}


async def test_items_are_put_in_the_order_that_is_applied(client: aiohttp.ClientSession) -> None:
    """T043"""
    async with client.post(THINGS, json=thing({"items": [{"name": "A"}, {"name": "A"}]})) as response:
        status = await assert_status(response, 422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "spec.items[1]"
    await applied(client, {"items": [{"name": "A", "value": "1"}, {"name": "B"}]}, code=201)
    value = await applied(client, {"items": [{"name": "B"}, {"name": "A", "value": "1"}]})
    assert value["spec"]["items"] == [{"name": "B"}, {"name": "A", "value": "1"}]


# Owners of other writes


async def test_the_manager_is_named_by_the_option_or_by_the_user_agent(client: aiohttp.ClientSession) -> None:
    async with client.post(THINGS, json=thing({"note": "a"}), headers={"User-Agent": "tool/1.0 (linux)"}) as response:
        assert list(owners(await response.json())) == [("tool", "Update", "")]
    async with client.patch(f"{X}?fieldManager=editor", data=json.dumps({"spec": {"note": "b"}}), headers=MERGE) as response:
        value = await response.json()
    assert owners(value)["editor", "Update", ""] == {"f:spec": {"f:note": {}}}
    value["spec"]["note"] = "c"
    async with client.put(X, json=value, headers={"User-Agent": "/"}) as response:
        assert owners(await response.json())["unknown", "Update", ""] == {"f:spec": {"f:note": {}}}


async def test_no_manager_can_forge_or_drop_entries_but_all_can_be_forgotten(client: aiohttp.ClientSession) -> None:
    value = await applied(client, {"note": "a"}, code=201)
    kept = value["metadata"]["managedFields"]
    for entries in ([], None, [{**kept[0], "operation": "Foo"}], [{**kept[0], "fieldsV1": {"x": {}}}]):
        async with client.patch(X, data=json.dumps({"metadata": {"managedFields": entries}}), headers=MERGE) as response:
            assert (await response.json())["metadata"]["managedFields"] == kept
    async with client.patch(X, data=json.dumps({"metadata": {"managedFields": [{}]}}), headers=MERGE) as response:
        assert "managedFields" not in (await response.json())["metadata"]
    value = await applied(client, {"flag": True})
    assert owners(value)["before-first-apply", "Update", ""] == {"f:spec": {".": {}, "f:count": {}, "f:note": {}}}


# Scale


async def test_the_wanted_replicas_belong_to_who_scales(client: aiohttp.ClientSession) -> None:
    await applied(client, {"count": 3, "note": "a"}, code=201)
    async with client.patch(f"{X}/scale?fieldManager=hpa", data=json.dumps({"spec": {"replicas": 9}}), headers=MERGE) as response:
        assert "managedFields" not in (await response.json())["metadata"]
    async with client.get(X) as response:
        value = await response.json()
    assert owners(value) == {
        ("m1", "Apply", ""): {"f:spec": {"f:note": {}}},
        ("hpa", "Update", "scale"): {"f:spec": {"f:count": {}}},
    }
    message = 'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using example.dev/v1: .spec.count'
    await refused(client, thing({"count": 3, "note": "a"}), "fieldManager=m1", 409, "Conflict", message)


async def test_a_scale_that_changes_nothing_writes_nothing(client: aiohttp.ClientSession, store: MemoryStore) -> None:
    """Upstream gives the field a second entry of the same owner."""
    async with client.post(THINGS, json=thing({"count": 3})) as response:
        assert response.status == 201
    revision = await store.current_revision()
    async with client.get(f"{X}/scale") as response:
        scale = await response.json()
    async with client.put(f"{X}/scale", json=scale) as response:
        assert await response.json() == scale
    assert await store.current_revision() == revision


async def test_a_scale_can_be_applied(client: aiohttp.ClientSession) -> None:
    """Upstream fails with 500 for a custom resource unless the number stays as it is."""
    await applied(client, {"count": 3}, code=201)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}, "spec": {"replicas": 5}}
    message = 'Apply failed with 1 conflict: conflict with "m1": .spec.replicas'
    await refused(client, scale, "fieldManager=sc", 409, "Conflict", message, path=f"{X}/scale")
    answer = await apply(client, scale, "fieldManager=sc&force=true", path=f"{X}/scale")
    assert answer["spec"] == {"replicas": 5}
    async with client.get(X) as response:
        assert owners(await response.json()) == {("sc", "Apply", "scale"): {"f:spec": {"f:count": {}}}}
    answer = await apply(client, {**scale, "spec": {}}, "fieldManager=sc", path=f"{X}/scale")
    assert answer["spec"] == {"replicas": 5}
    async with client.get(X) as response:
        value = await response.json()
    assert (value["spec"], owners(value)) == ({"count": 5}, {})
