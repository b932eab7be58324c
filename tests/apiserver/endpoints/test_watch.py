"""Watches over real HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

from tests.apiserver.reading import (
    ALL_GADGETS,
    GADGETS,
    METADATA,
    METADATA_LIST,
    TABLE,
    brief,
    change,
    create,
    delete,
    read,
    watching,
)
from tests.apiserver.running import Listening
from tests.apiserver.status_assertions import assert_status

WATCH_LIST = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true", "resourceVersion": ""}


async def test_watch_list_ends_what_exists_with_an_annotated_bookmark(client: aiohttp.ClientSession) -> None:
    """T048."""
    made = [await create(client, name) for name in ("a", "b", "c")]
    async with watching(client, **WATCH_LIST) as events:
        assert [brief(event) for event in await events.take(3)] == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
        bookmark = await events.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["apiVersion"] == "example.dev/v1"
        assert bookmark["object"]["kind"] == "Gadget"
        assert set(bookmark["object"]) == {"apiVersion", "kind", "metadata"}
        metadata = bookmark["object"]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert set(metadata) == {"annotations", "resourceVersion"}
        assert int(metadata["resourceVersion"]) >= max(int(item["metadata"]["resourceVersion"]) for item in made)
        await create(client, "d")
        assert brief(await events.next()) == ("ADDED", "d")
        async with watching(client, resourceVersion=metadata["resourceVersion"]) as later:
            assert brief(await later.next()) == ("ADDED", "d")


async def test_watch_list_of_nothing_is_a_bookmark_at_once(client: aiohttp.ClientSession) -> None:
    """T048."""
    async with watching(client, **WATCH_LIST) as events:
        bookmark = await events.next()
        metadata = bookmark["object"].pop("metadata")
        assert (bookmark["type"], bookmark["object"]) == ("BOOKMARK", {"apiVersion": "example.dev/v1", "kind": "Gadget"})
        assert (int(metadata["resourceVersion"]) > 0, metadata["annotations"]) == (True, {"k8s.io/initial-events-end": "true"})
        async with watching(client, resourceVersion=metadata["resourceVersion"]) as later:
            await create(client, "first")
            assert brief(await events.next()) == brief(await later.next()) == ("ADDED", "first")


async def test_watch_without_a_version_begins_with_what_exists(client: aiohttp.ClientSession) -> None:
    """T049."""
    for name in ("a", "b", "c"):
        await create(client, name)
    expected = [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    for query in ({}, {"resourceVersion": "0"}, {"resourceVersion": ""}):
        async with watching(client, timeoutSeconds="1", **query) as events:
            assert [brief(event) for event in await events.take(3)] == expected
            await events.end()
    async with watching(client, allowWatchBookmarks="true") as events:
        assert [brief(event) for event in await events.take(3)] == expected
        assert (await events.next())["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_watch_parameter_is_read_as_go_reads_it(client: aiohttp.ClientSession) -> None:
    """T049: present but empty is true, 0 and false are a list."""
    await create(client, "a")
    for value in ("false", "0"):
        assert (await read(client, GADGETS, watch=value))["kind"] == "GadgetList"
    async with client.get(f"{GADGETS}?watch&resourceVersion=&timeoutSeconds=1") as response:
        assert response.headers["Transfer-Encoding"] == "chunked"
        assert b'"ADDED"' in await response.content.readline()


async def test_watch_from_a_list_has_no_gap_and_no_repetition(client: aiohttp.ClientSession) -> None:
    """T049, T055."""
    for name in ("a", "b"):
        await create(client, name)
    listed = await read(client, GADGETS)
    await create(client, "c")
    async with watching(client, resourceVersion=listed["metadata"]["resourceVersion"]) as events:
        assert brief(await events.next()) == ("ADDED", "c")
        await change(client, "a", {"spec": {"replicas": 2}})
        assert brief(await events.next()) == ("MODIFIED", "a")


async def test_deleted_event_has_the_last_state_at_the_revision_of_the_deletion(client: aiohttp.ClientSession) -> None:
    """T058."""
    made = [await create(client, name) for name in ("a", "b", "c")]
    last = made[-1]["metadata"]["resourceVersion"]
    async with watching(client, resourceVersion=last) as events:
        await delete(client, "a")
        event = await events.next()
    assert brief(event) == ("DELETED", "a")
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(last)
    assert event["object"]["spec"] == made[0]["spec"]
    assert event["object"]["metadata"]["uid"] == made[0]["metadata"]["uid"]
    async with watching(client, resourceVersion=event["object"]["metadata"]["resourceVersion"]) as events:
        await create(client, "d")
        assert brief(await events.next()) == ("ADDED", "d")


async def test_leaving_a_selector_is_a_deletion_and_entering_an_addition(client: aiohttp.ClientSession) -> None:
    """T059."""
    async with watching(client, labelSelector="app=a", **WATCH_LIST) as events:
        assert (await events.next())["type"] == "BOOKMARK"
        await create(client, "x", labels={"app": "a"})
        assert brief(await events.next()) == ("ADDED", "x")
        left = await change(client, "x", {"metadata": {"labels": {"app": "b"}}})
        event = await events.next()
        assert brief(event) == ("DELETED", "x")
        assert event["object"]["metadata"]["labels"] == {"app": "a"}
        assert event["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
        await change(client, "x", {"spec": {"replicas": 5}})
        await change(client, "x", {"metadata": {"labels": {"app": "a"}}})
        event = await events.next()
        assert brief(event) == ("ADDED", "x")
        assert event["object"]["spec"]["replicas"] == 5
        await delete(client, "x")
        assert brief(await events.next()) == ("DELETED", "x")


async def test_watch_of_one_name_and_of_one_namespace_see_nothing_else(client: aiohttp.ClientSession) -> None:
    """T059, T064, T065."""
    start = await read(client, ALL_GADGETS)
    version = start["metadata"]["resourceVersion"]
    async with (
        watching(client, resourceVersion=version, fieldSelector="metadata.name=x") as named,
        watching(client, ALL_GADGETS, resourceVersion=version, fieldSelector="metadata.namespace=ns1") as spaced,
        watching(client, ALL_GADGETS, resourceVersion=version, fieldSelector="metadata.name=x") as everywhere,
    ):
        await create(client, "x", namespace="ns1-b")
        await create(client, "y")
        await create(client, "x")
        assert brief(await named.next()) == ("ADDED", "x")
        assert [brief(event) for event in await spaced.take(2)] == [("ADDED", "y"), ("ADDED", "x")]
        assert [event["object"]["metadata"]["namespace"] for event in await everywhere.take(2)] == ["ns1-b", "ns1"]


async def test_head_of_the_response_comes_before_any_event(client: aiohttp.ClientSession) -> None:
    """T069: nothing exists and nothing happens, and yet the headers are there."""
    start = await read(client, GADGETS)
    async with asyncio.timeout(5), watching(client, resourceVersion=start["metadata"]["resourceVersion"]) as events:
        assert events.response.headers["Transfer-Encoding"] == "chunked"
        assert events.response.headers["Cache-Control"] == "no-cache, private"
        assert events.response.headers["Audit-Id"]


async def test_time_out_ends_the_stream_cleanly_and_keeps_the_connection(client: aiohttp.ClientSession) -> None:
    """T071."""
    await create(client, "a")
    async with watching(client, timeoutSeconds="1") as events:
        await events.next()
        await events.end()
    assert client.connector is not None
    assert (await read(client, GADGETS))["items"]


async def test_watch_from_a_version_that_is_none_is_refused_before_the_stream(client: aiohttp.ClientSession) -> None:
    """T056."""
    for wrong in ("abc", "-1", "99999999999999999999"):
        async with client.get(GADGETS, params={"watch": "true", "resourceVersion": wrong}) as response:
            status = await assert_status(response, 422, "Invalid")
        assert status["details"]["causes"][0]["field"] == "resourceVersion"


async def test_watch_list_from_the_future_is_an_error_event(client: aiohttp.ClientSession) -> None:
    """T056: after three seconds, in a response that is complete (T057)."""
    async with watching(client, **WATCH_LIST | {"resourceVersion": "1000000000"}) as events:
        event = await events.next()
        assert event["type"] == "ERROR"
        status = event["object"]
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 504, "Timeout")
        assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        await events.end()


async def test_watch_from_the_future_waits_for_it(client: aiohttp.ClientSession) -> None:
    """T056."""
    made = await create(client, "a")
    ahead = str(int(made["metadata"]["resourceVersion"]) + 1)
    async with watching(client, resourceVersion=ahead) as events:
        await create(client, "b")
        await create(client, "c")
        assert brief(await events.next()) == ("ADDED", "c")


async def test_table_watch_sends_columns_once(client: aiohttp.ClientSession) -> None:
    """T054."""
    await create(client, "a")
    async with watching(client, accept=TABLE, **WATCH_LIST) as events:
        first, bookmark = await events.take(2)
        assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Replicas", "Age"]
        assert first["object"]["kind"] == "Table"
        cells: list[Any] = first["object"]["rows"][0]["cells"]
        assert cells[:2] == ["a", 1]
        assert cells[2].endswith("s")
        assert first["object"]["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["columnDefinitions"] is None
        assert bookmark["object"]["rows"][0]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await delete(client, "a")
        event = await events.next()
        assert event["type"] == "DELETED"
        assert event["object"]["columnDefinitions"] is None
        assert event["object"]["rows"][0]["cells"][0] == "a"


async def test_first_live_event_of_a_table_watch_has_the_columns(client: aiohttp.ClientSession) -> None:
    """T054."""
    start = await read(client, GADGETS)
    async with watching(client, accept=TABLE, resourceVersion=start["metadata"]["resourceVersion"]) as events:
        await create(client, "a")
        assert (await events.next())["object"]["columnDefinitions"]
        await create(client, "b")
        assert (await events.next())["object"]["columnDefinitions"] is None


async def test_metadata_watch_sends_metadata_and_bookmarks_in_the_same_form(client: aiohttp.ClientSession) -> None:
    """T066."""
    made = await create(client, "a")
    accept = f"application/cbor;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{METADATA},application/json"
    async with watching(client, accept=accept, **WATCH_LIST) as events:
        event, bookmark = await events.take(2)
    assert event["object"] == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert (bookmark["object"]["kind"], bookmark["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")


async def test_form_of_lists_is_none_of_events(client: aiohttp.ClientSession) -> None:
    """T066."""
    async with client.get(GADGETS, params={"watch": "true"}, headers={"Accept": METADATA_LIST}) as response:
        await assert_status(response, 406, "NotAcceptable")


async def test_yaml_cannot_be_streamed(client: aiohttp.ClientSession) -> None:
    async with client.get(GADGETS, params={"watch": "true"}, headers={"Accept": "application/yaml"}) as response:
        assert response.status == 406
        assert b"application/json;stream=watch" in await response.read()


async def test_watchers_of_every_kind_see_every_change_in_order(client: aiohttp.ClientSession) -> None:
    """T116: watchers in one group, and in others, beside each other."""
    start = (await read(client, GADGETS))["metadata"]["resourceVersion"]
    async with (
        watching(client, resourceVersion=start) as first,
        watching(client, resourceVersion=start) as second,
        watching(client, ALL_GADGETS, resourceVersion=start) as everywhere,
        watching(client, resourceVersion=start, accept=METADATA) as metadata,
    ):
        await asyncio.gather(*(create(client, f"g{number}") for number in range(30)))
        streams = [await events.take(30) for events in (first, second, everywhere, metadata)]
    revisions = [[int(event["object"]["metadata"]["resourceVersion"]) for event in stream] for stream in streams]
    assert revisions[0] == sorted(set(revisions[0]))
    assert all(stream == revisions[0] for stream in revisions)


async def test_t122_closing_the_app_ends_every_watch_cleanly(server: Listening, client: aiohttp.ClientSession) -> None:
    """Who takes bookmarks gets a last one, and resumes from there without a list."""
    async with watching(client, **WATCH_LIST) as events, watching(client, watch="1", resourceVersion="0") as plain:
        await events.next()
        created = await create(client, "g1")
        assert (await events.next())["object"] == (await plain.next())["object"] == created
        assert server.app is not None
        server.app.end_watches()
        last = await events.next()
        assert (last["type"], last["object"]["metadata"]) == ("BOOKMARK", {"resourceVersion": created["metadata"]["resourceVersion"]})
        await events.end()
        await plain.end()


async def test_watch_of_a_client_that_has_gone_costs_nothing(server: Listening, client: aiohttp.ClientSession) -> None:
    """T071, T116: noticed at once, although nothing is written."""
    start = await read(client, GADGETS)
    assert server.app is not None
    (watches,) = (watches for watches in server.app._watches if watches.store.kind.plural == "gadgets")
    async with watching(client, resourceVersion=start["metadata"]["resourceVersion"]):
        assert len(watches) == 1
    async with asyncio.timeout(10):
        while len(watches):
            await read(client, GADGETS)
