"""How long a store that compacts itself keeps history: the limits, and the bookkeeping that turns them into a revision.

Knows the monotonic clock only as a number it is given. Policy: what is forgotten is decided in steps of a thirtieth of the window, so that
compaction is neither asked for at each write nor all at once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_STEPS = 30


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """What of the past can still be listed and watched. The tighter of both limits holds."""

    seconds: float = 300.0
    """Age: five minutes, as long as kube-apiserver lets etcd keep it. `math.inf` switches it off."""

    revisions: int = 100_000
    """Count, above which a burst is not worth its disk: a client that is so far behind lists again. `sys.maxsize` switches it off."""


class HistoryWindow:
    """Tells which history has left the limits. After a restart what was there before counts as new."""

    def __init__(self, limits: HistoryLimits, *, revision: int, now_seconds: float) -> None:
        self._limits = limits
        self._marks = deque([(now_seconds, revision)])
        self._floor = 0
        self._plan(revision, now_seconds)

    def advance(self, revision: int, now_seconds: float) -> int | None:
        """Return the revision to compact to now, if there is something new to forget. O(1), cheap enough for each write."""
        if revision < self._next_revision and now_seconds < self._next_seconds:
            return None
        self._plan(revision, now_seconds)
        floor = revision - self._limits.revisions
        while self._marks and self._marks[0][0] <= now_seconds - self._limits.seconds:
            floor = max(floor, self._marks.popleft()[1])
        self._marks.append((now_seconds, revision))
        if floor <= self._floor:
            return None
        self._floor = floor
        return floor

    def _plan(self, revision: int, now_seconds: float) -> None:
        self._next_seconds = now_seconds + self._limits.seconds / _STEPS
        self._next_revision = revision + max(1, self._limits.revisions // _STEPS)
