"""Closing a store, and opening it again."""

from __future__ import annotations

import asyncio

import pytest

from storage.errors import Compacted
from storage.store import Page, Store
from tests.storage.conftest import Opened
from tests.storage.following import PODS, following, state_at, write_history


async def test_close_ends_the_watches_without_a_gap(opened: Opened) -> None:
    store = await opened.open()
    now = await store.current_revision()
    async with following(store, after_revision=now) as watch:
        reading = asyncio.create_task(watch.end())
        await asyncio.sleep(0)
        events = await write_history(store)
        await opened.close()
        await reading
    assert watch.events == events[: len(watch.events)]


async def test_close_may_be_called_twice(store: Store) -> None:
    await store.close()
    await store.close()


async def test_size_is_told(store: Store) -> None:
    await store.create(PODS + "ns1/a", b"value" * 100)
    assert await store.size_bytes() > 500


async def test_all_is_there_after_opening_again(reopenable: Opened) -> None:
    store = await reopenable.open()
    before = await store.current_revision()
    events = await write_history(store)
    last = events[-1].revision
    store = await reopenable.reopen()
    assert await store.current_revision() >= last
    for event in events:
        assert await store.list(PODS, revision=event.revision) == Page(state_at(events, event.revision), event.revision, 0)
    async with following(store, after_revision=before) as watch:
        assert await watch.until_revision(last) == events
    assert (await store.create(PODS + "ns1/z", b"z")).revision > last


async def test_compaction_is_not_forgotten(reopenable: Opened) -> None:
    store = await reopenable.open()
    events = await write_history(store)
    deletion = events[-1].revision
    await store.compact(deletion)
    store = await reopenable.reopen()
    assert await store.current_revision() >= deletion
    with pytest.raises(Compacted):
        await store.list(PODS, revision=events[-2].revision)
    async with following(store, after_revision=events[2].revision) as watch:
        with pytest.raises(Compacted):
            await watch.batch()
    assert (await store.list(PODS)).items == state_at(events, deletion)
    assert (await store.create(PODS + "ns1/z", b"z")).revision > deletion


async def test_a_watch_resumes_where_it_was_before_the_restart(reopenable: Opened) -> None:
    store = await reopenable.open()
    first = await store.create(PODS + "ns1/a", b"one")
    second = await store.update(first.key, b"two", expected_revision=first.revision)
    store = await reopenable.reopen()
    third = await store.update(first.key, b"three", expected_revision=second.revision)
    async with following(store, after_revision=first.revision) as watch:
        events = await watch.until_revision(third.revision)
    assert [(event.revision, event.value) for event in events] == [(second.revision, b"two"), (third.revision, b"three")]
