"""The queues between one source of events and its readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import cast

import pytest

from storage.errors import Compacted, StoreClosed, Unavailable, WatcherTooSlow
from storage.fanout import Fanout
from storage.store import Event, Progress, WatchBatch

Watch = AsyncGenerator[WatchBatch, None]


def event(revision: int, key: str = "/a/x") -> Event:
    return Event(revision, key, b"value")


async def nothing(after: int, upto: int) -> tuple[Sequence[Event], int]:
    return [], upto


@asynccontextmanager
async def waiting_watch(fanout: Fanout, after: int, prefix: str = "/a/") -> AsyncIterator[tuple[Watch, asyncio.Task[WatchBatch]]]:
    """A watch that has come to wait for its first batch."""
    async with aclosing(cast(Watch, fanout.watch(prefix, after, past=nothing))) as watch:
        first = asyncio.create_task(anext(watch))
        await asyncio.sleep(0)
        yield watch, first


async def test_a_batch_is_what_has_become_ready_together() -> None:
    fanout = Fanout(10)
    async with waiting_watch(fanout, 10) as (watch, first):
        fanout.publish([event(11), event(12, "/b/x"), event(13)], 13)
        fanout.publish([event(14)], 14)
        assert await first == (event(11), event(13), event(14))
        fanout.publish([event(15)], 15)
        assert await anext(watch) == (event(15),)


async def test_a_reader_that_leaves_its_queue_full_is_told_and_holds_up_nobody() -> None:
    fanout = Fanout(0, queue_events=3)
    async with waiting_watch(fanout, 0) as (slow, slow_first), waiting_watch(fanout, 0) as (quick, quick_first):
        fanout.publish([event(1)], 1)
        assert await slow_first == await quick_first == (event(1),)
        for revision in range(2, 6):
            fanout.publish([event(revision)], revision)
            assert await anext(quick) == (event(revision),)
        with pytest.raises(WatcherTooSlow, match="more than 3 events unread"):
            await anext(slow)


async def test_progress_is_told_once_for_each_revision_and_behind_the_events() -> None:
    fanout = Fanout(5)
    async with waiting_watch(fanout, 5) as (watch, first):
        assert fanout.checked_revision() == 5
        fanout.publish([event(6)], 6)
        fanout.publish([event(7, "/b/x")], 7)
        assert fanout.checked_revision() == fanout.checked_revision() == 7
        assert await first == (event(6), Progress(7))
        fanout.publish([event(8)], 8)
        assert fanout.checked_revision() == 8
        assert await anext(watch) == (event(8),)


async def test_events_overtake_a_progress_that_was_not_read() -> None:
    fanout = Fanout(5)
    async with waiting_watch(fanout, 5) as (_, first):
        fanout.publish([event(6, "/b/x")], 6)
        fanout.checked_revision()
        fanout.publish([event(7)], 7)
        assert await first == (event(7),)


async def test_progress_is_repeated_in_a_quiet_prefix() -> None:
    fanout = Fanout(5, progress_seconds=0.001)
    async with waiting_watch(fanout, 5) as (watch, first):
        assert await first == await anext(watch) == (Progress(5),)
    fanout.end()


async def test_no_progress_below_a_start_in_the_future() -> None:
    fanout = Fanout(5, progress_seconds=0.001)
    async with waiting_watch(fanout, 9) as (_, ahead), waiting_watch(fanout, 5) as (_, here):
        await here
        fanout.publish([event(9), event(10)], 10)
        assert await ahead == (event(10),)
    fanout.end()


async def test_what_is_published_while_the_past_is_read_is_not_lost() -> None:
    fanout = Fanout(4)
    log = [event(revision) for revision in range(1, 5)]

    async def past(after: int, upto: int) -> tuple[Sequence[Event], int]:
        # Two at a time, and each reading is overtaken by a write, up to the tenth.
        if fanout.revision < 10:
            log.append(event(fanout.revision + 1))
            fanout.publish([log[-1]], log[-1].revision)
        chunk = [event for event in log if after < event.revision <= upto][:2]
        return chunk, chunk[-1].revision

    async with aclosing(cast(Watch, fanout.watch("/a/", 0, past=past))) as watch:
        got: list[Event | Progress] = []
        while len(got) < 10:
            got += await anext(watch)
    assert got == log


async def test_the_past_of_another_prefix_ends_in_a_progress() -> None:
    fanout = Fanout(4)
    async with aclosing(cast(Watch, fanout.watch("/a/", 0, past=nothing))) as watch:
        assert await anext(watch) == (Progress(4),)


async def test_a_past_that_is_compacted_is_told() -> None:
    async def past(after: int, upto: int) -> tuple[Sequence[Event], int]:
        raise Compacted(after, 3)

    async with aclosing(cast(Watch, Fanout(4).watch("/a/", 0, past=past))) as watch:
        with pytest.raises(Compacted):
            await anext(watch)


async def test_the_end_comes_after_what_is_in_the_queue() -> None:
    fanout = Fanout(0)
    async with waiting_watch(fanout, 0) as (lost, lost_first), waiting_watch(fanout, 0) as (_, other):
        fanout.publish([event(1)], 1)
        fanout.end(Unavailable("gone"))
        fanout.end()
        assert await lost_first == await other == (event(1),)
        with pytest.raises(Unavailable, match="gone"):
            await anext(lost)
    async with aclosing(cast(Watch, fanout.watch("/a/", 1, past=nothing))) as late:
        with pytest.raises(Unavailable):
            await anext(late)


async def test_a_watch_that_begins_after_the_end_ends() -> None:
    async def past(after: int, upto: int) -> tuple[Sequence[Event], int]:
        raise StoreClosed("closed")

    fanout = Fanout(3)
    fanout.end()
    assert [batch async for batch in fanout.watch("/a/", 3, past=past)] == []
    assert [batch async for batch in fanout.watch("/a/", 0, past=past)] == []


async def test_an_abandoned_watch_is_forgotten() -> None:
    fanout = Fanout(0)
    async with waiting_watch(fanout, 0) as (_, first):
        fanout.publish([event(1)], 1)
        await first
    assert not fanout._subscriptions
    fanout.publish([event(2)], 2)
