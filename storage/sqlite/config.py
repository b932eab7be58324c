"""The settings of the SQLite store."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.window import HistoryLimits


@dataclass(frozen=True, slots=True)
class SqliteConfig:
    """All have defaults that fit; none of them weakens what an acknowledgement means."""

    history: HistoryLimits = field(default_factory=HistoryLimits)
    """What of the past is kept."""

    waiting_writes: int = 2048
    """How many writes may wait for the disk; one more is `Overloaded`. About a quarter of a second of work."""

    group_writes: int = 256
    """A group that has so many is committed without looking for more, so that the first does not wait for ever for the others."""

    checkpoint_pages: int = 2000
    """Pages (of 8 KiB) in the write-ahead log before they are copied into the database: 16 MiB, so that a busy page is copied once."""

    compaction_rows: int = 500
    """Revisions that one step of compaction looks at; writes go between the steps. Some milliseconds."""

    busy_seconds: float = 5.0
    """How long to wait for a program that holds SQLite's own write lock, such as its command line, before a write is `Unavailable`."""
