"""DELETE of an object and of a collection, over real HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.apiserver.endpoints.gadget_requests import GADGETS, JSON, JSON_PATCH, MERGE, YAML, gadget
from tests.apiserver.reading import watching
from tests.apiserver.status_assertions import assert_status

X = f"{GADGETS}/x"
FINALIZER = "x.example/f"


async def created(client: aiohttp.ClientSession, name: str = "x", **metadata: Any) -> dict[str, Any]:
    async with client.post(GADGETS, json=gadget(name, **metadata)) as response:
        value: dict[str, Any] = await response.json()
        return value


async def test_a_deleted_object_is_gone_and_its_uid_told(client: aiohttp.ClientSession) -> None:
    """T072, T077"""
    uid = (await created(client))["metadata"]["uid"]
    async with client.delete(X) as response:
        assert response.status == 200
        assert await response.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "x", "group": "example.dev", "kind": "gadgets", "uid": uid},
        }
    async with client.delete(X) as response:
        await assert_status(response, 404, "NotFound")


@pytest.mark.parametrize(
    ("body", "headers"),
    [({"metadata": {"finalizers": None}}, MERGE), ([{"op": "remove", "path": "/metadata/finalizers/0"}], JSON_PATCH)],
    ids=["merge", "json"],
)
async def test_finalizers_keep_an_object_until_the_last_is_removed(
    client: aiohttp.ClientSession, body: Any, headers: dict[str, str]
) -> None:
    """T072"""
    value = await created(client, finalizers=[FINALIZER])
    async with client.delete(X) as response:
        marked = await response.json()
        assert response.status == 200
    assert marked["kind"] == "Gadget"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["resourceVersion"] != value["metadata"]["resourceVersion"]
    async with client.delete(X) as response:
        assert await response.json() == marked
    async with client.patch(X, json=body, headers=headers) as response:
        assert response.status == 200
        assert "finalizers" not in (await response.json())["metadata"]
    async with client.get(X) as response:
        await assert_status(response, 404, "NotFound")


@pytest.mark.parametrize("finalizers", [[], [FINALIZER]], ids=["plain", "with-finalizer"])
async def test_preconditions_are_kept(client: aiohttp.ClientSession, finalizers: list[str]) -> None:
    """T074"""
    value = await created(client, finalizers=finalizers)
    metadata = value["metadata"]
    for options in ({"preconditions": {"uid": "old"}}, {"preconditions": {"resourceVersion": "1"}}):
        for query in ("", "?dryRun=All"):
            async with client.delete(X + query, json=options) as response:
                status = await assert_status(response, 409, "Conflict")
            assert status["message"].startswith('Operation cannot be fulfilled on Gadget.example.dev "x": the ')
            assert "precondition" in status["message"]
    async with client.get(X) as response:
        assert await response.json() == value
    right = {"preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}}
    async with client.delete(X, json=right) as response:
        assert response.status == 200
    async with client.delete(f"{GADGETS}/absent", json=right) as response:
        await assert_status(response, 404, "NotFound")


async def test_the_propagation_policy_comes_from_query_or_body(client: aiohttp.ClientSession) -> None:
    """T076"""
    await created(client)
    async with client.delete(f"{X}?propagationPolicy=Foreground") as response:
        assert (await response.json())["metadata"]["finalizers"] == ["foregroundDeletion"]
    async with client.delete(X, data=b"propagationPolicy: Orphan", headers=YAML) as response:
        assert (await response.json())["metadata"]["finalizers"] == ["orphan"]
    async with client.delete(X, json={"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}) as response:
        assert (await response.json())["status"] == "Success"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("propagationPolicy=Bogus", "propagationPolicy"),
        ("propagationPolicy=Orphan&orphanDependents=true", "propagationPolicy"),
        ("dryRun=true", "dryRun"),
    ],
)
async def test_options_that_cannot_be_are_invalid(client: aiohttp.ClientSession, query: str, field: str) -> None:
    """T014, T076"""
    await created(client)
    async with client.delete(f"{X}?{query}") as response:
        status = await assert_status(response, 422, "Invalid")
    assert status["details"]["kind"] == "DeleteOptions"
    assert status["details"]["causes"][0]["field"] == field


async def test_dependents_first_the_old_way_is_202(client: aiohttp.ClientSession) -> None:
    await created(client, finalizers=[FINALIZER])
    async with client.delete(f"{X}?orphanDependents=false") as response:
        assert response.status == 202


@pytest.mark.parametrize("query", ["?dryRun=All", ""], ids=["query", "body"])
async def test_a_dry_run_deletes_nothing(client: aiohttp.ClientSession, query: str) -> None:
    """T014"""
    value = await created(client)
    body = None if query else {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}
    for path in (X, GADGETS):
        async with client.delete(path + query, json=body) as response:
            assert response.status == 200
    async with client.get(X) as response:
        assert await response.json() == value


async def test_a_watch_sees_the_mark_as_a_change_and_the_last_finalizers_end_as_the_deletion(client: aiohttp.ClientSession) -> None:
    """T072"""
    value = await created(client, finalizers=[FINALIZER])
    async with watching(client, resourceVersion=value["metadata"]["resourceVersion"]) as events:
        async with client.delete(X) as response:
            marked = await response.json()
        assert await events.next() == {"type": "MODIFIED", "object": marked}
        async with client.get(X) as response:
            assert await response.json() == marked
        async with client.patch(X, json={"metadata": {"finalizers": None}}, headers=MERGE) as response:
            assert response.status == 200
        event = await events.next()
    metadata = event["object"]["metadata"]
    assert (event["type"], metadata["uid"]) == ("DELETED", value["metadata"]["uid"])
    assert int(metadata["resourceVersion"]) > int(marked["metadata"]["resourceVersion"])


async def collection(client: aiohttp.ClientSession) -> None:
    for number in range(12):
        finalizers = [FINALIZER] if number < 2 else []
        await created(client, f"g{number:02}", labels={"app": "a" if number < 6 else "b"}, finalizers=finalizers)


async def names(client: aiohttp.ClientSession) -> list[str]:
    async with client.get(GADGETS) as response:
        return [item["metadata"]["name"] for item in (await response.json())["items"]]


async def test_a_collection_is_deleted_by_selector(client: aiohttp.ClientSession) -> None:
    """T078"""
    await collection(client)
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    async with client.delete(f"{GADGETS}?labelSelector=app=a", json=options) as response:
        deleted = await response.json()
        assert response.status == 200
    assert deleted["kind"] == "GadgetList"
    assert [item["metadata"]["name"] for item in deleted["items"]] == [f"g{number:02}" for number in range(6)]
    assert await names(client) == ["g00", "g01", *(f"g{number:02}" for number in range(6, 12))]
    async with client.get(f"{GADGETS}/g00") as response:
        assert (await response.json())["metadata"]["deletionTimestamp"]


async def test_a_limit_bounds_what_is_deleted(client: aiohttp.ClientSession) -> None:
    """T078"""
    await collection(client)
    async with client.delete(f"{GADGETS}?labelSelector=app=b&limit=3") as response:
        assert len((await response.json())["items"]) == 3
    assert len(await names(client)) == 9


async def test_an_empty_collection_is_an_empty_list(client: aiohttp.ClientSession) -> None:
    """T078"""
    async with client.delete(GADGETS) as response:
        assert response.status == 200
        assert (await response.json())["items"] == []


async def test_a_dry_run_shows_what_of_a_collection_would_be_deleted(client: aiohttp.ClientSession) -> None:
    """T078"""
    await collection(client)
    before = await names(client)
    async with client.delete(f"{GADGETS}?labelSelector=app=a&dryRun=All") as response:
        shown = await response.json()
    assert [item["metadata"]["name"] for item in shown["items"]] == [f"g{number:02}" for number in range(6)]
    assert await names(client) == before


async def test_a_collection_is_deleted_by_an_empty_body_of_a_type(client: aiohttp.ClientSession) -> None:
    """T078: many clients name a media type whether they send something or not."""
    await collection(client)
    async with client.delete(f"{GADGETS}?labelSelector=app=b", data=b"", headers=JSON) as response:
        assert response.status == 200, await response.text()
        assert len((await response.json())["items"]) == 6
    assert await names(client) == [f"g{number:02}" for number in range(6)]


async def test_objects_of_all_namespaces_cannot_be_deleted_at_once(client: aiohttp.ClientSession) -> None:
    """T078"""
    await created(client)
    async with client.delete("/apis/example.dev/v1/gadgets") as response:
        await assert_status(response, 404, "NotFound")
    assert await names(client) == ["x"]


async def test_what_can_be_read_is_not_deleted_unsafely(client: aiohttp.ClientSession) -> None:
    await created(client)
    async with client.delete(X, json={"ignoreStoreReadErrorWithClusterBreakingPotential": True}) as response:
        status = await assert_status(response, 409, "Conflict")
    assert status["message"].endswith("unsafe deletion is not allowed because the object is decodable from storage")
    async with client.get(X) as response:
        assert response.status == 200


@pytest.mark.parametrize(("number", "told"), [("1.5", "1.5"), ("9223372036854775808", "9223372036854775808")], ids=["fraction", "large"])
async def test_a_number_that_is_no_grace_period_is_repeated(client: aiohttp.ClientSession, number: str, told: str) -> None:
    async with client.delete(X, data=f'{{"gracePeriodSeconds":{number}}}', headers={"Content-Type": "application/json"}) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"].startswith(f"json: cannot unmarshal number {told} into Go struct field")


async def test_of_a_deletion_and_a_new_finalizer_one_comes_first(client: aiohttp.ClientSession) -> None:
    """Whoever was told that the object is held finds it there, and whoever was told that it is gone does not."""

    async def delete() -> dict[str, Any]:
        async with client.delete(X) as response:
            assert response.status == 200
            told: dict[str, Any] = await response.json()
            return told

    async def hold() -> int:
        async with client.patch(X, json={"metadata": {"finalizers": [FINALIZER]}}, headers=MERGE) as response:
            return response.status

    for _ in range(10):
        await created(client)
        deleted, held = await asyncio.gather(delete(), hold())
        async with client.get(X) as response:
            if deleted["kind"] == "Status":
                assert (held, response.status) == (404, 404)
                continue
            assert (held, response.status) == (200, 200)
            assert (await response.json())["metadata"]["deletionTimestamp"] == deleted["metadata"]["deletionTimestamp"]
        async with client.patch(X, json={"metadata": {"finalizers": None}}, headers=MERGE) as response:
            assert response.status == 200
