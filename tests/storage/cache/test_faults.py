"""Random writes, losses and compactions: what a subscriber replays is what the cache shows, which is what the store holds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from storage.cache import WatchCache
from storage.errors import Unavailable, WatcherTooSlow
from storage.history import Change
from storage.store import KeyValue
from tests.storage.cache.conftest import PREFIX, OpenCache
from tests.storage.cache.doubles import GatedStore, Item


class Replica:
    """A subscriber that keeps its own copy, and the rules of a watch: ordered, unique, bookmarkable, no previous value wrong."""

    def __init__(self, cache: WatchCache[Item]) -> None:
        self._cache = cache
        self.resets = 0
        self.state = {entry.key: entry for entry in cache.snapshot().iterate()}
        self.revision = cache.revision
        self.faults: list[str] = []
        cache.subscribe(self)

    def changes(self, batch: Sequence[Change[Item]]) -> None:
        for change in batch:
            if change.revision <= self.revision:
                self.faults.append(f"{change} after revision {self.revision}")
            if self.state.pop(change.key, None) != change.previous:
                self.faults.append(f"{change} names another previous value")
            if change.entry is not None:
                self.state[change.key] = change.entry
            self.revision = change.revision

    def progress(self, revision: int) -> None:
        if revision < self.revision:
            self.faults.append(f"progress {revision} after revision {self.revision}")
        self.revision = revision

    def reset(self) -> None:
        self.resets += 1
        if self._cache.revision < self.revision:
            self.faults.append(f"reset to {self._cache.revision} after revision {self.revision}")
        self.state = {entry.key: entry for entry in self._cache.snapshot().iterate()}
        self.revision = self._cache.revision


async def write_at_random(store: GatedStore, live: dict[str, KeyValue], dice: random.Random) -> None:
    key = f"{PREFIX}{dice.randrange(40)}"
    held = live.pop(key, None)
    if held is None:
        live[key] = await store.create(key, b"new")
    elif dice.random() < 0.4:
        await store.delete(key, expected_revision=held.revision)
    else:
        live[key] = await store.update(key, b"again", expected_revision=held.revision)


async def fault_at_random(store: GatedStore, dice: random.Random) -> None:
    match dice.randrange(5):
        case 0:
            store.failing = Unavailable("partition")
            store.lose_watches(store.failing)
        case 1:
            store.failing = None
        case 2:
            store.lose_watches(WatcherTooSlow("too slow"))
        case 3:
            await store.compact((await store.get(PREFIX + "mark")).revision)
        case _:
            await asyncio.sleep(0.002)


@pytest.mark.parametrize("seed", range(5))
async def test_a_subscriber_and_both_caches_end_with_what_the_store_holds(store: GatedStore, open_cache: OpenCache, seed: int) -> None:
    dice = random.Random(seed)
    caches = [await open_cache(store), await open_cache(store)]
    replicas = [Replica(cache) for cache in caches]
    live: dict[str, KeyValue] = {}
    mark = await store.create(PREFIX + "mark", b"0")
    for _ in range(400):
        for _ in range(dice.randrange(4)):
            await write_at_random(store, live, dice)
        if dice.random() < 0.2:
            await fault_at_random(store, dice)
            mark = await store.update(mark.key, b"0", expected_revision=mark.revision)
        if dice.random() < 0.5:
            await asyncio.sleep(0)
    store.failing = None
    await asyncio.gather(*(cache.fresh(timeout_seconds=30) for cache in caches))
    assert all(replica.resets for replica in replicas)
    for _ in range(60):
        await write_at_random(store, live, dice)
    wanted = [Item(item.key, item.revision, item.value) for item in (await store.list(PREFIX)).items]
    for cache, replica in zip(caches, replicas, strict=True):
        await cache.fresh(timeout_seconds=30)
        assert cache.revision - cache.oldest_revision >= 60
        assert list(cache.snapshot().iterate()) == wanted
        assert [replica.state[key] for key in sorted(replica.state)] == wanted
        assert replica.faults == []
        await cache.verify()
        for revision in range(cache.oldest_revision, cache.revision + 1, 7):
            past = await store.list(PREFIX, revision=revision)
            assert [(entry.key, entry.revision) for entry in cache.snapshot_at(revision).iterate()] == [
                (item.key, item.revision) for item in past.items
            ]
