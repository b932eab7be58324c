"""Opens a store by its location: the only module that names the backends.

Policy: a backend is imported when it is asked for, so that serving a file does not load grpc.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from storage.sqlite.config import SqliteConfig
from storage.store import Store

if TYPE_CHECKING:
    from storage.etcd import EtcdConfig

DATABASE = "store.db"
"""The name of the SQLite file in a data directory."""


async def open_store(location: Path | Literal["memory"] | EtcdConfig, *, sqlite: SqliteConfig | None = None) -> Store:
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

    return EtcdStore(location)
