"""The contract of a store, on one page.

One sequence of revisions for the whole store: each write takes the next one (a backend shared with others may skip some, never repeat
one). Strictly serializable: a write that has returned is seen by every later read, on every client of the store. Durable: what has been
acknowledged survives the death of the process and of the machine.

A watch is *ordered* (by revision), *unique* (no event twice), *reliable* (no gap inside the history that is kept), *atomic* (a revision
is never split), *resumable* (from the last revision seen) and *bookmarkable* (a Progress says that all up to it has been delivered).

An operation that times out raises `Unknown`: it may have happened. An operation that raises anything else has changed nothing.
Cancelling an operation is safe for the store; a cancelled write may have been applied.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

EMPTY_REVISION = 1
"""The revision of a store into which nothing has been written, as in etcd: zero has a meaning of its own to Kubernetes' clients."""


class KeyValue(NamedTuple):
    """A value and the revision of the write that put it there. (A tuple, as events are: every write makes some, in half the time.)"""

    key: str
    value: bytes
    revision: int


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a listing at one revision, ordered by key (by the bytes of its UTF-8 form)."""

    items: list[KeyValue]
    revision: int
    """The revision of the snapshot that was read."""
    remaining: int
    """How many keys of the prefix come after the last one of this page at that revision."""


class Event(NamedTuple):
    """One write: the value it left, None for a deletion. What was there before, who follows a watch knows from the events before."""

    revision: int
    key: str
    value: bytes | None


class Progress(NamedTuple):
    """All events of the watched prefix up to and including `revision` have been delivered."""

    revision: int


WatchBatch = tuple[Event | Progress, ...]
"""What became ready together; never empty."""


class Store(Protocol):
    """Keys are non-empty strings such as `/registry/group/plural/namespace/name`; values are non-empty bytes."""

    async def create(self, key: str, value: bytes) -> KeyValue:
        """Put a value where none is, and return it with its revision.

        Raises:
            KeyExists: something is there; carries the current KeyValue.
        """

    async def update(self, key: str, value: bytes, *, expected_revision: int) -> KeyValue:
        """Replace a value nobody has changed since `expected_revision`, and return it with its new revision.

        Atomic: either the value and the revision change together, or nothing does.

        Raises:
            KeyNotFound: the key is not there (any more).
            RevisionConflict: somebody was faster; carries the current KeyValue.
        """

    async def delete(self, key: str, *, expected_revision: int) -> KeyValue:
        """Remove a value nobody has changed since `expected_revision`; return the last value with the revision of its *deletion*.

        Raises:
            KeyNotFound: the key is not there (any more).
            RevisionConflict: somebody was faster; carries the current KeyValue.
        """

    async def get(self, key: str, *, revision: int | None = None) -> KeyValue:
        """Return what is under the key now, or was there at `revision`.

        Raises:
            KeyNotFound: nothing is, or was, there.
            Compacted, FutureRevision: `revision` cannot be read.
        """

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """Return the keys that begin with `prefix`, from `start_key` (inclusive) on, at most `limit`, now or as of `revision`.

        A prefix ends with a slash, so that no other namespace or resource can begin with it. Without `revision` the page is read at a
        revision that is at least that of every write that had returned before the call.

        Raises:
            Compacted, FutureRevision: `revision` cannot be read.
        """

    def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[WatchBatch]:
        """Deliver every write under `prefix` with a revision above `after_revision`, first the past ones, then those to come.

        Beginning with `after_revision` ahead of the current revision is allowed: nothing at or below it is ever delivered.
        Progress comes at least every few seconds in a quiet prefix, and soon after anybody called `current_revision` on this store
        object, so that a reader can wait until the watch has reached what that call returned. Closing the iterator ends the watch.
        The queue between the store and a reader is bounded.

        Raises (from the iteration):
            Compacted: `after_revision` is below the compaction revision; the reader must list again.
            WatcherTooSlow: the reader's queue was full.
            Unavailable: the backend was lost for good; the reader may resume from the last revision that it saw.
        """

    async def current_revision(self) -> int:
        """Return a revision that is at least that of every write that had returned, on any client of the store, before the call."""

    async def compact(self, revision: int) -> None:
        """Forget history below `revision`: it can be listed, what was overwritten or deleted before it cannot. Going back is a no-op.

        Raises:
            FutureRevision: `revision` has not been given yet.
        """

    async def size_bytes(self) -> int:
        """Return how much room the store takes on its disk."""

    async def close(self) -> None:
        """Finish what has been accepted, end the watches and release the store. May be called twice."""


class LoadableStore(Store, Protocol):
    """A store itself, not a view of one: it can be filled from another one before it is served, and it has an owner who keeps it up."""

    async def upkeep(self) -> None:
        """Do what has to be done now and then while the store is served. The owner's task; returns at once when there is nothing.

        Raises:
            StoreError: the store has failed for good; one that is opened anew may be sound.
        """

    async def load(self, items: AsyncIterator[KeyValue], *, above_revision: int) -> int:
        """Fill a store that has no keys, and return its revision afterwards. Each value gets a new revision, in the order of `items`.

        All revisions from then on are above `above_revision` and the store's own; history begins at the one returned, so that whoever
        holds an older one is told `Compacted`, running watches included. No other writes may be made meanwhile. When it raises, the
        store is unfit for use and has to be emptied by its owner; a backend that can undo it is empty again.

        Raises:
            KeyExists: the store has keys.
        """
