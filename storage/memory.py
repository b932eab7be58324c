"""A store in plain Python, for tests and trials: the whole contract, history and compaction included, gone with the process.

Knows the contract and no backend. Policy: every operation is done at once, on the event loop, in the order of the calls.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Sequence
from operator import attrgetter

from storage.errors import Compacted, FutureRevision, KeyExists, KeyNotFound, RevisionConflict, StoreClosed
from storage.fanout import Fanout
from storage.keys import prefix_end
from storage.store import EMPTY_REVISION, Event, KeyValue, Page, WatchBatch
from storage.window import HistoryLimits, HistoryWindow

_revision_of = attrgetter("revision")
_CHUNK_EVENTS = 1000


class MemoryStore:
    """Keeps the contract of `Store` in dictionaries. Not for more than some 100,000 keys: a new key moves a sorted list."""

    def __init__(self, *, history: HistoryLimits | None = None) -> None:
        self._versions: dict[str, list[Event]] = {}
        self._keys: list[str] = []
        self._log: list[Event] = []
        self._compact_revision = 0
        self._limits = history or HistoryLimits()
        self._closed = False
        self._begin(EMPTY_REVISION)

    def _begin(self, revision: int) -> None:
        self._fanout = Fanout(revision)
        self._window = HistoryWindow(self._limits, revision=revision, now_seconds=time.monotonic())

    async def create(self, key: str, value: bytes) -> KeyValue:
        """See `Store.create`."""
        self._check_open()
        current = self._at(key, self._fanout.revision)
        if current is not None:
            raise KeyExists(current)
        return KeyValue(key, value, self._append(key, value))

    async def update(self, key: str, value: bytes, *, expected_revision: int) -> KeyValue:
        """See `Store.update`."""
        self._expect(key, expected_revision)
        return KeyValue(key, value, self._append(key, value))

    async def delete(self, key: str, *, expected_revision: int) -> KeyValue:
        """See `Store.delete`."""
        current = self._expect(key, expected_revision)
        return KeyValue(key, current.value, self._append(key, None))

    async def get(self, key: str, *, revision: int | None = None) -> KeyValue:
        """See `Store.get`."""
        found = self._at(key, self._readable(revision))
        if found is None:
            raise KeyNotFound(key)
        return found

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """See `Store.list`."""
        at = self._readable(revision)
        end = prefix_end(prefix)
        first = bisect_left(self._keys, max(prefix, start_key or ""))
        last = len(self._keys) if end is None else bisect_left(self._keys, end)
        found = [item for key in self._keys[first:last] if (item := self._at(key, at)) is not None]
        items = found if limit is None else found[:limit]
        return Page(items, at, len(found) - len(items))

    def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[WatchBatch]:
        """See `Store.watch`."""
        self._check_open()

        async def past(after: int, upto: int) -> tuple[Sequence[Event], int]:
            self._check_open()
            if after < self._compact_revision:
                raise Compacted(after, self._compact_revision)
            first = bisect_right(self._log, after, key=_revision_of)
            chunk = self._log[first : first + _CHUNK_EVENTS]
            position = chunk[-1].revision if len(chunk) == _CHUNK_EVENTS else upto
            return [event for event in chunk if event.key.startswith(prefix)], position

        return self._fanout.watch(prefix, after_revision, past=past)

    async def current_revision(self) -> int:
        """See `Store.current_revision`."""
        self._check_open()
        return self._fanout.checked_revision()

    async def compact(self, revision: int) -> None:
        """See `Store.compact`."""
        self._check_open()
        if revision > self._fanout.revision:
            raise FutureRevision(revision, self._fanout.revision)
        self._forget(revision)

    async def upkeep(self) -> None:
        """See `LoadableStore.upkeep`. History is cut with the writes that make it too long."""

    async def load(self, items: AsyncIterator[KeyValue], *, above_revision: int) -> int:
        """See `LoadableStore.load`."""
        loaded = [item async for item in items]
        self._check_open()
        for versions in self._versions.values():
            if (current := _left_by(versions[-1])) is not None:
                raise KeyExists(current)
        revision = max(above_revision, self._fanout.revision)
        old = self._fanout
        self._begin(revision)
        for item in loaded:
            self._append(item.key, item.value)
        self._forget(self._fanout.revision)
        old.end(Compacted(old.revision, self._compact_revision))
        return self._fanout.revision

    async def size_bytes(self) -> int:
        """Return the bytes of all keys and values that are kept: this store has no disk."""
        return sum(len(event.key) + len(event.value or b"") for versions in self._versions.values() for event in versions)

    async def close(self) -> None:
        """See `Store.close`."""
        self._closed = True
        self._fanout.end()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store has been closed")

    def _readable(self, revision: int | None) -> int:
        self._check_open()
        if revision is None:
            return self._fanout.revision
        if revision > self._fanout.revision:
            raise FutureRevision(revision, self._fanout.revision)
        if revision < self._compact_revision:
            raise Compacted(revision, self._compact_revision)
        return revision

    def _at(self, key: str, revision: int) -> KeyValue | None:
        versions = self._versions.get(key)
        if versions is None:
            return None
        if versions[-1].revision <= revision:
            return _left_by(versions[-1])
        count = bisect_right(versions, revision, key=_revision_of)
        return _left_by(versions[count - 1]) if count else None

    def _expect(self, key: str, expected_revision: int) -> KeyValue:
        self._check_open()
        current = self._at(key, self._fanout.revision)
        if current is None:
            raise KeyNotFound(key)
        if current.revision != expected_revision:
            raise RevisionConflict(current)
        return current

    def _append(self, key: str, value: bytes | None) -> int:
        event = Event(self._fanout.revision + 1, key, value)
        if key not in self._versions:
            self._versions[key] = []
            insort(self._keys, key)
        self._versions[key].append(event)
        self._log.append(event)
        self._fanout.publish((event,), event.revision)
        target = self._window.advance(event.revision, time.monotonic())
        if target is not None:
            self._forget(target)
        return event.revision

    def _forget(self, revision: int) -> None:
        if revision <= self._compact_revision:
            return
        self._compact_revision = revision
        count = bisect_right(self._log, revision, key=_revision_of)
        for key in {event.key for event in self._log[:count]}:
            versions = self._versions[key]
            superseded = bisect_right(versions, revision, key=_revision_of) - 1
            if superseded >= 0 and versions[superseded].value is None:
                superseded += 1
            del versions[: max(superseded, 0)]
            if not versions:
                del self._versions[key]
                del self._keys[bisect_left(self._keys, key)]
        del self._log[:count]


def _left_by(event: Event) -> KeyValue | None:
    return None if event.value is None else KeyValue(event.key, event.value, event.revision)
