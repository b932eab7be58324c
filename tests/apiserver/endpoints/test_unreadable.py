"""An object that lies in the store and cannot be read: it is named to whom it concerns, and concerns nobody else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.auth import ALLOW, NO_OPINION, Decision
from apiserver.auth.authorization import Authorization
from apiserver.certificates import Certificates
from apiserver.config import Config
from apiserver.request import RequestInfo, User
from storage.memory import MemoryStore
from tests.apiserver.reading import ALL_GADGETS, GADGETS, TABLE, brief, change, create, gadgets_of, read, watching
from tests.apiserver.running import listening
from tests.apiserver.status_assertions import assert_status

KEY = "/registry/example.dev/gadgets/ns1/broken"
UNSAFE = {"ignoreStoreReadErrorWithClusterBreakingPotential": "true"}


async def overwrite(store: MemoryStore, value: bytes = b"no JSON") -> int:
    """Put something under the key, past the server."""
    current = await store.get(KEY)
    return (await store.update(KEY, value, expected_revision=current.revision)).revision


async def test_others_are_served_and_lists_that_cover_it_name_it(client: aiohttp.ClientSession, store: MemoryStore) -> None:
    await create(client, "broken", labels={"app": "x"})
    await create(client, "whole")
    elsewhere = await create(client, "whole", namespace="ns2")
    before = elsewhere["metadata"]["resourceVersion"]
    await overwrite(store)
    assert (await read(client, f"{GADGETS}/whole"))["metadata"]["name"] == "whole"
    assert len((await read(client, gadgets_of("ns2")))["items"]) == 1
    assert len((await read(client, ALL_GADGETS, resourceVersion=before, resourceVersionMatch="Exact"))["items"]) == 3
    await change(client, "whole", {"spec": {"replicas": 3}})
    for query in ("", "?labelSelector=app%3Dy", "?limit=1", "?fieldSelector=metadata.name%3Dbroken"):
        async with client.get(GADGETS + query) as response:
            status = await assert_status(response, 500, "StorageReadError")
        assert status["message"].startswith("failed to read one or more gadgets.example.dev from the storage")
        assert [cause["field"] for cause in status["details"]["causes"]] == [KEY]
    async with client.get(ALL_GADGETS) as response:
        await assert_status(response, 500, "StorageReadError")
    async with client.get(f"{GADGETS}?fieldSelector=metadata.name%3Dwhole") as response:
        assert response.status == 200


async def test_a_watch_ends_with_it_and_others_go_on(client: aiohttp.ClientSession, store: MemoryStore) -> None:
    await create(client, "broken")
    begin = await create(client, "whole", namespace="ns2")
    version = begin["metadata"]["resourceVersion"]
    async with (
        watching(client, ALL_GADGETS, resourceVersion=version) as everything,
        watching(client, gadgets_of("ns2"), resourceVersion=version) as other,
    ):
        await create(client, "before")
        assert brief(await everything.next()) == ("ADDED", "before")
        await overwrite(store)
        await create(client, "after")
        await create(client, "after", namespace="ns2")
        event = await everything.next()
        assert (event["type"], event["object"]["reason"]) == ("ERROR", "StorageReadError")
        assert KEY in event["object"]["message"]
        await everything.end()
        assert brief(await other.next()) == ("ADDED", "after")
    for query in ({}, {"resourceVersion": version}):  # what exists, and what has happened
        async with watching(client, ALL_GADGETS, **query) as again:
            events = [await again.next()]
            while events[-1]["type"] != "ERROR":
                events.append(await again.next())
            assert events[-1]["object"]["reason"] == "StorageReadError"
            await again.end()


async def test_it_goes_by_an_unsafe_deletion_only(client: aiohttp.ClientSession, store: MemoryStore) -> None:
    await create(client, "broken")
    await overwrite(store)
    async with client.delete(f"{GADGETS}/broken") as response:
        assert "object not decodable" in (await assert_status(response, 500, "InternalError"))["message"]
    async with client.delete(f"{GADGETS}/broken", params=UNSAFE) as response:
        assert (response.status, (await response.json())["status"]) == (200, "Success")
    assert (await read(client, GADGETS))["items"] == []
    again = await create(client, "broken")
    async with watching(client, GADGETS, resourceVersion="0") as events:
        assert (await events.next())["object"]["metadata"]["uid"] == again["metadata"]["uid"]


async def test_it_is_served_again_when_it_is_mended(client: aiohttp.ClientSession, store: MemoryStore) -> None:
    created = await create(client, "broken")
    sound = (await store.get(KEY)).value
    await overwrite(store)
    await overwrite(store, sound)
    assert (await read(client, f"{GADGETS}/broken"))["metadata"]["uid"] == created["metadata"]["uid"]
    assert len((await read(client, GADGETS))["items"]) == 1


@pytest.mark.parametrize(
    ("member", "value"),
    [
        pytest.param("unknown", {"a": 1}, id="unknown, behind the uid"),
        pytest.param("labels", "app", id="labels that are a text"),
        pytest.param("labels", {"app": 1}, id="a label that is a number"),
        pytest.param("annotations", [], id="annotations that are a list"),
        pytest.param("finalizers", [["a"]], id="a finalizer that is a list"),
        pytest.param("ownerReferences", [1], id="an owner that is a number"),
        pytest.param("managedFields", [1], id="managed fields that are a number"),
        pytest.param("generation", "1", id="a generation that is a text"),
        pytest.param("creationTimestamp", {}, id="a time that is an object"),
    ],
)
async def test_metadata_that_nobody_could_have_sent_spoils_nothing(
    client: aiohttp.ClientSession, store: MemoryStore, member: str, value: Any
) -> None:
    created = await create(client, "broken", labels={"app": "x"})
    created["metadata"].pop("resourceVersion")
    created["metadata"][member] = value
    await overwrite(store, orjson.dumps(created))
    (listed,) = (await read(client, GADGETS))["items"]
    assert (await read(client, f"{GADGETS}/broken")) == {"apiVersion": "example.dev/v1", "kind": "Gadget", **listed}
    await read(client, GADGETS, accept=TABLE)
    assert len((await read(client, GADGETS, labelSelector="app=x"))["items"]) == (member != "labels")
    changed = await change(client, "broken", {"spec": {"replicas": 3}})
    assert changed["spec"]["replicas"] == 3
    assert changed["metadata"].get(member) != value


async def test_a_uid_that_is_not_written_as_it_is_makes_it_unreadable(client: aiohttp.ClientSession, store: MemoryStore) -> None:
    created = await create(client, "broken")
    created["metadata"]["uid"] = "\u00e9"
    await overwrite(store, orjson.dumps(created))
    async with client.get(f"{GADGETS}/broken") as response:
        assert "object not decodable" in (await assert_status(response, 500, "InternalError"))["message"]


class _NothingUnsafe:
    """Lets everybody do everything else."""

    async def authorize(self, user: User, info: RequestInfo) -> Decision:
        return NO_OPINION if info.verb.startswith("unsafe") else ALLOW


async def test_who_may_delete_may_not_delete_so(pki: Certificates, config: Config, store: MemoryStore) -> None:
    access = replace(standalone([pki.authority.certificate]), authorization=Authorization((_NothingUnsafe(),)))
    app = build_app(config, store, access)
    async with app.running(), listening(pki, app.handle, app=app) as server, server.client(pki.admin) as client:
        await app.wait_ready()
        await create(client, "broken")
        await overwrite(store)
        async with client.delete(f"{GADGETS}/broken", params=UNSAFE) as response:
            status = await assert_status(response, 403, "Forbidden")
        assert 'not permitted to do "unsafe-delete-ignore-read-errors"' in status["message"]
        assert (await store.get(KEY)).value == b"no JSON"


async def test_a_server_starts_with_it(client: aiohttp.ClientSession, pki: Certificates, config: Config, store: MemoryStore) -> None:
    await create(client, "broken")
    await create(client, "whole")
    await overwrite(store)
    app = build_app(config, store, standalone([pki.authority.certificate]))
    async with app.running(), listening(pki, app.handle, app=app) as server, server.client(pki.admin) as other:
        async with asyncio.timeout(10):
            await app.wait_ready()
        assert (await read(other, f"{GADGETS}/whole"))["metadata"]["name"] == "whole"
