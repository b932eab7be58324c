"""A copy in memory of all that a store holds under one prefix, which keeps the store's contract itself.

The cache lists once and then follows the store's watch. A read asks the store for its current revision only, waits until the cache has
that, and is answered from memory; so it sees every write that had returned before, on any client of the store. A write goes to the store
and returns when the cache shows it. A store that cannot be reached stops `fresh`, never `peek`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import islice
from typing import TYPE_CHECKING, Generic, cast

from storage.cache.follower import Follower
from storage.cache.image import Image, Subscriber
from storage.cache.limits import CacheLimits
from storage.cache.own_writes import OwnWrites
from storage.cache.replay import keyvalue, replay
from storage.errors import Compacted, FutureRevision, KeyNotFound, StoreClosed, Unavailable
from storage.freshness import SharedRevision
from storage.snapshot import E, Snapshot
from storage.store import KeyValue, Page, WatchBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.history import Change, Retire
    from storage.store import Store

_log = logging.getLogger(__name__)


class WatchCache(Generic[E]):
    """The entries of one prefix. The owner runs `run` as a task; everything else may be used as soon as that has listed once."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        *,
        decode: Callable[[KeyValue], E],
        limits: CacheLimits | None = None,
        retire: Retire[E] = lambda entry, _newer: len(entry.value),
    ) -> None:
        """Make an empty cache.

        `decode` is a pure function of the KeyValue. For a value that it cannot read it returns an entry that says so; if it raises, the
        cache is not usable until the value has gone. `retire` may keep in less room what has been overwritten, and says
        how many bytes that is, for the bound of the history.
        """
        self._store = store
        self._prefix = prefix
        self._limits = limits or CacheLimits()
        self._own = OwnWrites[E]()
        self._image = Image(prefix, decode=decode, decode_written=self._own.entry, retire=retire, history=self._limits.history)
        self._follower = Follower(store, self._image, self._limits)
        self._current = SharedRevision(store.current_revision)

    async def run(self) -> None:
        """List, then follow the watch, until the cache or the store is closed. The owner's task; safe to cancel."""
        await self._follower.run()

    async def close(self) -> None:
        """End `run` and what waits here. The store stays open: others use it."""
        self._image.closed = True
        await self._current.close()
        await self._follower.close()
        self._image.close()

    async def check_compaction(self) -> None:
        """Find out how far anybody has compacted the store: what it has forgotten is not told from memory either, to those who ask anew.

        Raises:
            StoreError: it does not answer.
        """
        await self._follower.check_compaction()

    async def verify(self) -> None:
        """Compare key and revision of all entries with a list of the store at the same revision; where they differ, list again.

        Says nothing when the store has compacted that revision meanwhile, or nothing has been listed yet.

        Raises:
            Corrupted: they differ; a list has been ordered, and the history begins anew with it.
        """
        await self._follower.verify()

    # Reading

    @property
    def revision(self) -> int:
        """All writes up to this revision have been applied."""
        return self._image.revision

    @property
    def oldest_revision(self) -> int:
        """The oldest revision that can be listed from memory, and after which a new reader is told the changes."""
        return self._image.oldest_revision

    @property
    def ready(self) -> bool:
        """Whether the first list has been made."""
        return self._image.listed

    async def wait_ready(self) -> None:
        """Return when the first list has been made."""
        if not self._image.listed:
            await self._image.reach(0, None)

    async def fresh(self, *, timeout_seconds: float = 3.0) -> int:
        """Wait until the cache holds every write that had returned, on any client of the store, before this call; return its revision.

        Costs about a microsecond when the store is in this process and the cache has caught up; otherwise one read of the current revision
        shared with others.

        Raises:
            Unavailable: the store has not answered, or the cache has not caught up, in time; says how far it is behind.
            StoreError: what reading the current revision raised.
        """
        revision = self._current.at_once() if self._image.listed and not self._image.closed else None
        if revision is not None and revision <= self._image.revision:
            return self._image.revision
        self._image.check_open()
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        try:
            if revision is None:
                revision = await self._current.read(deadline)
            if revision > self._image.revision or not self._image.listed:
                await self._image.reach(revision, deadline)
        except TimeoutError as error:
            raise Unavailable(self._lag(revision)) from error
        return self._image.revision

    def _lag(self, revision: int | None) -> str:
        if revision is None:
            return f"the store has not told its revision in time; the cache of {self._prefix} is at {self._image.revision}"
        if not self._image.listed:
            return f"the cache of {self._prefix} has not been filled yet; the store is at revision {revision}"
        return f"the cache of {self._prefix} is at revision {self._image.revision}, {revision - self._image.revision} behind the store"

    async def until(self, revision: int, *, timeout_seconds: float = 3.0) -> None:
        """Wait until the cache holds every write up to `revision`.

        Raises:
            FutureRevision: it does not in time.
        """
        if revision <= self._image.revision and self._image.listed:
            return
        try:
            await self._image.reach(revision, asyncio.get_running_loop().time() + timeout_seconds)
        except TimeoutError as error:
            raise FutureRevision(revision, self._image.revision) from error

    def peek(self, key: str) -> E | None:
        """Return what the cache holds under the key, without asking whether it is fresh."""
        return self._image.entries.get(key)

    def snapshot(self) -> Snapshot[E]:
        """Return all entries at the cache's revision."""
        return self._image.snapshot

    def snapshot_at(self, revision: int) -> Snapshot[E]:
        """Return all entries as they were at `revision`.

        Raises:
            Compacted: the history here does not reach back so far, or the store has been compacted further.
            FutureRevision: the cache has not got so far.
        """
        self._image.check_listed(revision)
        return self._image.history.snapshot_at(revision, self._image.snapshot)

    def check_known(self, revision: int) -> None:
        """See that a reader of changes can begin at a revision.

        Raises:
            Compacted: the history here does not reach back so far.
        """
        if revision < self._image.history.floor:
            raise Compacted(revision, self._image.history.floor)

    def changes_after(self, revision: int, *, limit: int | None = None) -> Sequence[Change[E]]:
        """Return the changes with a higher revision, oldest first and at most `limit`; none when the cache has not got so far.

        Also what the store has been compacted over is told, as long as it is here.

        Raises:
            Compacted: the history here does not reach back so far.
        """
        return self._image.history.changes_after(revision, limit)

    def subscribe(self, subscriber: Subscriber[E]) -> Callable[[], None]:
        """Tell the subscriber of everything that is applied from now on, in the same step; return the function that ends it."""
        return self._image.subscribe(subscriber)

    # Writing

    async def create(self, key: str, value: bytes, *, entry: Callable[[KeyValue], E] | None = None) -> KeyValue:
        """Create in the store, as `Store.create`; return when this cache shows it.

        `entry` makes of this one KeyValue what `decode` would, by a writer who has the decoded form at hand.
        """
        self._image.check_open()
        offer = self._own.offer(key, value, entry)
        try:
            return await self._shown(await self._store.create(key, value))
        finally:
            self._own.withdraw(key, offer)

    async def update(self, key: str, value: bytes, *, expected_revision: int, entry: Callable[[KeyValue], E] | None = None) -> KeyValue:
        """Update in the store, as `Store.update`; return when this cache shows it. For `entry` see `create`."""
        self._image.check_open()
        offer = self._own.offer(key, value, entry)
        try:
            return await self._shown(await self._store.update(key, value, expected_revision=expected_revision))
        finally:
            self._own.withdraw(key, offer)

    async def delete(self, key: str, *, expected_revision: int) -> KeyValue:
        """Delete in the store, as `Store.delete`; return when this cache shows it."""
        return await self._shown(await self._store.delete(key, expected_revision=expected_revision))

    async def _shown(self, written: KeyValue) -> KeyValue:
        if written.revision > self._image.revision and self._image.listed:
            try:
                await self._image.reach(written.revision, asyncio.get_running_loop().time() + self._limits.own_write_seconds)
            except StoreClosed:
                return written
            except TimeoutError:
                _log.warning("the cache of %s is at revision %d; an own write has %d", self._prefix, self._image.revision, written.revision)
        return written

    # The rest of the contract

    async def get(self, key: str, *, revision: int | None = None) -> KeyValue:
        """Return what is under the key, as `Store.get`, from memory if the history reaches there."""
        self._image.check_open()
        if not key.startswith(self._prefix):
            return await self._store.get(key, revision=revision)
        if revision is None:
            await self.fresh()
            entry = self._image.entries.get(key)
        elif self._image.reaches(revision):
            entry = self._image.entry_at(key, revision)
        else:
            return await self._store.get(key, revision=revision)
        if entry is None:
            raise KeyNotFound(key)
        return keyvalue(entry)

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """Return the keys that begin with `prefix`, as `Store.list`, from memory if the history reaches there."""
        self._image.check_open()
        if not prefix.startswith(self._prefix) or (revision is not None and not self._image.reaches(revision)):
            return await self._store.list(prefix, start_key=start_key, limit=limit, revision=revision)
        if revision is None:
            await self.fresh()
        snapshot = self._image.snapshot if revision is None else self.snapshot_at(revision)
        items = [keyvalue(entry) for entry in islice(snapshot.iterate(prefix, start_key), limit)]
        return Page(items, snapshot.revision, snapshot.count(prefix, start_key) - len(items))

    async def watch(self, prefix: str, *, after_revision: int) -> AsyncGenerator[WatchBatch, None]:
        """Deliver every write under `prefix`, as `Store.watch`, from memory if the history reaches back to its beginning.

        There is no queue then, see `replay`.
        """
        self._image.check_open()
        if not self._image.listed or not prefix.startswith(self._prefix) or after_revision < self.oldest_revision:
            watch = cast(AsyncGenerator[WatchBatch, None], self._store.watch(prefix, after_revision=after_revision))
        else:
            watch = replay(self._image, prefix, after_revision)
        async with aclosing(watch):
            async for batch in watch:
                yield batch

    async def current_revision(self) -> int:
        """Return the current revision of the store, as `Store.current_revision`."""
        self._image.check_open()
        revision = self._current.at_once()
        return revision if revision is not None else await self._current.read()

    async def compact(self, revision: int) -> None:
        """Forget history below `revision` in the store and here, as `Store.compact`."""
        self._image.check_open()
        await self._store.compact(revision)
        # The changes stay for those who watch already; who asks anew is told what the store would say.
        self._image.compacted(revision)

    async def size_bytes(self) -> int:
        """Return how much room the store takes on its disk."""
        return await self._store.size_bytes()
