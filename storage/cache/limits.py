"""How much a watch cache keeps, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.history import RingLimits


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much a cache keeps, and how long it waits."""

    history: RingLimits = field(default_factory=RingLimits)
    """How far back lists and watches are served from memory."""
    page_size: int = 500
    """Keys per page when the whole prefix is listed. At most two pages are in memory as the store sent them."""
    own_write_seconds: float = 1.0
    """How long a write that the store has acknowledged waits for this cache to show it. It then returns all the same: it has happened."""
    retry_seconds: float = 0.05
    """Pause before the next attempt to reach the store, doubled after each one that brought nothing new. The first comes at once."""
    retry_seconds_max: float = 5.0
    """The longest such pause."""
    compaction_seconds: float = 15.0
    """How often the store is asked whether anybody has compacted it, as kube-apiserver does. 0: never."""
