"""PATCH of an object and of its status, over real HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from tests.apiserver.endpoints.gadget_requests import GADGETS, JSON_PATCH, MERGE, gadget
from tests.apiserver.status_assertions import assert_status

X = f"{GADGETS}/x"


@pytest.fixture
async def value(client: aiohttp.ClientSession) -> dict[str, Any]:
    async with client.post(GADGETS, json=gadget(spec={"replicas": 2, "note": "hello"})) as response:
        created: dict[str, Any] = await response.json()
        return created


async def test_a_merge_patch_changes_what_it_names(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"note": None, "replicas": 3}}
    async with client.patch(X, json=patch, headers=MERGE) as response:
        patched = await response.json()
        assert response.status == 200
    assert patched["spec"] == {"replicas": 3}
    assert patched["metadata"]["labels"] == {"a": "b"}
    assert patched["metadata"]["generation"] == 2


async def test_a_removed_field_gets_its_default(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T029"""
    async with client.patch(X, json={"spec": {"replicas": None}}, headers=MERGE) as response:
        assert (await response.json())["spec"]["replicas"] == 1


@pytest.mark.parametrize(
    ("patch", "headers"),
    [({}, MERGE), ({"spec": {"replicas": 2}}, MERGE), ([], JSON_PATCH), ({"metadata": {"generation": 99}}, MERGE)],
    ids=["empty", "same-value", "no-operations", "generation"],
)
async def test_a_patch_that_changes_nothing_writes_nothing(
    client: aiohttp.ClientSession, value: dict[str, Any], patch: Any, headers: dict[str, str]
) -> None:
    """T030, T038"""
    for path in (X, f"{X}/status"):
        async with client.patch(path, json=patch, headers=headers) as response:
            assert await response.json() == value


async def test_concurrent_patches_all_succeed(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    async def label(number: int) -> int:
        async with client.patch(X, json={"metadata": {"labels": {f"l{number}": "x"}}}, headers=MERGE) as response:
            return response.status

    assert set(await asyncio.gather(*(label(number) for number in range(30)))) == {200}
    async with client.get(X) as response:
        assert len((await response.json())["metadata"]["labels"]) == 30


async def test_a_resource_version_in_a_patch_is_a_precondition(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    async with client.patch(X, json={"metadata": {"resourceVersion": "1"}}, headers=MERGE) as response:
        await assert_status(response, 409, "Conflict")
    current = value["metadata"]["resourceVersion"]
    async with client.patch(X, json={"metadata": {"resourceVersion": current}, "spec": {"replicas": 4}}, headers=MERGE) as response:
        assert response.status == 200
    async with client.patch(X, json={"metadata": {"uid": "other"}}, headers=MERGE) as response:
        assert 'metadata.uid: Invalid value: "other": field is immutable' in (await assert_status(response, 422, "Invalid"))["message"]


REFUSED = "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("patch", "code", "reason", "message"),
    [
        pytest.param([{"op": "test", "path": "/spec/replicas", "value": 9}], 422, "Invalid", REFUSED, id="test-fails"),
        pytest.param([{"op": "remove", "path": "/spec/absent"}], 422, "Invalid", REFUSED, id="missing-path"),
        pytest.param([{"op": "add", "path": "/metadata/finalizers/99", "value": "x"}], 422, "Invalid", REFUSED, id="index"),
        pytest.param([{"op": "frob", "path": "/x"}], 422, "Invalid", REFUSED, id="unknown-operation"),
        pytest.param([{"op": "add", "path": "/metadata/labels/a~1b", "value": "1"}], 422, "Invalid", REFUSED, id="no-labels"),
        pytest.param(
            {},
            400,
            "BadRequest",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
            id="object",
        ),
        pytest.param(
            [{"op": "replace", "path": "/spec/replicas", "value": "x"}], 422, "Invalid", "spec.replicas in body must be of type", id="type"
        ),
        pytest.param([{"op": "replace", "path": "/kind", "value": 5}], 422, "Invalid", "couldn't get version/kind", id="kind"),
    ],
)
async def test_a_json_patch_that_cannot_be_applied_is_told(
    client: aiohttp.ClientSession, value: dict[str, Any], patch: Any, code: int, reason: str, message: str
) -> None:
    """T033"""
    async with client.patch(X, json=patch, headers=JSON_PATCH) as response:
        assert message in (await assert_status(response, code, reason))["message"]
    async with client.get(X) as response:
        assert await response.json() == value


@pytest.mark.parametrize(("body", "message"), [(b"nonsense", "invalid JSON patch"), (b"null", "Invalid JSON Patch"), (b"[1]", "array")])
async def test_a_merge_patch_that_is_none_is_told(client: aiohttp.ClientSession, value: dict[str, Any], body: bytes, message: str) -> None:
    """T033"""
    async with client.patch(X, data=body, headers=MERGE) as response:
        assert message in (await assert_status(response, 400, "BadRequest"))["message"]


async def test_json_patch_operations_work(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T033"""
    operations = [
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "1"},
        {"op": "copy", "from": "/spec/note", "path": "/metadata/labels/note"},
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/replicas", "value": 7},
    ]
    async with client.patch(X, json=operations, headers=JSON_PATCH) as response:
        patched = await response.json()
    assert patched["metadata"]["labels"] == {"a/b": "1", "note": "hello"}
    assert patched["spec"]["replicas"] == 7


async def test_too_many_operations_are_refused(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    test = {"op": "test", "path": "/spec/replicas", "value": 2}
    async with client.patch(X, data=orjson.dumps([test] * 10_001), headers=JSON_PATCH) as response:
        status = await assert_status(response, 413, "RequestEntityTooLarge")
    assert status["message"].endswith("The allowed maximum operations in a JSON patch is 10000, got 10001")


@pytest.mark.parametrize(
    "content_type",
    ["application/strategic-merge-patch+json", "application/json", "APPLICATION/MERGE-PATCH+JSON"],
)
async def test_patch_types_that_are_not_served_are_told(client: aiohttp.ClientSession, value: dict[str, Any], content_type: str) -> None:
    """T032"""
    async with client.patch(X, data=b"{}", headers={"Content-Type": content_type}) as response:
        status = await assert_status(response, 415, "UnsupportedMediaType")
    accepted = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    assert status["message"].endswith(f"accepted media types include: {accepted}")


async def test_a_charset_does_not_matter(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T032"""
    headers = {"Content-Type": "application/merge-patch+json; charset=utf-8"}
    async with client.patch(X, data=b'{"spec":{"replicas":9}}', headers=headers) as response:
        assert (await response.json())["spec"]["replicas"] == 9


async def test_unknown_fields_of_a_patch_are_told_of_or_refused(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T015"""
    body = b'{"spec":{"foo":1,"foo":2},"metadata":{"zz":1}}'
    async with client.patch(X, data=body, headers=MERGE) as response:
        assert response.headers.getall("Warning") == [
            '299 - "duplicate field \\"spec.foo\\""',
            '299 - "unknown field \\"metadata.zz\\""',
            '299 - "unknown field \\"spec.foo\\""',
        ]
    async with client.patch(f"{X}?fieldValidation=Ignore", data=body, headers=MERGE) as response:
        assert "Warning" not in response.headers
    async with client.patch(f"{X}?fieldValidation=Strict", data=body, headers=MERGE) as response:
        status = await assert_status(response, 422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "patch"
    assert status["message"].endswith(
        'strict decoding error: duplicate field "spec.foo", unknown field "metadata.zz", unknown field "spec.foo"'
    )
    strange = b'[{"op":"test","path":"/spec/replicas","value":2,"why":1}]'
    async with client.patch(X, data=strange, headers=JSON_PATCH) as response:
        assert response.headers["Warning"] == '299 - "json patch unknown field \\"[0].why\\""'


async def test_a_dry_run_changes_nothing(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T014"""
    for patch, headers in (({"spec": {"replicas": 9}}, MERGE), ([{"op": "replace", "path": "/spec/replicas", "value": 9}], JSON_PATCH)):
        async with client.patch(f"{X}?dryRun=All", json=patch, headers=headers) as response:
            assert (await response.json())["spec"]["replicas"] == 9
    async with client.get(X) as response:
        assert await response.json() == value


async def test_a_patch_does_not_create(client: aiohttp.ClientSession) -> None:
    async with client.patch(X, json={}, headers=MERGE) as response:
        await assert_status(response, 404, "NotFound")


async def test_a_status_can_be_patched_both_ways(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T086"""
    both = {"status": {"phase": "up"}, "spec": {"replicas": 9}}
    async with client.patch(f"{X}/status", json=both, headers=MERGE) as response:
        patched = await response.json()
    assert (patched["status"], patched["spec"], patched["metadata"]["generation"]) == ({"phase": "up"}, value["spec"], 1)
    operations = [{"op": "replace", "path": "/status/phase", "value": "down"}]
    async with client.patch(f"{X}/status", json=operations, headers=JSON_PATCH) as response:
        assert (await response.json())["status"] == {"phase": "down"}
