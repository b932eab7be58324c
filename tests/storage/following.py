"""Reading watches in tests: until something has come, with a limit that only a hanging test meets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import cast

from storage.store import Event, KeyValue, Progress, Store, WatchBatch

PODS = "/registry/pods/"
HANGING_SECONDS = 30.0


class Following:
    """A watch that is read on demand; all it has delivered is kept and checked: ordered, unique, bookmarkable."""

    def __init__(self, watch: AsyncGenerator[WatchBatch, None], after_revision: int) -> None:
        self._watch = watch
        self.position = after_revision
        self.events: list[Event] = []
        self.progress: list[int] = []

    async def batch(self) -> WatchBatch:
        async with asyncio.timeout(HANGING_SECONDS):
            batch = await anext(self._watch)
        assert batch
        for item in batch:
            if isinstance(item, Progress):
                assert item.revision >= self.position, f"{item} after {self.position}"
                self.progress.append(item.revision)
            else:
                assert item.revision > self.position, f"{item} after {self.position}"
                self.events.append(item)
            self.position = item.revision
        return batch

    async def until_events(self, count: int) -> list[Event]:
        while len(self.events) < count:
            await self.batch()
        return self.events

    async def until_revision(self, revision: int) -> list[Event]:
        """All up to `revision` has been delivered."""
        while self.position < revision:
            await self.batch()
        return self.events

    async def until_progress(self, revision: int) -> None:
        while not self.progress or self.progress[-1] < revision:
            await self.batch()

    async def end(self) -> None:
        """Read until the watch ends or raises."""
        while True:
            try:
                await self.batch()
            except StopAsyncIteration:
                return


@asynccontextmanager
async def following(store: Store, prefix: str = PODS, *, after_revision: int) -> AsyncIterator[Following]:
    async with aclosing(cast(AsyncGenerator[WatchBatch, None], store.watch(prefix, after_revision=after_revision))) as watch:
        yield Following(watch, after_revision)


async def write_history(store: Store) -> list[Event]:
    """Make eight writes that hold each kind of change, among them a key that comes again, and return them as events."""
    events: list[Event] = []
    live: dict[str, KeyValue] = {}

    async def create(name: str, value: bytes) -> None:
        live[name] = await store.create(PODS + name, value)
        events.append(Event(live[name].revision, PODS + name, value))

    async def update(name: str, value: bytes) -> None:
        old = live[name]
        live[name] = await store.update(old.key, value, expected_revision=old.revision)
        events.append(Event(live[name].revision, old.key, value))

    async def delete(name: str) -> None:
        old = live.pop(name)
        gone = await store.delete(old.key, expected_revision=old.revision)
        events.append(Event(gone.revision, old.key, None))

    await create("ns1/a", b"a1")
    await create("ns1/b", b"b1")
    await update("ns1/a", b"a2")
    await create("ns2/a", b"other")
    await delete("ns1/b")
    await create("ns1/b", b"b2")
    await update("ns1/b", b"b3")
    await delete("ns1/a")
    return events


def state_at(events: list[Event], revision: int, prefix: str = PODS) -> list[KeyValue]:
    """Return what a listing at a revision has to be, by replaying the events."""
    state: dict[str, KeyValue] = {}
    for event in events:
        if event.revision > revision or not event.key.startswith(prefix):
            continue
        if event.value is None:
            del state[event.key]
        else:
            state[event.key] = KeyValue(event.key, event.value, event.revision)
    return [state[key] for key in sorted(state, key=str.encode)]
