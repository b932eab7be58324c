"""Opens a store by its location: the only module that names the backends.

Policy: a backend is imported when it is asked for, so that serving a file does not load protobuf, nor an etcd the database.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from storage.store import LoadableStore, Page

if TYPE_CHECKING:
    from typing import TypeAlias

    from storage.etcd import EtcdConfig
    from storage.sqlite import SqliteConfig

    Location: TypeAlias = Path | EtcdConfig | Literal["memory"]

DATABASE = "store.db"
"""The name of the SQLite file in a data directory."""


class Source(Protocol):
    """What can be listed at one revision: any store, or a snapshot of a file that another process serves."""

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """See `Store.list`."""

    async def close(self) -> None:
        """See `Store.close`."""


async def open_store(location: Location, *, sqlite: SqliteConfig | None = None) -> LoadableStore:
    """Open the store in a data directory (made when it is missing), in an etcd, or in memory.

    Raises:
        StoreLocked: another process serves the directory.
        Unavailable, Corrupted, StoreError: it cannot be opened; the message says why.
    """
    if location == "memory":
        from storage.memory import MemoryStore

        return MemoryStore()
    if isinstance(location, Path):
        from storage.sqlite import SqliteStore

        return await SqliteStore.open(location / DATABASE, sqlite)
    from storage.etcd import EtcdStore

    return await EtcdStore.open(location)


async def open_source(location: Location, *, exclusive: bool = False) -> Source:
    """Open what is to be copied: a data directory, also while a server serves it, a backup's file, or an etcd.

    `exclusive`: a file must not be served, now or before this is closed. Nobody can promise that of an etcd.

    Raises:
        StoreLocked: it is served.
        Unavailable, Corrupted, StoreError: there is no store, or it cannot be read.
    """
    if isinstance(location, Path):
        from storage.sqlite import SqliteSnapshot

        file = location / DATABASE if location.is_dir() else location
        return await asyncio.to_thread(SqliteSnapshot, file, exclusive=exclusive)
    return await open_store(location)


async def seal(directory: Path) -> Path:
    """Make the store in a data directory, closed by now, one file that can be read alone; return that."""
    from storage.sqlite import seal

    await asyncio.to_thread(seal, directory / DATABASE)
    return directory / DATABASE
