"""PUT of an object and of its status, over real HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.apiserver.endpoints.gadget_requests import GADGETS, MERGE, gadget
from tests.apiserver.status_assertions import assert_status

X = f"{GADGETS}/x"
Change = Callable[[dict[str, Any]], Any]


async def created(client: aiohttp.ClientSession, **metadata: Any) -> dict[str, Any]:
    async with client.post(GADGETS, json=gadget(**metadata)) as response:
        value: dict[str, Any] = await response.json()
        return value


async def test_an_object_is_replaced(client: aiohttp.ClientSession) -> None:
    value = await created(client, labels={"a": "b"})
    del value["metadata"]["labels"], value["metadata"]["uid"], value["metadata"]["creationTimestamp"]
    value["spec"]["replicas"] = 5
    async with client.put(X, json=value) as response:
        replaced = await response.json()
        assert response.status == 200, replaced
    assert replaced["spec"] == {"replicas": 5}
    assert "labels" not in replaced["metadata"]
    assert replaced["metadata"]["generation"] == 2
    assert replaced["metadata"]["uid"]
    assert replaced["metadata"]["creationTimestamp"]


async def test_the_same_object_again_changes_nothing(client: aiohttp.ClientSession) -> None:
    """T038"""
    value = await created(client)
    for path in (X, f"{X}/status"):
        async with client.put(path, json=value) as response:
            assert await response.json() == value


@pytest.mark.parametrize(
    ("change", "code", "reason", "message"),
    [
        pytest.param(
            lambda value: value["metadata"].pop("resourceVersion"),
            422,
            "Invalid",
            'gadgets.example.dev "x" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
            id="no-version",
        ),
        pytest.param(
            lambda value: value["metadata"].update(resourceVersion="1"),
            409,
            "Conflict",
            'Operation cannot be fulfilled on gadgets.example.dev "x": the object has been modified; '
            "please apply your changes to the latest version and try again",
            id="stale-version",
        ),
        pytest.param(lambda value: value["metadata"].update(resourceVersion="abc"), 422, "Invalid", "ParseUint", id="no-number"),
        pytest.param(lambda value: value["metadata"].update(uid="other"), 409, "Conflict", "UID in precondition: other", id="other-uid"),
        pytest.param(
            lambda value: value["metadata"].update(name="y"),
            400,
            "BadRequest",
            "the name of the object (y) does not match the name on the URL (x)",
            id="other-name",
        ),
        pytest.param(
            lambda value: value["metadata"].pop("name"),
            400,
            "BadRequest",
            "the name of the object (x based on URL) was undeterminable: name must be provided",
            id="no-name",
        ),
        pytest.param(
            lambda value: value["metadata"].update(namespace="ns2"),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
            id="other-namespace",
        ),
        pytest.param(lambda value: value.update(kind="Widget"), 422, "Invalid", 'kind: Invalid value: "Widget": must be Gadget', id="kind"),
        pytest.param(lambda value: value.update(apiVersion="example.dev/v2"), 400, "BadRequest", "does not match", id="version"),
    ],
)
async def test_what_must_not_change_is_told(client: aiohttp.ClientSession, change: Change, code: int, reason: str, message: str) -> None:
    """T020, T021"""
    value = await created(client)
    change(value)
    async with client.put(X, json=value) as response:
        assert message in (await assert_status(response, code, reason))["message"]


@pytest.mark.parametrize("metadata", [{}, {"resourceVersion": "5"}], ids=["without-version", "with-version"])
async def test_a_put_does_not_create(client: aiohttp.ClientSession, metadata: dict[str, Any]) -> None:
    """T021"""
    async with client.put(X, json=gadget(**metadata)) as response:
        assert (await assert_status(response, 404, "NotFound"))["message"] == 'gadgets.example.dev "x" not found'


async def test_a_dry_run_shows_the_object_under_its_old_version(client: aiohttp.ClientSession) -> None:
    """T014"""
    value = await created(client)
    value["spec"]["replicas"] = 5
    async with client.put(f"{X}?dryRun=All", json=value) as response:
        shown = await response.json()
    assert shown["spec"]["replicas"] == 5
    assert shown["metadata"]["resourceVersion"] == value["metadata"]["resourceVersion"]
    async with client.get(X) as response:
        assert (await response.json())["spec"]["replicas"] == 1


async def test_the_main_address_does_not_change_the_status(client: aiohttp.ClientSession) -> None:
    """T086"""
    value = await created(client)
    async with client.put(X, json={**value, "status": {"phase": "up"}}) as response:
        assert "status" not in await response.json()
    async with client.patch(f"{X}/status", json={"status": {"phase": "up"}}, headers=MERGE) as response:
        value = await response.json()
    del value["status"]
    async with client.put(X, json=value) as response:
        assert (await response.json())["status"] == {"phase": "up"}


async def test_the_status_address_changes_the_status_only(client: aiohttp.ClientSession) -> None:
    """T086"""
    value = await created(client, labels={"a": "b"})
    sent = {**value, "metadata": {**value["metadata"], "labels": {"c": "d"}}, "spec": {"replicas": 9}, "status": {"readyReplicas": 1}}
    async with client.put(f"{X}/status", json=sent) as response:
        updated = await response.json()
    assert updated["status"] == {"readyReplicas": 1}
    assert updated["spec"] == value["spec"]
    assert updated["metadata"]["labels"] == {"a": "b"}
    assert updated["metadata"]["generation"] == 1
    assert updated["metadata"]["resourceVersion"] != value["metadata"]["resourceVersion"]
    async with client.get(f"{X}/status") as response:
        assert await response.json() == updated
    async with client.put(f"{X}/status", json=sent) as response:
        await assert_status(response, 409, "Conflict")
    async with client.put(f"{X}/status", json=gadget()) as response:
        await assert_status(response, 422, "Invalid")


async def test_a_status_of_the_wrong_type_is_told(client: aiohttp.ClientSession) -> None:
    """T086"""
    value = await created(client)
    async with client.put(f"{X}/status", json={**value, "status": {"phase": 5}}) as response:
        status = await assert_status(response, 422, "Invalid")
    assert "status.phase" in status["message"]


async def test_the_status_of_an_object_that_is_being_deleted_can_be_written(client: aiohttp.ClientSession) -> None:
    """T086"""
    await created(client, finalizers=["x.example/f"])
    async with client.delete(X) as response:
        marked = await response.json()
    async with client.put(f"{X}/status", json={**marked, "status": {"phase": "ending"}}) as response:
        assert (await response.json())["status"] == {"phase": "ending"}


async def test_an_object_outside_of_namespaces_lives_the_same_life(client: aiohttp.ClientSession) -> None:
    address = "/apis/example.dev/v1/clustergadgets"
    sent = {**gadget(namespace="ns1"), "kind": "ClusterGadget", "status": {"phase": "unknown here"}}
    async with client.post(address, json=sent) as response:
        value = await response.json()
        assert response.status == 201, value
        assert response.headers["Warning"] == '299 - "unknown field \\"status\\""'
    assert "namespace" not in value["metadata"]
    assert "status" not in value
    value["spec"]["replicas"] = 5
    async with client.put(f"{address}/x", json=value) as response:
        assert (await response.json())["metadata"]["generation"] == 2
    async with client.put(f"{address}/x/status", json=value) as response:
        await assert_status(response, 404, "NotFound")
    async with client.delete(address) as response:
        assert [item["metadata"]["name"] for item in (await response.json())["items"]] == ["x"]
    async with client.get(f"{address}/x") as response:
        await assert_status(response, 404, "NotFound")
