"""Watches over every store: ordered, unique, reliable, atomic, resumable, bookmarkable."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from storage.errors import Compacted, WatcherTooSlow
from storage.store import Event, KeyValue, Store
from tests.storage.following import PODS, Following, following, write_history


async def churn(store: Store, name: str, count: int) -> int:
    """Write one key `count` times, deleting it each fifth time; return the last revision."""
    current: KeyValue | None = None
    revision = 0
    for n in range(count):
        if current is None:
            current = await store.create(PODS + name, b"%d" % n)
        elif n % 5 == 4:
            revision = (await store.delete(current.key, expected_revision=current.revision)).revision
            current = None
            continue
        else:
            current = await store.update(current.key, b"%d" % n, expected_revision=current.revision)
        revision = current.revision
    return revision


async def test_a_watch_resumes_at_every_revision_of_the_past(store: Store) -> None:
    before = await store.current_revision()
    events = await write_history(store)
    for after in (before, *(event.revision for event in events[:-1])):
        async with following(store, after_revision=after) as watch:
            assert await watch.until_revision(events[-1].revision) == [event for event in events if event.revision > after]


async def test_events_carry_what_was_there_before(store: Store) -> None:
    created = await store.create(PODS + "ns1/a", b"one")
    async with following(store, after_revision=created.revision) as watch:
        updated = await store.update(created.key, b"two", expected_revision=created.revision)
        deleted = await store.delete(created.key, expected_revision=updated.revision)
        again = await store.create(created.key, b"three")
        assert await watch.until_events(3) == [
            Event(updated.revision, created.key, b"two"),
            Event(deleted.revision, created.key, None),
            Event(again.revision, created.key, b"three"),
        ]


async def test_a_watch_from_now_is_silent_about_the_past(store: Store) -> None:
    await write_history(store)
    now = await store.current_revision()
    async with following(store, after_revision=now) as watch:
        first = asyncio.create_task(watch.until_events(1))
        created = await store.create(PODS + "ns1/new", b"new")
        assert await first == [Event(created.revision, created.key, b"new")]


async def test_a_watch_from_the_future_delivers_nothing_at_or_below_it(store: Store) -> None:
    """etcd 20221: a watch ahead of the store gave events of before."""
    created = await store.create(PODS + "ns1/a", b"0")
    after = created.revision + 20
    async with following(store, after_revision=after) as watch:
        reading = asyncio.create_task(watch.until_events(1))
        current = created
        while current.revision <= after:
            await asyncio.sleep(0)
            assert not reading.done()
            current = await store.update(current.key, b"%d" % current.revision, expected_revision=current.revision)
        assert [event.revision for event in await reading] == [current.revision]


async def test_other_namespaces_and_longer_names_are_silent(store: Store) -> None:
    now = await store.current_revision()
    async with following(store, PODS + "ns/", after_revision=now) as watch:
        reading = asyncio.create_task(watch.until_events(1))
        for name in ("ns1/a", "ns-/a", "nsa", "NS/a"):
            await store.create(PODS + name, b"other")
        await store.create("/registry/pods2/ns/a", b"other")
        mine = await store.create(PODS + "ns/a", b"mine")
        assert [event.key for event in await reading] == [mine.key]


async def test_progress_follows_a_call_of_current_revision_in_a_quiet_prefix(store: Store) -> None:
    now = await store.current_revision()
    async with following(store, after_revision=now) as watch:
        reading = asyncio.create_task(watch.until_progress(now + 1))
        await store.create("/registry/nodes/a", b"node")
        revision = await store.current_revision()
        assert revision > now
        await reading
        await watch.until_revision(revision)
        assert not watch.events


async def test_progress_comes_by_itself_in_a_quiet_prefix(store: Store) -> None:
    now = await store.current_revision()
    async with following(store, after_revision=now) as watch:
        created = await store.create("/registry/nodes/a", b"node")
        await watch.until_progress(created.revision)


async def test_progress_never_comes_ahead_of_an_event(store: Store) -> None:
    """etcd 15220. The check itself is in Following: no event at or below a progress that was seen."""
    now = await store.current_revision()
    done = False

    async def ask() -> None:
        while not done:
            await store.current_revision()
            await asyncio.sleep(0)

    asking = asyncio.create_task(ask())
    async with following(store, after_revision=now) as watch:
        writers = [asyncio.create_task(churn(store, f"ns{n}/a", 25)) for n in range(4)]
        await watch.until_events(100)
        last = max(await asyncio.gather(*writers))
    done = True
    await asking
    assert watch.events[-1].revision == last


async def test_two_watches_agree_with_each_other_and_with_the_past(store: Store) -> None:
    now = await store.current_revision()
    async with following(store, after_revision=now) as one, following(store, after_revision=now) as two:
        reading = [asyncio.create_task(watch.until_events(100)) for watch in (one, two)]
        last = max(await asyncio.gather(*(churn(store, f"ns{n}/a", 25) for n in range(4))))
        first, second = await asyncio.gather(*reading)
    async with following(store, after_revision=now) as late:
        assert await late.until_revision(last) == first == second


async def test_a_watch_that_starts_while_others_write_misses_nothing(store: Store) -> None:
    """The seam between past and present: each watch begins at another moment of the writing, at a revision seen by then."""
    start = await store.current_revision()
    seen: list[int] = [start]
    watches: list[asyncio.Task[list[Event]]] = []
    total = 120

    async def read(after: int, expected: int) -> list[Event]:
        async with following(store, after_revision=after) as watch:
            return await watch.until_revision(expected)

    async def follow_all() -> list[Event]:
        async with following(store, after_revision=start) as watch:
            while len(watch.events) < total:
                await watch.batch()
                seen.append(watch.position)
                watches.append(asyncio.create_task(read(watch.position - 1, final)))
            return watch.events

    final = start + total
    following_all = asyncio.create_task(follow_all())
    await asyncio.gather(*(churn(store, f"ns{n}/a", total // 4) for n in range(4)))
    events = await following_all
    if events[-1].revision < final:
        await churn(store, "last/a", final - events[-1].revision)
    whole = await read(start, final)
    assert whole[: len(events)] == events
    for after, got in zip(seen[1:], await asyncio.gather(*watches), strict=True):
        assert got[: len(whole)] == [event for event in whole if event.revision > after - 1][: len(got)]
        assert got[-1].revision >= final


async def test_a_reader_that_stops_reading_misses_nothing_or_is_told(store: Store) -> None:
    """etcd 17529. After `WatcherTooSlow` the reader resumes from the last revision that it saw."""
    now = await store.current_revision()
    async with following(store, after_revision=now) as watch:
        await store.create(PODS + "first/a", b"first")
        await watch.until_events(1)
        last = max(await asyncio.gather(*(churn(store, f"ns{n}/a", 50) for n in range(16))))
        events = await read_on(store, watch, last)
    async with following(store, after_revision=now) as late:
        assert await late.until_revision(last) == events
    assert len(events) == 801


async def read_on(store: Store, watch: Following, last: int) -> list[Event]:
    try:
        return await watch.until_revision(last)
    except WatcherTooSlow:
        async with following(store, after_revision=watch.position) as resumed:
            return watch.events + await resumed.until_revision(last)


async def test_readers_that_do_not_read_hold_up_nobody(store: Store) -> None:
    now = await store.current_revision()
    async with AsyncExitStack() as stack:
        stuck = [await stack.enter_async_context(following(store, after_revision=now)) for _ in range(50)]
        first = [asyncio.create_task(watch.batch()) for watch in stuck]
        async with following(store, after_revision=now) as watch:
            reading = asyncio.create_task(watch.until_events(200))
            await asyncio.gather(*(churn(store, f"ns{n}/a", 50) for n in range(4)))
            assert len(await reading) == 200
        await asyncio.gather(*first)


async def test_a_watch_may_be_abandoned_while_it_waits(store: Store) -> None:
    now = await store.current_revision()

    async def wait() -> None:
        async with following(store, after_revision=now) as watch:
            await watch.until_events(1)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    created = await store.create(PODS + "ns1/a", b"one")
    async with following(store, after_revision=now) as watch:
        await watch.until_revision(created.revision)


async def test_watches_and_listings_join_without_gap(store: Store) -> None:
    """List, then watch from the listing's revision: what a client's informer does, while others write."""
    writers = [asyncio.create_task(churn(store, f"ns{n}/a", 60)) for n in range(4)]
    listed = 0
    while not all(writer.done() for writer in writers):
        await asyncio.sleep(0)
        page = await store.list(PODS)
        state = {item.key: item for item in page.items}
        now = await store.current_revision()
        async with following(store, after_revision=page.revision) as watch:
            for event in await watch.until_revision(now):
                if event.value is None:
                    del state[event.key]
                else:
                    state[event.key] = KeyValue(event.key, event.value, event.revision)
            again = await store.list(PODS, revision=watch.position)
        assert again.items == [state[key] for key in sorted(state)]
        listed += 1
    await asyncio.gather(*writers)
    assert listed


async def test_a_watch_across_repeated_compactions_is_whole(store: Store) -> None:
    now = await store.current_revision()
    async with following(store, after_revision=now) as watch:
        # It is live before the first compaction: one that still catches up may be overtaken.
        await watch.until_revision(await churn(store, "ns/a", 1))
        reading = asyncio.create_task(watch.until_events(101))
        await asyncio.sleep(0)
        for n in range(10):
            await store.compact(await churn(store, f"ns{n}/a", 10))
        events = await reading
    assert len({event.revision for event in events}) == 101
    async with following(store, after_revision=now) as late:
        with pytest.raises(Compacted):
            await late.batch()
