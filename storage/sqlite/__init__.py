"""The default backend: one SQLite file, served by one process."""

from storage.sqlite.config import SqliteConfig
from storage.sqlite.database import seal
from storage.sqlite.snapshot import SqliteSnapshot
from storage.sqlite.store import SqliteStore

__all__ = ["SqliteConfig", "SqliteSnapshot", "SqliteStore", "seal"]
