"""What compaction forgets, and what it must not, over every store."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from storage.errors import Compacted, FutureRevision, KeyNotFound
from storage.store import KeyValue, Page, Store
from tests.storage.following import PODS, following, state_at, write_history


async def test_every_compaction_keeps_what_is_above_it_and_refuses_what_is_below(store: Store) -> None:
    events = await write_history(store)
    last = events[-1].revision
    for compacted in events:
        await store.compact(compacted.revision)
        for event in events:
            if event.revision < compacted.revision:
                with pytest.raises(Compacted) as caught:
                    await store.list(PODS, revision=event.revision)
                assert caught.value.compact_revision == compacted.revision
                with pytest.raises(Compacted):
                    await store.get(event.key, revision=event.revision)
            else:
                page = await store.list(PODS, revision=event.revision)
                assert page == Page(state_at(events, event.revision), event.revision, 0)
        async with following(store, after_revision=compacted.revision) as watch:
            rest = [event for event in events if event.revision > compacted.revision]
            if rest:
                assert await watch.until_revision(last) == rest
        assert (await store.list(PODS)).items == state_at(events, last)


async def test_a_watch_from_just_below_the_compaction_has_no_gap_or_is_told(store: Store) -> None:
    """etcd dropped a deletion whose revision was the compaction's (18089, 19179). To deliver it or to refuse are both right."""
    events = await write_history(store)
    for position, compacted in enumerate(events):
        await store.compact(compacted.revision)
        async with following(store, after_revision=compacted.revision - 1) as watch:
            with suppress(Compacted):
                assert await watch.until_revision(events[-1].revision) == events[position:]


async def test_a_watch_from_below_the_compaction_is_told_where_history_begins(store: Store) -> None:
    events = await write_history(store)
    await store.compact(events[4].revision)
    async with following(store, after_revision=events[2].revision) as watch:
        with pytest.raises(Compacted) as caught:
            await watch.batch()
    assert caught.value.compact_revision == events[4].revision


async def test_a_running_watch_goes_on_over_a_compaction(store: Store) -> None:
    created = await store.create(PODS + "ns1/a", b"one")
    async with following(store, after_revision=created.revision) as watch:
        updated = await store.update(created.key, b"two", expected_revision=created.revision)
        await watch.until_revision(updated.revision)
        await store.compact(updated.revision)
        deleted = await store.delete(created.key, expected_revision=updated.revision)
        events = await watch.until_revision(deleted.revision)
    assert [(event.revision, event.value) for event in events] == [(updated.revision, b"two"), (deleted.revision, None)]


async def test_going_back_is_nothing_and_going_ahead_is_refused(store: Store) -> None:
    events = await write_history(store)
    await store.compact(events[5].revision)
    await store.compact(events[3].revision)
    await store.compact(events[5].revision)
    assert (await store.list(PODS, revision=events[5].revision)).items == state_at(events, events[5].revision)
    with pytest.raises(Compacted):
        await store.list(PODS, revision=events[4].revision)
    with pytest.raises(FutureRevision):
        await store.compact(await store.current_revision() + 1000)


async def test_the_revision_does_not_go_back_when_a_deletion_is_forgotten(store: Store) -> None:
    created = await store.create(PODS + "ns1/a", b"one")
    deleted = await store.delete(created.key, expected_revision=created.revision)
    await store.compact(deleted.revision)
    assert await store.current_revision() >= deleted.revision
    assert (await store.list(PODS)).revision >= deleted.revision
    with pytest.raises(KeyNotFound):
        await store.get(created.key, revision=deleted.revision)
    assert (await store.create(created.key, b"two")).revision > deleted.revision


async def test_exact_listings_while_compacting_are_whole_or_refused(store: Store) -> None:
    """etcd 18667: a read at a compacted revision that did not notice."""
    history: dict[int, list[KeyValue]] = {}
    current = [await store.create(f"{PODS}ns1/{n}", b"0") for n in range(5)]
    writing = True

    async def write() -> None:
        for count in range(100):
            n = count % 5
            current[n] = await store.update(current[n].key, b"%d" % count, expected_revision=current[n].revision)
            history[current[n].revision] = [*current]
            if count % 10 == 9:
                await store.compact(current[n].revision - 5)

    async def read() -> None:
        while writing:
            for revision in [*history][-12::3]:
                with suppress(Compacted):
                    assert (await store.list(PODS, revision=revision)).items == history[revision]
            await asyncio.sleep(0)

    readers = [asyncio.create_task(read()) for _ in range(2)]
    await write()
    writing = False
    await asyncio.gather(*readers)
