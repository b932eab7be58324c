"""The one thread that writes: it commits what waits as a group, one fsync for many, each write with its own revision.

Knows the schema. Policy: what has been acknowledged is on the disk. A commit that fails is never tried again, since after a failed fsync
nothing tells what the disk holds: the group is `Unknown`, the thread stops, and only opening the file again finds out. A full disk is
no such failure: it shows before the frame that commits is complete, and before the sync, so that nothing has been written.
Compaction marks what is forgotten first and removes the rows in small steps between the groups.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import apsw

from storage.errors import Corrupted, KeyExists, KeyNotFound, RevisionConflict, StoreError, StoreLocked, Unavailable, Unknown, ValueTooLarge
from storage.sqlite.config import SqliteConfig
from storage.sqlite.database import check_row, checksum, read_number, read_revisions, translated
from storage.store import Event, KeyValue

# The keys come as a JSON array: one statement for a group takes a fifth of what one for each key does. The index has the answer.
_LIVE = """
    SELECT wanted.value, (SELECT revision * (NOT deleted) FROM log WHERE key = wanted.value ORDER BY revision DESC LIMIT 1)
    FROM json_each(?) AS wanted"""
_ROW = "SELECT previous, deleted, checksum, value FROM log WHERE revision = ?"
_ANY_LIVE = """
    SELECT log.key, log.value, log.revision
    FROM (SELECT max(revision) AS revision, deleted FROM log GROUP BY key) AS last JOIN log ON log.revision = last.revision
    WHERE NOT last.deleted LIMIT 1"""
_APPEND = "INSERT INTO log (revision, key, previous, deleted, checksum, value) VALUES (?, ?, ?, ?, ?, ?)"
_SET = "UPDATE meta SET number = ? WHERE name = ?"
_SWEEP_SUPERSEDED = """
    DELETE FROM log WHERE revision IN (SELECT previous FROM log WHERE revision > ? AND revision <= ? AND previous > 0)"""
_SWEEP_DELETED = "DELETE FROM log WHERE revision > ? AND revision <= ? AND deleted"


class Write(NamedTuple):
    """A create (nothing expected), an update, or a delete (no value)."""

    key: str
    value: bytes | None
    expected_revision: int | None
    future: asyncio.Future[KeyValue]
    """Who waits for it; the thread only carries it along."""


Outcome = KeyValue | StoreError


@dataclass(frozen=True, slots=True)
class Group:
    """What became of writes that were committed together: one outcome for each of them, the events, the revision reached."""

    outcomes: Sequence[Outcome]
    events: Sequence[Event]
    revision: int


Done = Callable[[Any], None]
"""Called with the result of a task, or with the StoreError that stands for it."""

_Task = tuple[Callable[[Any], Any], Any, Done]


class Listener(Protocol):
    """Who hears of the writer; all of it is called in the writer's thread."""

    def committed(self, writes: Sequence[Write], group: Group | StoreError) -> None:
        """Writes are done, or have all met the same error."""

    def failed(self, error: StoreError) -> None:
        """Nothing will be written any more."""

    def ended(self) -> None:
        """The connection is closed and the thread ends."""


class Writer:
    """Owns the writing connection and its thread, which begins with `start`.

    Tasks are done in the order in which they were handed over. The queue of tasks has no bound of its own: the store bounds the writes.
    """

    def __init__(self, connection: apsw.Connection, config: SqliteConfig, *, listener: Listener) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._config = config
        self._listener = listener
        self._tasks: queue.SimpleQueue[_Task | Sequence[Write] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)
        self._wal_pages = 0
        self._failure: StoreError | None = None
        self._loaded_revision = 0
        connection.set_wal_hook(self._note_wal)
        with connection:
            self._epoch = read_number(connection, "epoch") + 1
            connection.execute(_SET, (self._epoch, "epoch"))
        self.compact_revision, self.revision = read_revisions(connection)
        self._swept_revision = read_number(connection, "swept_revision")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def write(self, writes: Sequence[Write]) -> None:
        """Do writes, in one commit with others that wait, and tell the listener."""
        self._tasks.put(writes)

    def compact(self, revision: int, *, done: Done) -> None:
        """Set the compaction revision; the rows go later."""
        self._tasks.put((self._mark_compacted, revision, done))

    def begin_load(self, above_revision: int, *, done: Done) -> None:
        """Open the transaction that fills an empty store; what is handed over until `end_load` belongs to it."""
        self._tasks.put((self._begin_load, above_revision, done))

    def load(self, rows: Sequence[tuple[str, bytes]], *, done: Done) -> None:
        """Put values into the transaction of `begin_load`."""
        self._tasks.put((self._load, rows, done))

    def end_load(self, commit: bool, *, done: Done) -> None:
        """Commit what has been loaded, or leave nothing of it; `done` gets the revision."""
        self._tasks.put((self._end_load, commit, done))

    def stop(self) -> None:
        """Do what has been handed over, close the connection, end the thread."""
        self._tasks.put(None)

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join()

    # What follows runs in the thread.

    def _run(self) -> None:
        task = self._next()
        while task is not None:
            if isinstance(task, tuple):
                do, argument, done = task
                done(self._do(do, argument))
                task = self._next()
            else:
                writes, task = self._join_waiting(task)
                self._listener.committed(writes, self._do(self._write, writes))
                task = task or self._next()
            self._attempt(self._checkpoint)
        self._attempt(self._connection.close)
        self._listener.ended()

    def _next(self) -> _Task | Sequence[Write] | None:
        """Return the next task; while none waits, go on with compaction."""
        while self._failure is None and self._swept_revision < self.compact_revision and not self._connection.in_transaction:
            try:
                return self._tasks.get_nowait()
            except queue.Empty:
                before = self._swept_revision
                self._attempt(self._sweep_alone)
                if self._swept_revision == before:
                    break  # the disk is full, or somebody else holds the file: go on after the next write
        return self._tasks.get()

    def _join_waiting(self, writes: Sequence[Write]) -> tuple[Sequence[Write], _Task | Sequence[Write] | None]:
        """Take the writes that wait as well, and the task that comes after them, if one does."""
        joined = [*writes]
        while len(joined) < self._config.group_writes:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                break
            if task is None:
                # The end is for the caller to see, after this group.
                self._tasks.put(None)
                break
            if isinstance(task, tuple):
                return joined, task
            joined += task
        return joined, None

    def _do(self, do: Callable[[Any], Any], argument: object) -> Any:
        if self._failure is not None:
            return self._failure
        try:
            return do(argument)
        except StoreError as error:
            return error
        except apsw.FullError as error:
            self._roll_back()
            return translated(error)
        except apsw.Error as error:
            self._fail(error)
            return Unknown(f"SQLite failed in a commit: {error}")

    def _attempt(self, do: Callable[[], None]) -> None:
        try:
            do()
        except (apsw.BusyError, apsw.FullError):
            self._roll_back()
        except apsw.Error as error:
            self._fail(error)

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._cursor.execute("ROLLBACK")

    def _fail(self, error: apsw.Error) -> None:
        """Stop writing for good."""
        if self._failure is None:
            self._failure = Unavailable(f"the store has stopped since it could not write to its disk: {error}")
            self._failure.__cause__ = error
            self._listener.failed(self._failure)

    def _write(self, writes: Sequence[Write]) -> Group:
        self._begin()
        keys = json.dumps([write.key for write in writes])
        live: dict[str, int | None] = dict(self._cursor.execute(_LIVE, (keys,)))
        revision = self.revision
        outcomes: list[Outcome] = []
        events: list[Event] = []
        for write in writes:
            key, value = write.key, write.value
            try:
                superseded = self._checked(write, live[key] or 0)
                last = self._row(key, superseded).value if value is None else value
                self._append(revision + 1, key, value, superseded)
            except StoreError as error:
                outcomes.append(error)
            else:
                revision += 1
                live[key] = 0 if value is None else revision
                events.append(Event(revision, key, value))
                outcomes.append(KeyValue(key, last, revision))
        swept = self._sweep(2 * len(events)) if events else self._swept_revision
        self._cursor.execute("COMMIT")
        self.revision, self._swept_revision = revision, swept
        return Group(outcomes, events, revision)

    def _begin(self) -> None:
        """Open a transaction, in a file that nobody else has written to.

        Raises:
            Unavailable: another program keeps SQLite's lock; nothing has been done.
        """
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            raise translated(error) from error
        if self._cursor.execute("SELECT number FROM meta WHERE name = 'epoch'").get != self._epoch:
            self._cursor.execute("ROLLBACK")
            self._failure = StoreLocked(f"another process has opened {self._connection.filename}; this one has stopped")
            self._listener.failed(self._failure)
            raise self._failure

    def _checked(self, write: Write, live: int) -> int:
        """Return the revision of what the write replaces, which is live (0: nothing), when it may."""
        expected = write.expected_revision
        if expected is None:
            if live:
                raise KeyExists(self._row(write.key, live))
        elif not live:
            raise KeyNotFound(write.key)
        elif live != expected:
            raise RevisionConflict(self._row(write.key, live))
        return live

    def _row(self, key: str, revision: int) -> KeyValue:
        row = self._cursor.execute(_ROW, (revision,)).fetchone()
        if row is None:
            raise Corrupted(f"the value of {key} at revision {revision} is missing")
        previous, deleted, expected, value = row
        check_row(revision, key, previous, deleted, expected, value)
        return KeyValue(key, value, revision)

    def _append(self, revision: int, key: str, value: bytes | None, superseded: int) -> None:
        stored, deleted = (b"", 1) if value is None else (value, 0)
        row_sum = checksum(revision, key, superseded, deleted, stored)
        try:
            self._cursor.execute(_APPEND, (revision, key, superseded, deleted, row_sum, stored))
        except apsw.TooBigError as error:
            raise ValueTooLarge(f"{key}: {error}") from error

    def _mark_compacted(self, revision: int) -> int:
        if revision > self.compact_revision:
            self._begin()
            self._cursor.execute(_SET, (revision, "compact_revision"))
            self._cursor.execute("COMMIT")
            self.compact_revision = revision
        return self.compact_revision

    def _sweep_alone(self) -> None:
        try:
            self._begin()
        except StoreError:
            # Somebody else holds the file, or has taken it: the next write will say so.
            return
        swept = self._sweep(self._config.compaction_rows)
        self._cursor.execute("COMMIT")
        self._swept_revision = swept
        self._checkpoint()

    def _sweep(self, rows: int) -> int:
        """Remove what the next revisions below the mark have superseded; return how far that went."""
        after = self._swept_revision
        upto = min(after + rows, self.compact_revision)
        if upto > after:
            self._cursor.execute(_SWEEP_SUPERSEDED, (after, upto))
            self._cursor.execute(_SWEEP_DELETED, (after, upto))
            self._cursor.execute(_SET, (upto, "swept_revision"))
        return upto

    def _begin_load(self, above_revision: int) -> None:
        self._begin()
        found = self._cursor.execute(_ANY_LIVE).fetchone()
        if found is not None:
            self._cursor.execute("ROLLBACK")
            raise KeyExists(KeyValue(*found))
        self._cursor.execute("DELETE FROM log")
        self._loaded_revision = max(above_revision, self.revision)

    def _load(self, rows: Sequence[tuple[str, bytes]]) -> None:
        for key, value in rows:
            self._loaded_revision += 1
            self._append(self._loaded_revision, key, value, 0)

    def _end_load(self, commit: bool) -> int:
        if not commit:
            self._roll_back()
            return self.revision
        revision = self._loaded_revision
        for name in ("compact_revision", "swept_revision"):
            self._cursor.execute(_SET, (revision, name))
        self._cursor.execute("COMMIT")
        self.revision = self.compact_revision = self._swept_revision = revision
        return revision

    def _note_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        """Copy a long log into the database; after the group is acknowledged, and on the connection that writes."""
        if self._wal_pages >= self._config.checkpoint_pages and self._failure is None and not self._connection.in_transaction:
            self._wal_pages = 0
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
