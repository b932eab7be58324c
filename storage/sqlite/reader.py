"""What is read of the file: one key, a listing, a stretch of the log, each in one read transaction and at one revision.

Knows the schema. Runs in whatever thread calls it, one call at a time. Policy: each row that leaves has passed its checksum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from storage.errors import Compacted, KeyNotFound
from storage.keys import prefix_end
from storage.sqlite.database import check_row, read_number, read_revisions, translated
from storage.store import Event, KeyValue, Page

_ABOVE_ALL = "\U0010ffff" * 8
_CHUNK_EVENTS = 1000
_CHUNK_BYTES = 8 << 20

_GET = """
    SELECT revision, key, previous, deleted, checksum, value FROM log
    WHERE key = ? AND revision <= ? ORDER BY revision DESC LIMIT 1"""

# With max() SQLite takes the other columns from the row that has it: https://www.sqlite.org/lang_select.html#bareagg
_LAST = """
    SELECT key, max(revision) AS revision, deleted FROM log INDEXED BY log_by_key
    WHERE key >= ? AND key < ? AND revision <= ? GROUP BY key HAVING NOT deleted"""

# Sorted and cut while there are only keys: values are read one by one as they are wanted, never sorted.
_LIST = f"""
    SELECT log.revision, last.key, log.previous, log.deleted, log.checksum, log.value
    FROM ({_LAST} ORDER BY key LIMIT ?) AS last CROSS JOIN log ON log.revision = last.revision"""

_COUNT = f"SELECT count(*) FROM ({_LAST})"

# The + keeps SQLite from going by the key: the order of revisions is the order of the table.
_EVENTS = """
    SELECT revision, key, previous, deleted, checksum, value FROM log
    WHERE revision > ? AND revision <= ? AND +key >= ? AND +key < ? ORDER BY revision LIMIT ?"""


class Reader:
    """Reads over one connection. `upto` is the revision at which "now" is read: what has been told to the watches, and not more."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._counted = ("", "", 0, 0)
        """After the last page: where the next one begins, where the listing ends, its revision, and how many keys are in between."""

    def revisions(self) -> tuple[int, int]:
        """Return the compaction revision and the current one."""
        with self._transaction():
            return read_revisions(self._connection)

    def get(self, key: str, revision: int | None, upto: int) -> KeyValue:
        """Raises: KeyNotFound, Compacted, Corrupted."""
        with self._transaction():
            row = self._connection.execute(_GET, (key, self._readable(revision, upto))).fetchone()
        if row is None or row[3]:
            raise KeyNotFound(key)
        return _key_value(row)

    def list(self, prefix: str, start_key: str | None, limit: int | None, revision: int | None, upto: int) -> Page:
        """Raises: Compacted, Corrupted."""
        end = prefix_end(prefix) or _ABOVE_ALL
        start = max(prefix, start_key or "")
        with self._transaction():
            at = self._readable(revision, upto)
            rows = self._connection.execute(_LIST, (start, end, at, -1 if limit is None else limit))
            items = [_key_value(row) for row in rows]
            remaining = 0
            if limit is not None and len(items) == limit:
                remaining = self._count(start, end, at) - limit
                self._counted = (items[-1].key + "\0", end, at, remaining)
        return Page(items, at, remaining)

    def _count(self, start: str, end: str, at: int) -> int:
        """How many keys there are from `start` on. Where the last page ended that is known: pages of one listing count once."""
        *where, count = self._counted
        return count if where == [start, end, at] else int(self._connection.execute(_COUNT, (start, end, at)).get)

    def events(self, prefix: str, after_revision: int, upto: int) -> tuple[Sequence[Event], int]:
        """Return some of the oldest events after a revision, and the revision up to which these are all.

        Raises: Compacted, Corrupted.
        """
        end = prefix_end(prefix) or _ABOVE_ALL
        events: list[Event] = []
        room = _CHUNK_BYTES
        with self._transaction():
            self._readable(after_revision, upto)
            rows = self._connection.execute(_EVENTS, (after_revision, upto, prefix, end, _CHUNK_EVENTS))
            for row in rows:
                event = _event(row)
                events.append(event)
                room -= len(row[5])
                if room < 0 or len(events) == _CHUNK_EVENTS:
                    rows.close()
                    return events, event.revision
        return events, upto

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _readable(self, revision: int | None, upto: int) -> int:
        compact_revision = read_number(self._connection, "compact_revision")
        if revision is None:
            return max(upto, compact_revision)
        if revision < compact_revision:
            raise Compacted(revision, compact_revision)
        return revision

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise translated(error) from error


def _key_value(row: tuple[Any, ...]) -> KeyValue:
    revision, key, previous, deleted, expected, value = row
    check_row(revision, key, previous, deleted, expected, value)
    return KeyValue(key, value, revision)


def _event(row: tuple[Any, ...]) -> Event:
    revision, key, previous, deleted, expected, value = row
    check_row(revision, key, previous, deleted, expected, value)
    return Event(revision, key, None if deleted else value)
