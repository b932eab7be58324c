"""A file as it is at one moment, for a backup or a move while another process goes on serving it.

Knows the reader only. Policy: changes nothing, and takes the lock of the file only when it is told to; the log cannot be reset while the
snapshot is open, so close it soon.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw

from storage.errors import FutureRevision, Unavailable
from storage.sqlite.database import FileLock, check_version, open_reader, translated
from storage.sqlite.reader import Reader
from storage.store import Page


class SqliteSnapshot:
    """Lists one consistent state of a store's file."""

    def __init__(self, path: Path, *, exclusive: bool = False) -> None:
        """Open the file; blocks. `exclusive` keeps every other process from serving it until `close`.

        Raises:
            StoreLocked: it is to be exclusive, and is served.
            Unavailable, Corrupted, StoreError: there is none, or it cannot be read.
        """
        check_version(apsw.sqlite_lib_version())
        if not path.is_file():
            raise Unavailable(f"there is no store at {path}")
        self._lock = FileLock(path) if exclusive else None
        try:
            self._reader, self._revision = _begin(path)
        except BaseException:
            self._unlock()
            raise

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """See `Store.list`; the current revision is that of the snapshot."""
        if revision is not None and revision > self._revision:
            raise FutureRevision(revision, self._revision)
        return await asyncio.to_thread(self._reader.list, prefix, start_key, limit, revision, self._revision)

    async def close(self) -> None:
        """Let go of the file."""
        self._reader.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _begin(path: Path) -> tuple[Reader, int]:
    """A reader at one moment, and the current revision then."""
    try:
        connection = open_reader(path, busy_seconds=5.0)
    except apsw.Error as error:
        raise translated(error) from error
    reader = Reader(connection)
    try:
        connection.execute("BEGIN")
        return reader, reader.revisions()[1]
    except BaseException as error:
        connection.close()
        if isinstance(error, apsw.Error):
            raise translated(error) from error
        raise
