"""A fresh read waits for all that had returned before it, reads the store's revision once for many, and never waits without end."""

from __future__ import annotations

import asyncio

import pytest

from storage.cache import WatchCache
from storage.errors import FutureRevision, StoreClosed, Unavailable
from storage.freshness import SharedRevision
from tests.storage.cache.conftest import PREFIX, OpenCache
from tests.storage.cache.doubles import GatedStore, Item


async def test_a_fresh_read_of_a_store_in_this_process_does_not_yield(cache: WatchCache[Item]) -> None:
    await cache.create(PREFIX + "a", b"1")
    reading = cache.fresh()
    with pytest.raises(StopIteration) as returned:
        reading.send(None)
    assert returned.value.value == cache.revision


async def test_a_fresh_read_sees_a_write_that_the_watch_has_not_brought_yet(store: GatedStore, cache: WatchCache[Item]) -> None:
    store.watch_gate.clear()
    written = await store.create(PREFIX + "a", b"1")
    reading = asyncio.create_task(cache.fresh())
    await asyncio.sleep(0)
    assert cache.peek(PREFIX + "a") is None
    assert not reading.done()
    store.watch_gate.set()
    assert await reading >= written.revision
    assert cache.peek(PREFIX + "a") == Item(PREFIX + "a", written.revision, b"1")


async def test_a_fresh_read_of_a_quiet_prefix_is_brought_up_by_progress(store: GatedStore, cache: WatchCache[Item]) -> None:
    written = await store.create("/registry/elsewhere/a", b"1")
    assert await cache.fresh() == written.revision
    assert cache.snapshot().revision == written.revision


async def test_readers_that_come_during_a_read_share_the_next_one(store: GatedStore, open_cache: OpenCache) -> None:
    store.slow = True
    cache = await open_cache(store)
    await cache.fresh()
    store.revision_gate.clear()
    store.revision_reads = 0
    first = asyncio.create_task(cache.fresh())
    await store.until(lambda: store.revision_reads == 1)
    others = [asyncio.create_task(cache.fresh()) for _ in range(100)]
    await asyncio.sleep(0)
    assert store.revision_reads == 1
    written = await store.create(PREFIX + "late", b"1")
    store.revision_gate.set()
    assert all(revision >= written.revision for revision in await asyncio.gather(*others))
    await first
    assert store.revision_reads == 2


async def test_a_cancelled_reader_takes_nothing_from_the_others(store: GatedStore, open_cache: OpenCache) -> None:
    store.slow = True
    cache = await open_cache(store)
    await cache.fresh()
    store.revision_gate.clear()
    readers = [asyncio.create_task(cache.fresh()) for _ in range(3)]
    await asyncio.sleep(0)
    readers[0].cancel()
    store.revision_gate.set()
    assert await asyncio.gather(*readers[1:]) == [cache.revision] * 2


async def test_a_failing_read_fails_its_own_readers_only() -> None:
    answers: list[Exception | int] = [Unavailable("lost"), 7]

    async def read() -> int:
        await asyncio.sleep(0)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    shared = SharedRevision(read)
    with pytest.raises(Unavailable):
        await shared.read()
    assert await shared.read() == 7
    await shared.close()


async def test_closing_ends_those_who_wait_for_a_revision(store: GatedStore, open_cache: OpenCache) -> None:
    store.slow = True
    cache = await open_cache(store)
    store.revision_gate.clear()
    readers = [asyncio.create_task(cache.fresh()) for _ in range(2)]
    waiting = asyncio.create_task(cache.until(cache.revision + 1))
    await asyncio.sleep(0)
    await cache.close()
    for reader in (*readers, waiting):
        with pytest.raises(StoreClosed):
            await reader
    with pytest.raises(StoreClosed):
        await cache.fresh()


async def test_a_read_that_cannot_become_fresh_says_how_far_behind_it_is(store: GatedStore, cache: WatchCache[Item]) -> None:
    seen = cache.revision
    store.watch_gate.clear()
    for name in "abc":
        await store.create(PREFIX + name, b"1")
    with pytest.raises(Unavailable, match=f"at revision {seen}, 3 behind the store"):
        await cache.fresh(timeout_seconds=0.01)
    assert cache.snapshot().revision == seen


async def test_a_store_that_does_not_answer_is_unavailable_in_time(store: GatedStore, cache: WatchCache[Item]) -> None:
    store.revision_gate.clear()
    with pytest.raises(Unavailable, match="has not told its revision in time"):
        await cache.fresh(timeout_seconds=0.01)


async def test_a_cache_that_has_not_listed_yet_is_not_fresh(store: GatedStore, open_cache: OpenCache) -> None:
    store.failing = Unavailable("not there yet")
    cache = await open_cache(store, ready=False)
    with pytest.raises(Unavailable):
        await cache.fresh(timeout_seconds=0.01)
    assert not cache.ready
    store.failing = None
    await cache.wait_ready()
    assert await cache.fresh() == cache.revision


async def test_waiting_for_a_revision_that_does_not_come_is_future(cache: WatchCache[Item]) -> None:
    await cache.until(cache.revision)
    with pytest.raises(FutureRevision):
        await cache.until(cache.revision + 1, timeout_seconds=0.01)
