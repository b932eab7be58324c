"""What a cache shows: the entries of one prefix at one revision, and the changes that led there.

One event loop; a batch is applied in one step between two awaits, so that whoever looks sees whole revisions. What is shown never goes
back. Knows no store: somebody else brings batches and lists. Of each value it holds what a decoder makes of it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Generic, Protocol

from storage.deadline import wait_until
from storage.errors import Compacted, Corrupted, StoreClosed
from storage.history import Change, History, Retire, RingLimits
from storage.snapshot import E, Snapshot
from storage.store import KeyValue, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.store import WatchBatch

_log = logging.getLogger(__name__)
_UNSEEN = 128
"""Writes that a snapshot may lack before it is made although nobody looks: as many copies of blocks are spared at most."""


class Subscriber(Protocol[E]):
    """Who is told of each change in the step in which it is applied. It must neither wait nor raise."""

    def changes(self, batch: Sequence[Change[E]]) -> None:
        """Take changes in the order of their revisions; the cache has applied all of the batch."""

    def progress(self, revision: int) -> None:
        """Learn that all changes up to `revision` have been delivered."""

    def reset(self) -> None:
        """Learn that changes are missing here: the history begins anew at the cache's revision, with what its snapshot shows."""


class Image(Generic[E]):
    """Entries, snapshot and history, always of the same revision; and those who are told, or wait, until it changes."""

    def __init__(
        self,
        prefix: str,
        *,
        decode: Callable[[KeyValue], E],
        decode_written: Callable[[KeyValue], E | None],
        retire: Retire[E],
        history: RingLimits,
    ) -> None:
        """Make an empty image. `decode_written` returns the entry of a write whose writer has brought it along."""
        self.prefix = prefix
        self.entries: dict[str, E] = {}
        self._snapshot: Snapshot[E] = Snapshot(0)
        self._unseen: dict[str, E | None] = {}
        """What has been written since that snapshot; None for a deletion."""
        self.revision = 0
        """All writes up to this one have been applied."""
        self.listed = False
        """Whether the first list has been made: before that nothing is known."""
        self.closed = False
        self.decode = decode
        self._decode_written = decode_written
        self._retire = retire
        self._limits = history
        self.history = self._history_from(0)
        self._compacted = 0
        self.readers: set[asyncio.Event] = set()
        """Set when the image is closed: of those who take their changes from the history."""
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._subscribers: tuple[Subscriber[E], ...] = ()

    # Changing it

    def replace(self, entries: dict[str, E], snapshot: Snapshot[E]) -> None:
        """Show what has been listed: the history begins anew.

        Raises:
            Corrupted: the list is older than what has been shown.
        """
        if snapshot.revision < self.revision:
            raise Corrupted(f"the store lists at revision {snapshot.revision} after it had given {self.revision}")
        self.entries, self._snapshot = entries, snapshot
        self._unseen.clear()
        self.history = self._history_from(snapshot.revision)
        self.revision = snapshot.revision
        self.listed = True
        for subscriber in self._subscribers:
            self._tell(subscriber.reset)
        self._release()

    def apply(self, batch: WatchBatch) -> None:
        """Take one batch of the watch: nothing of it is visible, then all of it.

        Raises:
            Corrupted: the batch does not go on from here.
        """
        entries = self.entries
        seen = self.revision
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
                entry = self._decode_written(keyvalue) or self.decode(keyvalue)
            elif previous is None:
                raise Corrupted(f"revision {revision} deletes {key}, which was not there")
            writes[key] = entry
            changes.append(Change(revision, key, entry, previous))
        self.revision = max(last, progress)
        if changes:
            for key, entry in writes.items():
                if entry is None:
                    entries.pop(key, None)
                else:
                    entries[key] = entry
            self._unseen.update(writes)
            if len(self._unseen) > _UNSEEN:
                self._look()
            self.history.append(changes)
            for subscriber in self._subscribers:
                self._tell(subscriber.changes, changes)
        if progress >= self.revision:
            self.history.expire()
            for subscriber in self._subscribers:
                self._tell(subscriber.progress, progress)
        if self._waiting:
            self._release()

    def _tell(self, what: Callable[..., None], *args: object) -> None:
        try:
            what(*args)
        except Exception:
            _log.exception("a subscriber of the cache of %s failed", self.prefix)

    def _release(self) -> None:
        for waiter, revision in self._waiting.items():
            if revision <= self.revision and not waiter.done():
                waiter.set_result(None)

    def _history_from(self, revision: int) -> History[E]:
        return History(revision, limits=self._limits, retire=self._retire)

    def compacted(self, revision: int) -> None:
        """Learn that the store has forgotten what was below `revision`: it is not listed from here either."""
        self._compacted = max(self._compacted, revision)

    def close(self) -> None:
        """End what waits here."""
        self.closed = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(StoreClosed(f"the cache of {self.prefix} has been closed"))
        for reader in self.readers:
            reader.set()

    # Looking at it

    @property
    def snapshot(self) -> Snapshot[E]:
        """All entries at `revision`. Made when somebody looks: who writes need not pay for each one."""
        if self._snapshot.revision != self.revision:
            self._look()
        return self._snapshot

    def _look(self) -> None:
        self._snapshot = self._snapshot.write(self.revision, sorted(self._unseen.items(), key=_key_of))
        self._unseen.clear()

    @property
    def oldest_revision(self) -> int:
        """The oldest revision that can be listed from memory."""
        return max(self.history.floor, self._compacted)

    def reaches(self, revision: int) -> bool:
        """Whether the entries at that revision are known."""
        return self.listed and self.oldest_revision <= revision <= self.revision

    def check_listed(self, revision: int) -> None:
        """See that the entries at a revision can be told, as far as the past goes.

        Raises:
            Compacted: the history here does not reach back so far, or the store has been compacted further.
        """
        if revision < self.oldest_revision:
            raise Compacted(revision, self.oldest_revision)

    def entry_at(self, key: str, revision: int) -> E | None:
        """Return what was under the key at a revision that is reached."""
        for change in self.history.changes_after(revision):
            if change.key == key:
                return change.previous
        return self.entries.get(key)

    def subscribe(self, subscriber: Subscriber[E]) -> Callable[[], None]:
        """Tell the subscriber of everything that is applied from now on, in the same step; return the function that ends it."""
        self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            self._subscribers = tuple(other for other in self._subscribers if other is not subscriber)

        return unsubscribe

    async def reach(self, revision: int, deadline: float | None) -> None:
        """Wait until everything up to `revision` has been applied.

        Raises:
            TimeoutError: it has not by the deadline, in the time of the loop.
            StoreClosed: it never will.
        """
        # What has been written in this process is mostly here one step later: no need for a timer then.
        await asyncio.sleep(0)
        if revision <= self.revision and self.listed:
            return
        self.check_open()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = revision
        try:
            await wait_until(waiter, deadline)
        finally:
            del self._waiting[waiter]

    def check_open(self) -> None:
        """Raises StoreClosed when nothing is to be expected any more."""
        if self.closed:
            raise StoreClosed(f"the cache of {self.prefix} has been closed")


def _key_of(write: tuple[str, object]) -> str:
    return write[0]
