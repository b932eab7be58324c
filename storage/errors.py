"""What can go wrong in a store. Everything a backend's own library raises is mapped to one of these, in that backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.store import KeyValue


class StoreError(Exception):
    """Base of all errors of a store."""


class KeyNotFound(StoreError):
    """There is nothing under this key (any more)."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key not found: {key}")
        self.key = key


class KeyExists(StoreError):
    """A create met a key that is there already; carries what is there."""

    def __init__(self, current: KeyValue) -> None:
        super().__init__(f"key exists: {current.key}")
        self.current = current


class RevisionConflict(StoreError):
    """The key has another revision than expected; carries what is there, so that a retry needs no second read."""

    def __init__(self, current: KeyValue) -> None:
        super().__init__(f"key {current.key} is at revision {current.revision}")
        self.current = current


class Compacted(StoreError):
    """The revision asked for is older than the history that is kept.

    `compact_revision` is the oldest revision that can still be listed; a watch may resume after it.
    """

    def __init__(self, revision: int, compact_revision: int) -> None:
        super().__init__(f"revision {revision} is compacted; the oldest kept is {compact_revision}")
        self.revision = revision
        self.compact_revision = compact_revision


class FutureRevision(StoreError):
    """The revision asked for has not been given yet."""

    def __init__(self, revision: int, current_revision: int) -> None:
        super().__init__(f"revision {revision} is ahead of the current revision {current_revision}")
        self.revision = revision
        self.current_revision = current_revision


class ValueTooLarge(StoreError):
    """The backend refuses a value of this size; nothing was written."""


class WatcherTooSlow(StoreError):
    """A watcher did not read for so long that its bounded queue was full: it must resume from the last revision it saw."""


class Overloaded(StoreError):
    """The queue of waiting writes is full; nothing was written, try again after a while."""


class Unavailable(StoreError):
    """The backend cannot be reached, and the operation has not been done."""


class Unsupported(Unavailable):
    """The backend is there, and is of a version that does not do what has to be promised; waiting does not help."""


class StoreFull(Unavailable):
    """There is no room for what was to be written, and nothing was; all that needs no room goes on."""


class Unknown(StoreError):
    """The backend did not say in time whether it did the operation: it may have happened, or may still happen."""


class Corrupted(StoreError):
    """What is stored cannot be what was written."""


class StoreLocked(StoreError):
    """Another process serves this store."""


class StoreClosed(StoreError):
    """The store has been closed."""
