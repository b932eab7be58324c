"""What the tests of the cache share: a tiny entry, a store whose answers wait for gates, and a subscriber that writes down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from storage.errors import StoreError
from storage.history import Change
from storage.memory import MemoryStore
from storage.store import KeyValue, Page, Progress, WatchBatch


@dataclass(frozen=True, slots=True)
class Item:
    key: str
    revision: int
    value: bytes


def decode(keyvalue: KeyValue) -> Item:
    return Item(keyvalue.key, keyvalue.revision, keyvalue.value)


class GatedStore(MemoryStore):
    """A memory store, as far away as its gates say: each is an event that must be set for the answers to pass."""

    def __init__(self) -> None:
        super().__init__()
        self.revision_gate = open_gate()
        self.watch_gate = open_gate()
        self.watch_error: StoreError | None = None
        self.failing: StoreError | None = None
        self.write_gate = open_gate()
        self.created = 0
        self.revision_reads = 0
        self.lists: list[tuple[str | None, int | None]] = []
        self.watches: list[int] = []
        self.slow = False
        self._lost = asyncio.Event()
        self._called = asyncio.Event()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until the condition holds after a call to this store."""
        while not reached():
            self._called.clear()
            await self._called.wait()

    async def create(self, key: str, value: bytes) -> KeyValue:
        created = await super().create(key, value)
        self.created += 1
        self._called.set()
        await self.write_gate.wait()
        return created

    async def current_revision(self) -> int:
        self.revision_reads += 1
        self._called.set()
        if self.failing is not None:
            raise self.failing
        if self.slow:
            await asyncio.sleep(0)
        await self.revision_gate.wait()
        return await super().current_revision()

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        self.lists.append((start_key, revision))
        self._called.set()
        if self.failing is not None:
            raise self.failing
        return await super().list(prefix, start_key=start_key, limit=limit, revision=revision)

    def lose_watches(self, error: StoreError) -> None:
        """Raise the error from every watch that runs, now."""
        self.watch_error = error
        self._lost.set()
        self._lost = asyncio.Event()

    def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[WatchBatch]:
        self.watches.append(after_revision)
        self._called.set()
        if self.failing is not None:
            raise self.failing
        return self._gated(super().watch(prefix, after_revision=after_revision), self._lost)

    async def _gated(self, inner: AsyncIterator[WatchBatch], lost: asyncio.Event) -> AsyncGenerator[WatchBatch, None]:
        async with aclosing(cast(AsyncGenerator[WatchBatch, None], inner)) as watch:
            while True:
                following = asyncio.ensure_future(anext(watch))
                losing = asyncio.ensure_future(lost.wait())
                try:
                    await asyncio.wait([following, losing], return_when=asyncio.FIRST_COMPLETED)
                    if lost.is_set():
                        assert self.watch_error is not None
                        raise self.watch_error
                    batch = await following
                finally:
                    losing.cancel()
                    following.cancel()
                    await asyncio.wait([losing, following])
                await self.watch_gate.wait()
                yield batch


def open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


class Notes:
    """A subscriber that remembers what it was told, and replays it into a state."""

    def __init__(self) -> None:
        self.told: list[Change[Item] | Progress | str] = []
        self.event = asyncio.Event()

    def changes(self, batch: Sequence[Change[Item]]) -> None:
        self.told += batch
        self.event.set()

    def progress(self, revision: int) -> None:
        self.told.append(Progress(revision))
        self.event.set()

    def reset(self) -> None:
        self.told.append("reset")
        self.event.set()

    @property
    def revisions(self) -> list[int]:
        return [note.revision for note in self.told if isinstance(note, Change)]

    async def until(self, wanted: Callable[[Any], bool]) -> None:
        """Wait until `wanted(told)` holds."""
        while not wanted(self.told):
            self.event.clear()
            await self.event.wait()
