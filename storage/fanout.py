"""One source of events to many readers, each behind a queue with a bound.

Knows the contract's events and nothing of where they come from. Everything here runs on one event loop and publishing never waits: a
reader whose queue is full is cut with `WatcherTooSlow` and may resume from the last revision that it saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from storage.errors import StoreClosed, StoreError, WatcherTooSlow
from storage.store import Event, Progress, WatchBatch

Past = Callable[[int, int], Awaitable[tuple[Sequence[Event], int]]]
"""Given (after, up to): some of the oldest events in between, and the revision up to which these are all. Raises Compacted."""


class Fanout:
    """Hands each published event to every reader whose prefix it has. `revision` is the one up to which all has been published."""

    def __init__(self, revision: int, *, queue_events: int = 10_000, progress_seconds: float = 2.0) -> None:
        self.revision = revision
        self._queue_events = queue_events
        self._progress_seconds = progress_seconds
        self._subscriptions: dict[_Subscription, None] = {}
        self._progress_revision = revision
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        self._error: StoreError | None = None

    def publish(self, events: Sequence[Event], revision: int) -> None:
        """Hand over the next events, in order; `revision` is at least that of the last one."""
        self.revision = revision
        for subscription in self._subscriptions:
            subscription.push(events)

    def checked_revision(self) -> int:
        """Return `revision`, after having every reader told that it is there. Costs nothing while nothing was published."""
        if self._progress_revision != self.revision:
            self._progress_revision = self.revision
            for subscription in self._subscriptions:
                subscription.progress(self.revision)
        return self.revision

    def end(self, error: StoreError | None = None) -> None:
        """Let every reader have what is in its queue, then end it, or raise `error` to it. For good; the first call counts."""
        if self._ended:
            return
        self._ended, self._error = True, error
        if self._timer is not None:
            self._timer.cancel()
        for subscription in self._subscriptions:
            subscription.end(error)

    async def watch(self, prefix: str, after_revision: int, *, past: Past) -> AsyncIterator[WatchBatch]:
        """Deliver as `Store.watch` promises: first what `past` returns, then what is published, with no gap and no event twice."""
        position = told = after_revision
        while position < self.revision:
            try:
                events, position = await past(position, self.revision)
            except StoreClosed:
                return
            if events:
                told = events[-1].revision
                yield tuple(events)
        # Nothing may be awaited between the last look at the revision and the subscription: what is published meanwhile would be lost.
        subscription = _Subscription(prefix, told, limit=self._queue_events)
        if position > told:
            subscription.progress(position)
        if self._ended:
            subscription.end(self._error)
        self._subscriptions[subscription] = None
        self._start_timer()
        try:
            while batch := await subscription.next():
                yield batch
        finally:
            del self._subscriptions[subscription]

    def _start_timer(self) -> None:
        if self._timer is None and not self._ended:
            self._timer = asyncio.get_running_loop().call_later(self._progress_seconds, self._tick)

    def _tick(self) -> None:
        self._timer = None
        for subscription in self._subscriptions:
            subscription.progress(self.revision, again=True)
        if self._subscriptions:
            self._start_timer()


class _Subscription:
    """The queue of one reader. A Progress takes no room: only the last one waits, behind the events."""

    __slots__ = ("_ended", "_error", "_limit", "_prefix", "_progress", "_queue", "_told", "_waiter")

    def __init__(self, prefix: str, told: int, *, limit: int) -> None:
        self._prefix = prefix
        self._told = told
        self._limit = limit
        self._queue: list[Event] = []
        self._progress: Progress | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._error: StoreError | None = None

    def push(self, events: Sequence[Event]) -> None:
        if self._ended:
            return
        prefix, told = self._prefix, self._told
        matching = [event for event in events if event.key.startswith(prefix) and event.revision > told]
        if not matching:
            return
        if len(self._queue) + len(matching) > self._limit:
            self._queue.clear()
            self._progress = None
            self.end(WatcherTooSlow(f"a watch of {prefix} left more than {self._limit} events unread"))
            return
        self._queue += matching
        self._told = matching[-1].revision
        self._progress = None
        self._wake()

    def progress(self, revision: int, *, again: bool = False) -> None:
        if self._ended or revision < self._told or (revision == self._told and (not again or self._queue)):
            return
        self._told = revision
        self._progress = Progress(revision)
        self._wake()

    def end(self, error: StoreError | None) -> None:
        if not self._ended:
            self._ended, self._error = True, error
            self._wake()

    async def next(self) -> WatchBatch:
        """Return what is there, wait for it if need be; empty at the end."""
        while not self._queue and self._progress is None and not self._ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        batch: list[Event | Progress] = [*self._queue]
        if self._progress is not None:
            batch.append(self._progress)
        self._queue.clear()
        self._progress = None
        if not batch and self._error is not None:
            raise self._error
        return tuple(batch)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
