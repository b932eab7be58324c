"""The changes of the last while, and what the entries were at any revision among them.

A ring with three bounds: how many changes, how many bytes they hold on to, how old they are. What is dropped moves the floor: the oldest
revision that can still be listed, and after which a watch can still begin. The owner of the entries is told when one has been overwritten,
so that it can be kept in less room. Knows no store; time comes in as a function.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from storage.errors import Compacted, FutureRevision
from storage.snapshot import E, Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class RingLimits:
    """How much of the past is kept. Whatever is reached first drops the oldest change."""

    changes: int | None = 100_000
    """How many changes: as many as kube-apiserver keeps at most. None: no such bound."""
    size_bytes: int | None = 64 * 1024 * 1024
    """Sum of what the entries hold on to that only a change still names: those overwritten or deleted. None: no such bound."""
    age_seconds: float | None = 600.0
    """Age of the oldest change: as long as etcd keeps it between two compactions at most. None: no such bound."""
    snapshots: int = 8
    """How many past snapshots are remembered, so that the pages of one list undo the changes since then once. 0: none."""


@dataclass(slots=True)
class Change(Generic[E]):
    """One write, as the cache saw it. Nobody changes it (it is not frozen since that would triple the time to make one)."""

    revision: int
    key: str
    entry: E | None
    """What the write left; None for a deletion."""
    previous: E | None
    """What was there before; None for a creation."""


Retire = Callable[[E, E | None], int]
"""Is told once of each entry that has been overwritten (by the second one) or deleted; returns how many bytes it still holds on to."""


class History(Generic[E]):
    """The ring of changes after `floor`."""

    def __init__(self, floor: int, *, limits: RingLimits, retire: Retire[E], clock: Callable[[], float] = time.monotonic) -> None:
        self.floor = floor
        """The oldest revision of which everything is known."""
        self._limits = limits
        self._retire = retire
        self._clock = clock
        # Parallel lists with the dropped ones at their beginning: the middle of a deque cannot be reached at once.
        self._changes: list[Change[E]] = []
        self._revisions: list[int] = []
        self._sizes: list[int] = []
        self._times: list[float] = []
        self._start = 0
        self._size_bytes = 0
        self._past: OrderedDict[int, Snapshot[E]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._changes) - self._start

    @property
    def size_bytes(self) -> int:
        """The sum that `RingLimits.size_bytes` bounds."""
        return self._size_bytes

    def append(self, changes: Sequence[Change[E]]) -> None:
        """Add changes that are newer than all there are, in their order, and drop what has become too much."""
        now, retire = self._clock(), self._retire
        for change in changes:
            size_bytes = 0 if change.previous is None else retire(change.previous, change.entry)
            self._size_bytes += size_bytes
            self._changes.append(change)
            self._revisions.append(change.revision)
            self._sizes.append(size_bytes)
            self._times.append(now)
        self._trim(now)

    def expire(self) -> None:
        """Drop what has become too old."""
        self._trim(self._clock())

    def changes_after(self, revision: int, limit: int | None = None) -> list[Change[E]]:
        """Return the changes above `revision`, oldest first; of more than `limit` the oldest ones only.

        Raises:
            Compacted: some of them are no longer here.
        """
        if revision < self.floor:
            raise Compacted(revision, self.floor)
        begin = bisect_right(self._revisions, revision, self._start)
        return self._changes[begin : None if limit is None else begin + limit]

    def snapshot_at(self, revision: int, current: Snapshot[E]) -> Snapshot[E]:
        """Return what was at `revision`: `current`, or the nearest later snapshot that is remembered, with the changes since then undone.

        Raises:
            Compacted: `revision` is below the floor.
            FutureRevision: `revision` is ahead of `current`.
        """
        if revision >= current.revision:
            if revision > current.revision:
                raise FutureRevision(revision, current.revision)
            return current
        if revision < self.floor:
            raise Compacted(revision, self.floor)
        if (remembered := self._past.get(revision)) is not None:
            self._past.move_to_end(revision)
            return remembered
        base = min((later for later in self._past.values() if later.revision > revision), key=lambda later: later.revision, default=current)
        begin = bisect_right(self._revisions, revision, self._start)
        end = bisect_right(self._revisions, base.revision, begin)
        before: dict[str, E | None] = {change.key: change.previous for change in reversed(self._changes[begin:end])}
        snapshot = base.write(revision, sorted(before.items())) if before else base.at(revision)
        self._past[revision] = snapshot
        if len(self._past) > self._limits.snapshots:
            self._past.popitem(last=False)
        return snapshot

    def _trim(self, now: float) -> None:
        limits, start, size_bytes = self._limits, self._start, self._size_bytes
        if limits.changes is not None:
            start = max(start, len(self._changes) - limits.changes)
            size_bytes -= sum(self._sizes[self._start : start])
        if limits.age_seconds is not None:
            while start < len(self._times) and now - self._times[start] > limits.age_seconds:
                size_bytes -= self._sizes[start]
                start += 1
        if limits.size_bytes is not None:
            while size_bytes > limits.size_bytes:
                size_bytes -= self._sizes[start]
                start += 1
        if start > self._start:
            # A revision is never split: all changes of one go together.
            floor = self._revisions[start - 1]
            self._drop(bisect_right(self._revisions, floor, start))
            self.floor = floor
            for past in [past for past in self._past if past < floor]:
                del self._past[past]

    def _drop(self, start: int) -> None:
        self._size_bytes -= sum(self._sizes[self._start : start])
        # The dropped must not live on for as long as the lists are not moved.
        self._changes[self._start : start] = [None] * (start - self._start)  # type: ignore[list-item]
        self._start = start
        if start > 1024 and start > len(self._changes) // 2:
            for column in (self._changes, self._revisions, self._sizes, self._times):
                del column[:start]
            self._start = 0
