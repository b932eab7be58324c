"""Writes through the cache are seen in it when they return, and decoded once."""

from __future__ import annotations

import asyncio

import pytest

from storage.cache import CacheLimits, WatchCache
from storage.errors import KeyExists, KeyNotFound, RevisionConflict
from storage.store import KeyValue
from tests.storage.cache.conftest import PREFIX, OpenCache
from tests.storage.cache.doubles import GatedStore, Item, Notes

KEY = PREFIX + "ns/a"


async def test_an_own_write_is_there_when_it_returns(cache: WatchCache[Item]) -> None:
    created = await cache.create(KEY, b"1")
    assert cache.peek(KEY) == Item(KEY, created.revision, b"1")
    updated = await cache.update(KEY, b"2", expected_revision=created.revision)
    assert cache.peek(KEY) == Item(KEY, updated.revision, b"2")
    deleted = await cache.delete(KEY, expected_revision=updated.revision)
    assert cache.peek(KEY) is None
    assert cache.revision >= deleted.revision


@pytest.mark.parametrize("writes", [1, 500])
async def test_a_snapshot_shows_what_has_been_written_since_somebody_looked(cache: WatchCache[Item], writes: int) -> None:
    kept, gone = await cache.create(KEY, b"kept"), await cache.create(KEY + "-gone", b"gone")
    before = cache.snapshot()
    created = [await cache.create(f"{KEY}-{n}", b"new") for n in range(writes)]
    again = await cache.update(KEY, b"again", expected_revision=kept.revision)
    await cache.delete(gone.key, expected_revision=gone.revision)
    assert {item.key: item.revision for item in cache.snapshot().iterate()} == {item.key: item.revision for item in [again, *created]}
    assert [item.key for item in cache.snapshot().iterate()] == sorted(item.key for item in [again, *created])
    assert cache.snapshot().revision == cache.revision
    assert [item.value for item in before.iterate()] == [b"kept", b"gone"]


async def test_refused_writes_raise_what_the_store_raises(cache: WatchCache[Item]) -> None:
    created = await cache.create(KEY, b"1")
    with pytest.raises(KeyExists):
        await cache.create(KEY, b"1")
    with pytest.raises(RevisionConflict):
        await cache.update(KEY, b"1", expected_revision=created.revision - 1)
    with pytest.raises(KeyNotFound):
        await cache.delete(KEY + "b", expected_revision=created.revision)


@pytest.mark.parametrize("order", ["watch first", "response first"])
async def test_the_entry_of_a_writer_is_taken_in_place_of_decoding(store: GatedStore, open_cache: OpenCache, order: str) -> None:
    cache = await open_cache(store)
    made: list[Item] = []

    def entry(keyvalue: KeyValue) -> Item:
        made.append(Item(keyvalue.key, keyvalue.revision, keyvalue.value))
        return made[-1]

    late = store.watch_gate if order == "response first" else store.write_gate
    late.clear()
    writing = asyncio.create_task(cache.create(KEY, b"1", entry=entry))
    await store.until(lambda: store.created == 1)
    if order == "watch first":
        await cache.fresh()
        assert cache.peek(KEY) is made[0]
    late.set()
    created = await writing
    assert cache.peek(KEY) is made[0]
    await store.update(KEY, b"2", expected_revision=created.revision)
    await cache.fresh()
    assert len(made) == 1


async def test_the_entry_of_a_writer_is_not_taken_for_the_write_of_another(store: GatedStore, cache: WatchCache[Item]) -> None:
    created = await cache.create(KEY, b"1")
    theirs = await store.update(KEY, b"theirs", expected_revision=created.revision)
    with pytest.raises(RevisionConflict):
        await cache.update(KEY, b"mine", expected_revision=created.revision, entry=lambda _: pytest.fail("another's value"))
    await cache.fresh()
    assert cache.peek(KEY) == Item(KEY, theirs.revision, b"theirs")


async def test_a_write_that_the_cache_cannot_show_has_still_happened(store: GatedStore, open_cache: OpenCache) -> None:
    cache = await open_cache(store, limits=CacheLimits(own_write_seconds=0.01))
    store.watch_gate.clear()
    created = await cache.create(KEY, b"1")
    assert cache.peek(KEY) is None
    store.watch_gate.set()
    await cache.until(created.revision)
    assert cache.peek(KEY) == Item(KEY, created.revision, b"1")


async def test_writers_at_the_same_time_each_see_their_own(cache: WatchCache[Item]) -> None:
    async def write(name: str) -> None:
        revision = (await cache.create(PREFIX + name, b"0")).revision
        for turn in range(10):
            revision = (await cache.update(PREFIX + name, b"%d" % turn, expected_revision=revision)).revision
            assert cache.peek(PREFIX + name) == Item(PREFIX + name, revision, b"%d" % turn)

    notes = Notes()
    cache.subscribe(notes)
    await asyncio.gather(*(write(f"n{n}") for n in range(20)))
    assert notes.revisions == sorted(notes.revisions)
    assert len(notes.revisions) == 220
