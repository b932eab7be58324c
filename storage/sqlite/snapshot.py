"""A file as it is at one moment, for a backup or a move while another process goes on serving it.

Knows the reader only. Policy: takes no lock and changes nothing; the log cannot be reset while the snapshot is open, so close it soon.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw

from storage.errors import FutureRevision, Unavailable
from storage.sqlite.database import check_version, open_reader, translated
from storage.sqlite.reader import Reader
from storage.store import Page


class SqliteSnapshot:
    """Lists one consistent state of a store's file."""

    def __init__(self, path: Path) -> None:
        """Open the file; blocks.

        Raises:
            Unavailable, Corrupted, StoreError: there is none, or it cannot be read.
        """
        check_version(apsw.sqlite_lib_version())
        if not path.is_file():
            raise Unavailable(f"there is no store at {path}")
        try:
            connection = open_reader(path, busy_seconds=5.0)
        except apsw.Error as error:
            raise translated(error) from error
        self._reader = Reader(connection)
        try:
            connection.execute("BEGIN")
            self._revision = self._reader.revisions()[1]
        except apsw.Error as error:
            connection.close()
            raise translated(error) from error

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """See `Store.list`; the current revision is that of the snapshot."""
        if revision is not None and revision > self._revision:
            raise FutureRevision(revision, self._revision)
        return await asyncio.to_thread(self._reader.list, prefix, start_key, limit, revision, self._revision)

    async def close(self) -> None:
        """Let go of the file."""
        self._reader.close()
