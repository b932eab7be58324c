"""A copy in memory of all that a store holds under one prefix, which keeps the store's contract itself.

The cache lists once and then follows the store's watch. A read asks the store for its current revision only, waits until the cache has
that, and is answered from memory; so it sees every write that had returned before, on any client of the store. A write goes to the store
and returns when the cache shows it. Of each value the cache holds what a decoder given by its owner makes of it: it reads no value itself.

One event loop; a batch of the watch is applied in one step between two awaits, so that whoever looks sees whole revisions. What the cache
shows never goes back, also not over a loss of the store or a new list. A store that cannot be reached stops `fresh`, never `peek`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Generic, Protocol, cast

from storage.errors import (
    Compacted,
    Corrupted,
    FutureRevision,
    KeyNotFound,
    StoreClosed,
    StoreError,
    Unavailable,
    WatcherTooSlow,
)
from storage.freshness import SharedRevision
from storage.history import Change, History, RingLimits
from storage.snapshot import E, Snapshot
from storage.store import Event, KeyValue, Page, Progress, WatchBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from storage.store import Store

_log = logging.getLogger(__name__)
_STEP = 100
"""Events that are applied at once: what others wait for is then some milliseconds of decoding."""


class Subscriber(Protocol[E]):
    """Who is told of each change in the step in which it is applied. It must neither wait nor raise."""

    def changes(self, batch: Sequence[Change[E]]) -> None:
        """Take changes in the order of their revisions; the cache has applied all of the batch."""

    def progress(self, revision: int) -> None:
        """Learn that all changes up to `revision` have been delivered."""

    def reset(self) -> None:
        """Learn that changes are missing here: the history begins anew at the cache's revision, with what its snapshot shows."""


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much a cache keeps, and how long it waits."""

    history: RingLimits = field(default_factory=RingLimits)
    """How far back lists and watches are served from memory."""
    page_size: int = 500
    """Keys per page when the whole prefix is listed: one page is decoded in one step, others run between two."""
    own_write_seconds: float = 1.0
    """How long a write that the store has acknowledged waits for this cache to show it. It then returns all the same: it has happened."""
    retry_seconds: float = 0.05
    """Pause before the next attempt to reach the store, doubled after each one that brought nothing new. The first comes at once."""
    retry_seconds_max: float = 5.0
    """The longest such pause."""
    compaction_seconds: float = 15.0
    """How often the store is asked whether anybody has compacted it, as kube-apiserver does. 0: never."""


class WatchCache(Generic[E]):
    """The entries of one prefix. The owner runs `run` as a task; everything else may be used as soon as that has listed once."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        *,
        decode: Callable[[KeyValue], E],
        limits: CacheLimits | None = None,
        size: Callable[[E], int] = lambda entry: len(entry.value),
    ) -> None:
        """Make an empty cache.

        `decode` is a pure function of the KeyValue. For a value that it cannot read it returns an entry that says so; if it raises, the
        cache is not usable until the value has gone. `size` says how many bytes an entry holds on to, for the bound of the history.
        """
        self._store = store
        self._prefix = prefix
        self._decode = decode
        self._limits = limits or CacheLimits()
        self._size = size
        self._entries: dict[str, E] = {}
        self._snapshot: Snapshot[E] = Snapshot(0)
        self._history: History[E] = self._history_from(0)
        self._revision = 0
        self._current = SharedRevision(store.current_revision)
        self._listed = False
        self._list_again = True
        self._closed = False
        self._following: asyncio.Task[None] | None = None
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._own: dict[str, tuple[bytes, Callable[[KeyValue], E]]] = {}
        self._subscribers: tuple[Subscriber[E], ...] = ()
        self._readers: set[_Wake] = set()
        self._compacted = 0

    # Following the store

    async def run(self) -> None:
        """List, then follow the watch, until the cache or the store is closed. The owner's task; safe to cancel.

        A watch that ends is resumed after the last revision seen; only when the store has compacted that, a new list is made.
        """
        checking = asyncio.create_task(self._check_compaction_often(), name=f"check compaction of {self._prefix}")
        try:
            await self._follow_always()
        finally:
            checking.cancel()
            await asyncio.wait([checking])

    async def _follow_always(self) -> None:
        pause = 0.0
        while not self._closed:
            seen = self._revision
            self._following = asyncio.create_task(self._follow(pause), name=f"follow {self._prefix}")
            try:
                await self._following
            except StoreClosed:
                return
            except asyncio.CancelledError:
                # `close` and `verify` cancel the task inside only.
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                continue
            except Compacted as error:
                self._list_again = True
                _log.warning("cache of %s lists again: %s", self._prefix, error)
            except Corrupted as error:
                self._list_again = True
                _log.error("cache of %s lists again: %s", self._prefix, error)
            except StoreError as error:
                # Once: a store that is away for an hour is asked again a thousand times.
                level = logging.DEBUG if pause else logging.WARNING
                _log.log(level, "cache of %s lost the watch at revision %d: %s", self._prefix, self._revision, error)
            except Exception:
                self._list_again = True
                _log.exception("cache of %s lists again after a fault", self._prefix)
            pause = 0.0 if self._revision > seen else min(max(2 * pause, self._limits.retry_seconds), self._limits.retry_seconds_max)

    async def close(self) -> None:
        """End `run` and what waits here. The store stays open: others use it."""
        self._closed = True
        await self._current.close()
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(StoreClosed(f"the cache of {self._prefix} has been closed"))
        for reader in self._readers:
            reader.event.set()

    async def _follow(self, pause: float) -> None:
        # Many caches lose the same store together; they should not come back together.
        await asyncio.sleep(pause * (0.5 + random.random() / 2))
        if self._list_again:
            await self._list()
        watch = cast(AsyncGenerator[WatchBatch, None], self._store.watch(self._prefix, after_revision=self._revision))
        async with aclosing(watch):
            async for batch in watch:
                if len(batch) <= _STEP:
                    self._apply(batch)
                    continue
                for part in _parts(batch):
                    self._apply(part)
                    await asyncio.sleep(0)
        raise Unavailable("the watch has ended")

    async def _list(self) -> None:
        """Put a new list in the place of what is held, in one step at its end; what has not changed stays the same object."""
        snapshot = self._snapshot
        held = {entry.key: entry for entry in snapshot.iterate()}
        entries: dict[str, E] = {}
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                writes: list[tuple[str, E | None]] = []
                for item in page.items:
                    entry = held.get(item.key)
                    if entry is None or entry.revision != item.revision:
                        entry = self._decode(item)
                        writes.append((item.key, entry))
                    entries[item.key] = entry
                snapshot = snapshot.write(page.revision, writes)
        if snapshot.revision < self._revision:
            raise Corrupted(f"the store lists at revision {snapshot.revision} after it had given {self._revision}")
        gone: list[tuple[str, E | None]] = [(key, None) for key in sorted(held.keys() - entries.keys())]
        self._entries = entries
        self._snapshot = snapshot.write(snapshot.revision, gone)
        self._history = self._history_from(snapshot.revision)
        self._revision = snapshot.revision
        self._listed, self._list_again = True, False
        for subscriber in self._subscribers:
            self._tell(subscriber.reset)
        self._release()

    async def _pages(self, revision: int | None = None) -> AsyncGenerator[Page, None]:
        """List the store at one revision, with a pause for others after each page."""
        start_key: str | None = None
        while True:
            page = await self._store.list(self._prefix, start_key=start_key, limit=self._limits.page_size, revision=revision)
            yield page
            if not page.remaining:
                return
            revision, start_key = page.revision, page.items[-1].key + "\0"
            await asyncio.sleep(0)

    def _apply(self, batch: WatchBatch) -> None:
        """Take one batch of the watch: nothing of it is visible, then all of it."""
        entries, own = self._entries, self._own
        seen = self._revision
        last, progress = seen, -1
        changes: list[Change[E]] = []
        writes: dict[str, E | None] = {}
        for item in batch:
            revision = item.revision
            if isinstance(item, Progress):
                progress = max(progress, revision)
                continue
            key, value = item.key, item.value
            if revision <= seen or revision < last or revision <= progress:
                raise Corrupted(f"revision {revision} of {key} came after revision {max(last, progress)}")
            last = revision
            previous = writes[key] if key in writes else entries.get(key)
            entry: E | None = None
            if value is not None:
                keyvalue = KeyValue(key, value, revision)
                mine = own.get(key) if own else None
                entry = mine[1](keyvalue) if mine is not None and mine[0] == value else self._decode(keyvalue)
            elif previous is None:
                raise Corrupted(f"revision {revision} deletes {key}, which was not there")
            writes[key] = entry
            changes.append(Change(revision, key, entry, previous))
        self._revision = max(last, progress)
        if changes:
            for key, entry in writes.items():
                if entry is None:
                    entries.pop(key, None)
                else:
                    entries[key] = entry
            in_order = writes.items() if len(writes) == 1 else sorted(writes.items(), key=_key_of)
            self._snapshot = self._snapshot.write(self._revision, in_order)
            self._history.append(changes)
            for subscriber in self._subscribers:
                self._tell(subscriber.changes, changes)
        elif self._revision > seen:
            self._snapshot = self._snapshot.at(self._revision)
        if progress >= self._revision:
            self._history.expire()
            for subscriber in self._subscribers:
                self._tell(subscriber.progress, progress)
        if self._waiting:
            self._release()

    def _tell(self, what: Callable[..., None], *args: object) -> None:
        try:
            what(*args)
        except Exception:
            _log.exception("a subscriber of the cache of %s failed", self._prefix)

    def _release(self) -> None:
        for waiter, revision in self._waiting.items():
            if revision <= self._revision and not waiter.done():
                waiter.set_result(None)

    def _history_from(self, revision: int) -> History[E]:
        return History(revision, limits=self._limits.history, size=self._size)

    async def _check_compaction_often(self) -> None:
        while self._limits.compaction_seconds:
            await asyncio.sleep(self._limits.compaction_seconds)
            try:
                await self.check_compaction()
            except StoreClosed:
                return
            except StoreError as error:
                _log.debug("cache of %s: the store does not say how far it is compacted: %r", self._prefix, error)

    async def check_compaction(self) -> None:
        """Find out how far anybody has compacted the store: what it has forgotten is not told from memory either, to those who ask anew.

        Raises:
            StoreError: it does not answer.
        """
        if not self._listed:
            return
        try:
            # No object has this key; that the revision can be read is all that matters.
            await self._store.get(self._prefix, revision=self.oldest_revision)
        except KeyNotFound:
            pass
        except Compacted as error:
            self._compacted = max(self._compacted, error.compact_revision)

    async def verify(self) -> None:
        """Compare key and revision of all entries with a list of the store at the same revision; where they differ, list again.

        Says nothing when the store has compacted that revision meanwhile, or nothing has been listed yet.

        Raises:
            Corrupted: they differ; a list has been ordered, and the history begins anew with it.
        """
        if not self._listed:
            return
        snapshot = self._snapshot
        held = ((entry.key, entry.revision) for entry in snapshot.iterate())
        try:
            async with aclosing(self._pages(snapshot.revision)) as pages:
                async for page in pages:
                    for item in page.items:
                        self._agree(next(held, None), (item.key, item.revision), snapshot.revision)
        except Compacted:
            return
        self._agree(next(held, None), None, snapshot.revision)

    def _agree(self, held: tuple[str, int] | None, stored: tuple[str, int] | None, revision: int) -> None:
        if held == stored:
            return
        self._list_again = True
        if self._following is not None:
            self._following.cancel()
        raise Corrupted(f"at revision {revision} the cache of {self._prefix} holds {held} where the store has {stored}")

    # Reading

    @property
    def revision(self) -> int:
        """All writes up to this revision have been applied."""
        return self._revision

    @property
    def oldest_revision(self) -> int:
        """The oldest revision that can be listed from memory, and after which a new reader is told the changes."""
        return max(self._history.floor, self._compacted)

    @property
    def ready(self) -> bool:
        """Whether the first list has been made."""
        return self._listed

    async def wait_ready(self) -> None:
        """Return when the first list has been made."""
        if not self._listed:
            await self._reach(0, None)

    async def fresh(self, *, timeout_seconds: float = 3.0) -> int:
        """Wait until the cache holds every write that had returned, on any client of the store, before this call; return its revision.

        Costs about a microsecond when the store is in this process and the cache has caught up; otherwise one read of the current revision
        shared with others.

        Raises:
            Unavailable: the store has not answered, or the cache has not caught up, in time; says how far it is behind.
            StoreError: what reading the current revision raised.
        """
        revision = self._current.at_once() if self._listed and not self._closed else None
        if revision is not None and revision <= self._revision:
            return self._revision
        self._check_open()
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        try:
            if revision is None:
                async with asyncio.timeout_at(deadline):
                    revision = await self._current.read()
            if revision > self._revision or not self._listed:
                await self._reach(revision, deadline)
        except TimeoutError as error:
            raise Unavailable(self._lag(revision)) from error
        return self._revision

    def _lag(self, revision: int | None) -> str:
        if revision is None:
            return f"the store has not told its revision in time; the cache of {self._prefix} is at {self._revision}"
        if not self._listed:
            return f"the cache of {self._prefix} has not been filled yet; the store is at revision {revision}"
        return f"the cache of {self._prefix} is at revision {self._revision}, {revision - self._revision} behind the store"

    async def until(self, revision: int, *, timeout_seconds: float = 3.0) -> None:
        """Wait until the cache holds every write up to `revision`.

        Raises:
            FutureRevision: it does not in time.
        """
        if revision <= self._revision and self._listed:
            return
        try:
            await self._reach(revision, asyncio.get_running_loop().time() + timeout_seconds)
        except TimeoutError as error:
            raise FutureRevision(revision, self._revision) from error

    async def _reach(self, revision: int, deadline: float | None) -> None:
        # What has been written in this process is mostly here one step later: no need for a timer then.
        await asyncio.sleep(0)
        if revision <= self._revision and self._listed:
            return
        self._check_open()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = revision
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        finally:
            del self._waiting[waiter]

    def peek(self, key: str) -> E | None:
        """Return what the cache holds under the key, without asking whether it is fresh."""
        return self._entries.get(key)

    def snapshot(self) -> Snapshot[E]:
        """Return all entries at the cache's revision."""
        return self._snapshot

    def snapshot_at(self, revision: int) -> Snapshot[E]:
        """Return all entries as they were at `revision`.

        Raises:
            Compacted: the history here does not reach back so far, or the store has been compacted further.
            FutureRevision: the cache has not got so far.
        """
        self.check_known(revision)
        return self._history.snapshot_at(revision, self._snapshot)

    def check_known(self, revision: int) -> None:
        """See that a new reader can begin at a revision.

        Raises:
            Compacted: the history here does not reach back so far, or the store has been compacted further.
        """
        if revision < self.oldest_revision:
            raise Compacted(revision, self.oldest_revision)

    def changes_after(self, revision: int, *, limit: int | None = None) -> Sequence[Change[E]]:
        """Return the changes with a higher revision, oldest first and at most `limit`; none when the cache has not got so far.

        For a reader that has begun: also what the store has been compacted over is told, as long as it is here.

        Raises:
            Compacted: the history here does not reach back so far.
        """
        return self._history.changes_after(revision, limit)

    def subscribe(self, subscriber: Subscriber[E]) -> Callable[[], None]:
        """Tell the subscriber of everything that is applied from now on, in the same step; return the function that ends it."""
        self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            self._subscribers = tuple(other for other in self._subscribers if other is not subscriber)

        return unsubscribe

    # Writing

    async def create(self, key: str, value: bytes, *, entry: Callable[[KeyValue], E] | None = None) -> KeyValue:
        """Create in the store, as `Store.create`; return when this cache shows it.

        `entry` makes of this one KeyValue what `decode` would, by a writer who has the decoded form at hand.
        """
        with self._own_entry(key, value, entry):
            return await self._shown(await self._store.create(key, value))

    async def update(self, key: str, value: bytes, *, expected_revision: int, entry: Callable[[KeyValue], E] | None = None) -> KeyValue:
        """Update in the store, as `Store.update`; return when this cache shows it. For `entry` see `create`."""
        with self._own_entry(key, value, entry):
            return await self._shown(await self._store.update(key, value, expected_revision=expected_revision))

    async def delete(self, key: str, *, expected_revision: int) -> KeyValue:
        """Delete in the store, as `Store.delete`; return when this cache shows it."""
        return await self._shown(await self._store.delete(key, expected_revision=expected_revision))

    @contextmanager
    def _own_entry(self, key: str, value: bytes, entry: Callable[[KeyValue], E] | None) -> Iterator[None]:
        """Offer `entry` to the event of this write, which may come before or after the response.

        The event is known by its key and value: an entry depends on nothing else, so it does not matter whose write it was.
        """
        self._check_open()
        if entry is None:
            yield
            return
        offer = (value, entry)
        self._own[key] = offer
        try:
            yield
        finally:
            if self._own.get(key) is offer:
                del self._own[key]

    async def _shown(self, written: KeyValue) -> KeyValue:
        if written.revision > self._revision and self._listed:
            try:
                await self._reach(written.revision, asyncio.get_running_loop().time() + self._limits.own_write_seconds)
            except StoreClosed:
                return written
            except TimeoutError:
                _log.warning("the cache of %s is at revision %d; an own write has %d", self._prefix, self._revision, written.revision)
        return written

    # The rest of the contract

    async def get(self, key: str, *, revision: int | None = None) -> KeyValue:
        """Return what is under the key, as `Store.get`, from memory if the history reaches there."""
        self._check_open()
        if not key.startswith(self._prefix):
            return await self._store.get(key, revision=revision)
        if revision is None:
            await self.fresh()
            entry = self._entries.get(key)
        elif self._reaches(revision):
            entry = self._entries.get(key)
            for change in self._history.changes_after(revision):
                if change.key == key:
                    entry = change.previous
                    break
        else:
            return await self._store.get(key, revision=revision)
        if entry is None:
            raise KeyNotFound(key)
        return _keyvalue(entry)

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """Return the keys that begin with `prefix`, as `Store.list`, from memory if the history reaches there."""
        self._check_open()
        if not prefix.startswith(self._prefix) or (revision is not None and not self._reaches(revision)):
            return await self._store.list(prefix, start_key=start_key, limit=limit, revision=revision)
        if revision is None:
            await self.fresh()
        snapshot = self._snapshot if revision is None else self.snapshot_at(revision)
        items = [_keyvalue(entry) for entry in islice(snapshot.iterate(prefix, start_key), limit)]
        return Page(items, snapshot.revision, snapshot.count(prefix, start_key) - len(items))

    async def watch(self, prefix: str, *, after_revision: int) -> AsyncGenerator[WatchBatch, None]:
        """Deliver every write under `prefix`, as `Store.watch`, from memory if the history reaches back to its beginning.

        There is no queue: the reader takes what it has not seen from the history, and gets WatcherTooSlow when that has moved on.
        """
        self._check_open()
        if not self._listed or not prefix.startswith(self._prefix) or after_revision < self.oldest_revision:
            watch = cast(AsyncGenerator[WatchBatch, None], self._store.watch(prefix, after_revision=after_revision))
            async with aclosing(watch):
                async for batch in watch:
                    yield batch
            return
        wake = _Wake()
        unsubscribe = self.subscribe(wake)
        self._readers.add(wake)
        position = after_revision
        try:
            while True:
                wake.event.clear()
                try:
                    changes = self._history.changes_after(position)
                except Compacted as error:
                    raise WatcherTooSlow(f"the history begins at {error.compact_revision}; this reader has seen {position}") from error
                events = [_event(change) for change in changes if change.key.startswith(prefix)]
                # To a reader that gets nothing of a batch, a batch for others is progress.
                progress = (self._revision > position and not events) or (wake.progressed and self._revision >= position)
                position = max(position, self._revision)
                wake.progressed = False
                if events or progress:
                    yield (*events, Progress(position)) if progress else tuple(events)
                elif self._closed:
                    return
                else:
                    await wake.event.wait()
        finally:
            self._readers.discard(wake)
            unsubscribe()

    async def current_revision(self) -> int:
        """Return the current revision of the store, as `Store.current_revision`."""
        self._check_open()
        revision = self._current.at_once()
        return revision if revision is not None else await self._current.read()

    async def compact(self, revision: int) -> None:
        """Forget history below `revision` in the store and here, as `Store.compact`."""
        self._check_open()
        await self._store.compact(revision)
        # The changes stay for those who watch already; who asks anew is told what the store would say.
        self._compacted = max(self._compacted, revision)

    async def size_bytes(self) -> int:
        """Return how much room the store takes on its disk."""
        return await self._store.size_bytes()

    def _reaches(self, revision: int) -> bool:
        return self._listed and self.oldest_revision <= revision <= self._revision

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the cache of {self._prefix} has been closed")


class _Wake:
    """A subscriber that only wakes the reader of a watch."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.progressed = False

    def changes(self, batch: Sequence[object]) -> None:
        self.event.set()

    def progress(self, revision: int) -> None:
        self.progressed = True
        self.event.set()

    def reset(self) -> None:
        self.event.set()


def _parts(batch: WatchBatch) -> Iterator[WatchBatch]:
    begin = 0
    while begin < len(batch):
        end = begin + _STEP
        # A revision is atomic.
        while end < len(batch) and batch[end].revision == batch[end - 1].revision:
            end += 1
        yield batch[begin:end]
        begin = end


def _key_of(write: tuple[str, object]) -> str:
    return write[0]


def _keyvalue(entry: E) -> KeyValue:
    return KeyValue(entry.key, entry.value, entry.revision)


def _event(change: Change[E]) -> Event:
    return Event(
        change.revision,
        change.key,
        None if change.entry is None else change.entry.value,
        None if change.previous is None else _keyvalue(change.previous),
    )
