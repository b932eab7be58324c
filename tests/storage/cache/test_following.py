"""The cache follows its store through compaction, loss and faults: no gap, nothing twice, never back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from itertools import count

import pytest

from storage.cache import CacheLimits, WatchCache
from storage.errors import Compacted, Corrupted, Unavailable, WatcherTooSlow
from storage.history import Change, RingLimits
from storage.memory import MemoryStore
from storage.store import Event, KeyValue, Progress, WatchBatch
from tests.storage.cache.conftest import PREFIX, OpenCache
from tests.storage.cache.doubles import GatedStore, Item, Notes, decode


def contents(cache: WatchCache[Item]) -> dict[str, int]:
    entries = {entry.key: entry.revision for entry in cache.snapshot().iterate()}
    assert all(cache.peek(key) is cache.snapshot().get(key) for key in entries)
    return entries


async def stored(store: GatedStore) -> dict[str, int]:
    return {item.key: item.revision for item in (await store.list(PREFIX)).items}


async def test_the_first_list_is_read_in_pages_at_one_revision(store: GatedStore, open_cache: OpenCache) -> None:
    for number in range(8):
        await store.create(f"{PREFIX}{number}", b"1")
    cache = await open_cache(store)
    revision = cache.revision
    assert store.lists == [(None, None), (f"{PREFIX}2\0", revision), (f"{PREFIX}5\0", revision)]
    assert contents(cache) == await stored(store)


async def test_the_next_page_is_asked_for_while_one_is_decoded(store: GatedStore) -> None:
    asked_before: list[int] = []

    def noting(stored: KeyValue) -> Item:
        asked_before.append(len(store.lists))
        return decode(stored)

    for number in range(250):
        await store.create(f"{PREFIX}{number:03}", b"1")
    cache = WatchCache(store, PREFIX, decode=noting, limits=CacheLimits(page_size=200))
    running = asyncio.create_task(cache.run())
    await cache.wait_ready()
    assert len(cache.snapshot()) == 250
    assert asked_before == [1] * 100 + [2] * 150
    await cache.close()
    await running


async def test_a_lost_store_is_resumed_after_the_last_revision_without_a_list(store: GatedStore, cache: WatchCache[Item]) -> None:
    await cache.create(PREFIX + "a", b"1")
    notes = Notes()
    cache.subscribe(notes)
    resumed_after = cache.revision
    lists, watches = len(store.lists), len(store.watches)
    store.failing = Unavailable("partition")
    store.lose_watches(store.failing)
    missed = [await store.create(f"{PREFIX}{number}", b"1") for number in range(5)]
    await store.until(lambda: len(store.watches) >= watches + 3)
    with pytest.raises(Unavailable):
        await cache.fresh(timeout_seconds=0.01)
    assert cache.peek(PREFIX + "a") is not None
    assert len(cache.snapshot()) == 1
    store.failing = None
    await cache.until(missed[-1].revision)
    assert notes.revisions == [item.revision for item in missed]
    assert "reset" not in notes.told
    assert len(store.lists) == lists
    assert set(store.watches[watches:]) == {resumed_after}


async def test_a_reader_that_was_too_slow_is_resumed_without_a_list(store: GatedStore, cache: WatchCache[Item]) -> None:
    lists = len(store.lists)
    store.lose_watches(WatcherTooSlow("too slow"))
    await cache.create(PREFIX + "a", b"1")
    assert len(store.lists) == lists


async def test_after_compaction_it_lists_again_and_says_so(store: GatedStore, cache: WatchCache[Item]) -> None:
    kept = await cache.create(PREFIX + "kept", b"1")
    gone = await cache.create(PREFIX + "gone", b"1")
    entry = cache.peek(PREFIX + "kept")
    notes = Notes()
    cache.subscribe(notes)
    store.failing = Unavailable("partition")
    store.lose_watches(store.failing)
    await store.delete(PREFIX + "gone", expected_revision=gone.revision)
    new = await store.create(PREFIX + "new", b"1")
    await store.compact(new.revision)
    held = cache.snapshot()
    store.failing = None
    await notes.until(lambda told: "reset" in told)
    assert notes.revisions == []
    assert contents(cache) == {PREFIX + "kept": kept.revision, PREFIX + "new": new.revision}
    assert cache.peek(PREFIX + "kept") is entry
    assert cache.oldest_revision == cache.revision == new.revision
    assert [item.key for item in held.iterate()] == [PREFIX + "gone", PREFIX + "kept"]
    with pytest.raises(Compacted):
        cache.changes_after(kept.revision)
    with pytest.raises(Compacted):
        cache.snapshot_at(kept.revision)
    after = await cache.create(PREFIX + "after", b"1")
    assert notes.revisions == [after.revision]


async def test_what_somebody_else_has_compacted_is_not_listed_but_its_changes_are_told(store: GatedStore, open_cache: OpenCache) -> None:
    left, right = await open_cache(store), await open_cache(store)
    revisions = [(await left.create(f"{PREFIX}{number}", b"1")).revision for number in range(4)]
    await left.fresh()
    await right.fresh()
    await store.compact(revisions[2])
    for cache in (left, right):
        cache.check_known(revisions[0])
        await cache.check_compaction()
        await cache.check_compaction()
        assert cache.oldest_revision == revisions[2]
        with pytest.raises(Compacted) as told:
            cache.snapshot_at(revisions[1])
        assert told.value.compact_revision == revisions[2]
        cache.snapshot_at(revisions[2])
        cache.check_known(revisions[0])
        assert [change.revision for change in cache.changes_after(revisions[0])] == revisions[1:]
        assert len((await cache.list(PREFIX, revision=revisions[2])).items) == 3
        with pytest.raises(Compacted):
            await cache.list(PREFIX, revision=revisions[1])


async def test_the_store_is_asked_now_and_then_how_far_it_is_compacted(open_cache: OpenCache) -> None:
    asked: asyncio.Queue[None] = asyncio.Queue()
    times = count()

    class Shaky(MemoryStore):
        async def get(self, key: str, *, revision: int | None = None) -> KeyValue:
            asked.put_nowait(None)
            if next(times) == 0:
                raise Unavailable("partition")
            return await super().get(key, revision=revision)

    store = Shaky()
    cache = await open_cache(store, limits=CacheLimits(compaction_seconds=0.001))
    made = await cache.create(PREFIX + "a", b"1")
    await store.compact(made.revision)
    async with asyncio.timeout(10):
        for _ in range(3):  # one that fails, one that finds out, and one that comes after it
            await asked.get()
    assert cache.oldest_revision == made.revision
    await store.close()


async def test_a_subscriber_is_told_in_order_and_in_the_step_of_the_change(store: GatedStore, cache: WatchCache[Item]) -> None:
    seen: list[tuple[int, int, str | None]] = []

    class Looking(Notes):
        def changes(self, batch: Sequence[Change[Item]]) -> None:
            seen.extend((change.revision, cache.revision, change.entry.key if change.entry else None) for change in batch)
            assert cache.snapshot().revision == cache.revision == batch[-1].revision

    unsubscribe = cache.subscribe(Looking())
    a = await cache.create(PREFIX + "a", b"1")
    gone = await cache.delete(PREFIX + "a", expected_revision=a.revision)
    unsubscribe()
    await cache.create(PREFIX + "b", b"1")
    assert seen == [(a.revision, a.revision, PREFIX + "a"), (gone.revision, gone.revision, None)]


async def test_a_change_names_what_was_there_before_also_within_a_batch(store: GatedStore, cache: WatchCache[Item]) -> None:
    start = cache.revision
    store.watch_gate.clear()
    one = await store.create(PREFIX + "a", b"1")
    two = await store.update(PREFIX + "a", b"2", expected_revision=one.revision)
    gone = await store.delete(PREFIX + "a", expected_revision=two.revision)
    store.watch_gate.set()
    await cache.until(gone.revision)
    first, second = Item(PREFIX + "a", one.revision, b"1"), Item(PREFIX + "a", two.revision, b"2")
    assert [(change.previous, change.entry) for change in cache.changes_after(start)] == [(None, first), (first, second), (second, None)]
    assert list(cache.snapshot_at(two.revision).iterate()) == [second]


async def test_a_subscriber_that_raises_breaks_nothing(cache: WatchCache[Item], caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Notes):
        def changes(self, batch: Sequence[Change[Item]]) -> None:
            raise ZeroDivisionError

    notes = Notes()
    cache.subscribe(Broken())
    cache.subscribe(notes)
    created = await cache.create(PREFIX + "a", b"1")
    assert notes.revisions == [created.revision]
    assert "a subscriber of the cache" in caplog.text


async def test_progress_is_told_after_the_events_it_covers(store: GatedStore, cache: WatchCache[Item]) -> None:
    notes = Notes()
    cache.subscribe(notes)
    for number in range(50):
        await store.create(f"{PREFIX}{number}", b"1")
        await store.create(f"/registry/elsewhere/{number}", b"1")
        if number % 3 == 0:
            await cache.fresh()
    last = await cache.fresh()
    await notes.until(lambda told: Progress(last) in told)
    highest = 0
    for note in notes.told:
        assert not isinstance(note, str)
        assert note.revision > highest or isinstance(note, Progress)
        highest = max(highest, note.revision)


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([(Progress(9), Event(8, PREFIX + "a", b"1"))], id="an event behind progress"),
        pytest.param([(Event(8, PREFIX + "a", b"1"),), (Event(8, PREFIX + "b", b"1"),)], id="a revision in two batches"),
        pytest.param([(Event(9, PREFIX + "a", b"1"), Event(8, PREFIX + "b", b"1"))], id="events out of order"),
        pytest.param([(Event(8, PREFIX + "a", None),)], id="a deletion of what was not there"),
    ],
)
async def test_a_watch_that_contradicts_itself_is_not_believed(
    store: GatedStore, batches: list[tuple[Event | Progress, ...]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch that breaks the contract is not applied in part, and the cache lists again."""
    real = store.watch

    async def broken(prefix: str, *, after_revision: int) -> AsyncGenerator[WatchBatch, None]:
        monkeypatch.setattr(store, "watch", real)
        for number in range(20):
            await store.create(f"{PREFIX}later-{number}", b"1")
        for batch in batches:
            yield tuple(item._replace(revision=item.revision + after_revision) for item in batch)

    monkeypatch.setattr(store, "watch", broken)
    cache = WatchCache(store, PREFIX, decode=decode, limits=CacheLimits(retry_seconds=0.001))
    notes = Notes()
    cache.subscribe(notes)
    running = asyncio.create_task(cache.run())
    await notes.until(lambda told: told.count("reset") == 2)
    assert contents(cache) == await stored(store)
    assert "lists again" in caplog.text
    assert "fault" not in caplog.text
    await cache.close()
    await running


async def test_a_value_that_cannot_be_decoded_stops_the_cache_loudly_until_it_has_gone(
    store: GatedStore, caplog: pytest.LogCaptureFixture
) -> None:
    def picky(keyvalue: KeyValue) -> Item:
        if keyvalue.value == b"bad":
            raise ValueError(keyvalue.key)
        return decode(keyvalue)

    cache = WatchCache(store, PREFIX, decode=picky, limits=CacheLimits(retry_seconds=0.001, retry_seconds_max=0.002))
    running = asyncio.create_task(cache.run())
    await cache.wait_ready()
    notes = Notes()
    cache.subscribe(notes)
    bad = await store.create(PREFIX + "a", b"bad")
    with pytest.raises(Unavailable):
        await cache.fresh(timeout_seconds=0.02)
    await store.update(PREFIX + "a", b"good", expected_revision=bad.revision)
    await cache.fresh()
    assert contents(cache) == await stored(store)
    assert "after a fault" in caplog.text
    await cache.close()
    await running


async def test_a_store_whose_revision_went_back_is_not_shown(store: GatedStore, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(5):
        await store.create(f"{PREFIX}{number}", b"1")
    cache = WatchCache(store, PREFIX, decode=decode, limits=CacheLimits(retry_seconds=0.001, retry_seconds_max=0.001))
    running = asyncio.create_task(cache.run())
    await cache.wait_ready()
    held = contents(cache)
    older = GatedStore()
    cache._store = cache._follower._store = older  # the same address, another store behind it
    store.lose_watches(Compacted(1, 2))
    await older.until(lambda: len(older.lists) >= 2)
    assert contents(cache) == held
    await cache.close()
    await running
    await older.close()


async def test_two_caches_over_one_store_agree_on_each_revision(store: GatedStore, open_cache: OpenCache) -> None:
    left, right = await open_cache(store), await open_cache(store)
    start = left.revision
    for number in range(30):
        cache = left if number % 2 else right
        created = await cache.create(f"{PREFIX}{number}", b"1")
        if number % 5 == 0:
            await cache.delete(f"{PREFIX}{number}", expected_revision=created.revision)
    await asyncio.gather(left.fresh(), right.fresh())
    assert left.changes_after(start) == right.changes_after(start)
    for revision in range(start, left.revision + 1):
        assert list(left.snapshot_at(revision).iterate()) == list(right.snapshot_at(revision).iterate())


async def test_verify_finds_nothing_in_a_sound_cache_and_a_difference_in_a_broken_one(
    store: GatedStore, cache: WatchCache[Item], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for number in range(7):
        await cache.create(f"{PREFIX}{number}", b"1")
    await cache.verify()
    notes = Notes()
    cache.subscribe(notes)
    wrong = Item(PREFIX + "3", 2, b"0")
    cache._image._snapshot = cache._image.snapshot.write(cache.revision, [(wrong.key, wrong)])
    cache._image.entries[wrong.key] = wrong
    with pytest.raises(Corrupted, match=rf"holds \('{PREFIX}3', 2\) where the store has \('{PREFIX}3', \d+\)"):
        await cache.verify()
    await notes.until(lambda told: "reset" in told)
    assert contents(cache) == await stored(store)
    await cache.verify()


async def test_verify_finds_what_the_store_has_no_more_and_what_the_cache_lacks(store: GatedStore, cache: WatchCache[Item]) -> None:
    await cache.create(PREFIX + "b", b"1")
    extra = Item(PREFIX + "z", 2, b"1")
    for write in ((PREFIX + "b", None), (extra.key, extra)):
        cache._image._snapshot = cache._image.snapshot.write(cache.revision, [write])
        notes = Notes()
        cache.subscribe(notes)
        with pytest.raises(Corrupted):
            await cache.verify()
        await notes.until(lambda told: "reset" in told)
        assert contents(cache) == await stored(store)


async def test_a_long_backlog_is_applied_in_steps_that_let_others_run(store: GatedStore, cache: WatchCache[Item]) -> None:
    store.watch_gate.clear()
    last = [await store.create(f"{PREFIX}{number}", b"1") for number in range(1000)][-1]
    revisions: list[int] = []

    async def look() -> None:
        while cache.revision < last.revision:
            await asyncio.sleep(0)
            revisions.append(cache.revision)
            assert cache.snapshot().revision == cache.revision

    looking = asyncio.create_task(look())
    store.watch_gate.set()
    await looking
    assert len(set(revisions)) > 8
    assert contents(cache) == await stored(store)


async def test_close_ends_the_run_and_may_be_called_twice(store: GatedStore) -> None:
    cache = WatchCache(store, PREFIX, decode=decode)
    running = asyncio.create_task(cache.run())
    await cache.wait_ready()
    watch = cache.watch(PREFIX, after_revision=cache.revision)
    reading = asyncio.ensure_future(anext(watch, None))
    await asyncio.sleep(0)
    await cache.close()
    await cache.close()
    await running
    assert await reading is None
    await store.create(PREFIX + "a", b"1")


async def test_closing_the_store_ends_the_run(store: GatedStore) -> None:
    cache = WatchCache(store, PREFIX, decode=decode, limits=CacheLimits(retry_seconds=0.001))
    running = asyncio.create_task(cache.run())
    await cache.wait_ready()
    await store.close()
    await running
    await cache.close()


async def test_cancelling_the_run_ends_it(store: GatedStore) -> None:
    cache = WatchCache(store, PREFIX, decode=decode)
    running = asyncio.create_task(cache.run())
    await cache.wait_ready()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await cache.close()


async def test_the_history_window_answers_and_beyond_it_the_store_does(store: GatedStore, open_cache: OpenCache) -> None:
    limits = CacheLimits(page_size=100, history=RingLimits(changes=3))
    cache = await open_cache(store, limits=limits)
    revisions = [(await cache.create(f"{PREFIX}{number}", b"1")).revision for number in range(6)]
    assert cache.oldest_revision == revisions[2]
    store.lists.clear()
    assert len((await cache.list(PREFIX, revision=revisions[3])).items) == 4
    assert store.lists == []
    assert len((await cache.list(PREFIX, revision=revisions[1])).items) == 2
    assert store.lists == [(None, revisions[1])]
    assert (await cache.get(PREFIX + "1", revision=revisions[1])).revision == revisions[1]
    watch = cache.watch(PREFIX, after_revision=revisions[0])
    seen: list[int] = []
    while len(seen) < 5:
        seen += [event.revision for event in await anext(watch) if isinstance(event, Event)]
    assert seen == revisions[1:]
    await watch.aclose()


async def test_a_reader_whom_the_history_has_left_behind_is_told(store: GatedStore, open_cache: OpenCache) -> None:
    cache = await open_cache(store, limits=CacheLimits(history=RingLimits(changes=3)))
    watch = cache.watch(PREFIX, after_revision=cache.revision)
    first = await cache.create(PREFIX + "first", b"1")
    assert await anext(watch) == (Event(first.revision, first.key, b"1"),)
    for number in range(5):
        await cache.create(f"{PREFIX}{number}", b"1")
    with pytest.raises(WatcherTooSlow):
        await anext(watch)
