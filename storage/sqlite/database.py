"""The file: its lock, its schema, the settings that make "acknowledged" true, and what SQLite's errors mean.

Knows apsw. Policy: refuse to start rather than to promise less. A version of SQLite with the fault of the write-ahead log, a setting that
did not take, a file of another program or a second server on the same file are all refused with one clear sentence.
"""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from pathlib import Path

import apsw

from storage.errors import Corrupted, StoreError, StoreFull, StoreLocked, Unavailable, ValueTooLarge
from storage.store import EMPTY_REVISION

OLDEST_SQLITE = (3, 51, 3)
"""Before it a checkpoint at the moment of a write could corrupt the file. Source: https://www.sqlite.org/wal.html#walresetbug"""

PAGE_BYTES = 8192
"""Of a new file. Objects of 2 to 3 KB fill two thirds of SQLite's usual 4 KiB; in 8 KiB they take a third less disk, at the same speed."""

APPLICATION_ID = 0x636C726B
FORMAT = 1

SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID, STRICT;
INSERT INTO meta VALUES ('epoch', 0), ('compact_revision', :first), ('swept_revision', :first);
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    previous INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    value BLOB NOT NULL
) STRICT;
CREATE INDEX log_by_key ON log (key, revision, deleted);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""
# log:     one row for each write, `previous` being the revision of the row it supersedes, 0 if nothing was there.
# meta:    epoch             counts the openings; a change under our feet means that somebody else writes to the file
#          compact_revision  the oldest revision that can be listed
#          swept_revision    up to here compaction has removed what was superseded


class FileLock:
    """The exclusive right of this process to serve one file; the system takes it back when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock_path = path.with_name(path.name + ".lock")
        self._file = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._file, 20).decode("ascii", "replace").strip()
            os.close(self._file)
            raise StoreLocked(f"{path} is served by another process (pid {owner or 'unknown'}); stop it first") from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the right back; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def open_writer(path: Path, *, busy_seconds: float) -> apsw.Connection:
    """Open the one connection that writes and checkpoints, creating the file (readable by its owner only) if there is none.

    Raises:
        StoreError: SQLite is too old, a setting did not take, the file is not ours; Corrupted: it is damaged.
    """
    check_version(apsw.sqlite_lib_version())
    unclean = path.with_name(path.name + "-wal").exists()
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(round(busy_seconds * 1000))
        _check_format(connection, path)
        connection.pragma("page_size", PAGE_BYTES)
        _set(connection, "journal_mode", "wal", "wal")
        _set(connection, "synchronous", "FULL", 2)
        _set(connection, "fullfsync", 1, 1)
        _set(connection, "checkpoint_fullfsync", 1, 1)
        _set(connection, "mmap_size", 0, 0)
        _set(connection, "wal_autocheckpoint", 0, 0)
        connection.pragma("journal_size_limit", 64 << 20)
        connection.pragma("cache_size", -(4 << 10))  # with 16 MiB a hundredth of what is wanted is read less
        if connection.pragma("application_id") == 0:
            # In one transaction: a file that is ours has all of it.
            with connection:
                connection.execute(SCHEMA, {"first": _first_revision()})
        if unclean and (verdict := connection.pragma("quick_check", 1)) != "ok":
            raise Corrupted(f"{path} is damaged: {verdict}")
    except BaseException:
        connection.close()
        raise
    return connection


def _first_revision() -> int:
    """Where the history of a new file begins: at the clock's milliseconds.

    The file may stand in the place of one that was lost, whose revisions clients still hold. They are told that these are too old, as long
    as that one had less than a thousand writes for each second of its life; a count from 1 would leave them waiting in silence.
    """
    return time.time_ns() // 1_000_000


def open_reader(path: Path, *, busy_seconds: float) -> apsw.Connection:
    """Open a connection that can change nothing."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(round(busy_seconds * 1000))
        _check_format(connection, path)
        _set(connection, "mmap_size", 0, 0)
    except BaseException:
        connection.close()
        raise
    return connection


def seal(path: Path) -> None:
    """Make a file that nobody has open one that can be read alone, also where nothing can be written; serving it changes it back."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        _set(connection, "journal_mode", "delete", "delete")
    except apsw.Error as error:
        raise translated(error) from error
    finally:
        connection.close()


def check_version(version: str) -> None:
    """Raise StoreError for a SQLite that can damage the file."""
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StoreError(f"SQLite {version} can damage a write-ahead log; {oldest} or newer is needed: install a newer apsw")


def _set(connection: apsw.Connection, name: str, value: str | int, expected: str | int) -> None:
    connection.pragma(name, value)
    if (got := connection.pragma(name)) != expected:
        raise StoreError(f"SQLite does not do {name} = {value} on {connection.filename} (it stays {got}); use a local disk")


def _check_format(connection: apsw.Connection, path: Path) -> None:
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if (application, version) != (APPLICATION_ID, FORMAT) and (application or version or tables):
        raise StoreError(f"{path} is no store of format {FORMAT} (application {application:#x}, version {version})")


def read_number(connection: apsw.Connection, name: str) -> int:
    """Return a number from `meta`."""
    number = connection.execute("SELECT number FROM meta WHERE name = ?", (name,)).get
    if not isinstance(number, int):
        raise Corrupted(f"{connection.filename} has no {name}")
    return number


def read_revisions(connection: apsw.Connection) -> tuple[int, int]:
    """Return the compaction revision and the current one, as this connection sees them.

    The current one is not always in the log: when the last write was a deletion, compaction has removed its row.
    """
    compact_revision = read_number(connection, "compact_revision")
    last = connection.execute("SELECT max(revision) FROM log").get
    return compact_revision, max(last or 0, compact_revision, EMPTY_REVISION)


def checksum(revision: int, key: str, previous: int, deleted: int, value: bytes) -> int:
    """Return the checksum of a row: a value under another key or revision than it was written under is found as well."""
    return zlib.crc32(value, zlib.crc32(f"{revision} {previous} {deleted} {key}\n".encode()))


def check_row(revision: int, key: str, previous: int, deleted: int, expected: int, value: bytes) -> None:
    """Raise Corrupted when a row is not what was written."""
    if checksum(revision, key, previous, deleted, value) != expected:
        raise Corrupted(f"the value of {key} at revision {revision} is damaged")


def translated(error: apsw.Error) -> StoreError:
    """Return what an error means that came before anything was changed. For an error of a commit see `writer.py`."""
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return Corrupted(f"the store's file is damaged: {error}")
    if isinstance(error, apsw.FullError):
        return StoreFull(f"the disk is full: {error}")
    if isinstance(error, apsw.TooBigError):
        return ValueTooLarge(str(error))
    return Unavailable(f"SQLite: {error}")
