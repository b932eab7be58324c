"""A gated store, and caches over it that run until the test ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from storage.cache import CacheLimits, WatchCache
from storage.store import Store
from tests.storage.cache.doubles import GatedStore, Item, decode

PREFIX = "/registry/example.com/pools/"
QUICK = CacheLimits(page_size=3, own_write_seconds=30, retry_seconds=0.001, retry_seconds_max=0.002)
OpenCache = Callable[..., Awaitable[WatchCache[Item]]]


@pytest.fixture
async def store() -> AsyncIterator[GatedStore]:
    store = GatedStore()
    yield store
    await store.close()


@pytest.fixture
async def open_cache() -> AsyncIterator[OpenCache]:
    running: list[tuple[WatchCache[Item], asyncio.Task[None]]] = []

    async def open_cache(store: Store, *, limits: CacheLimits = QUICK, ready: bool = True) -> WatchCache[Item]:
        cache = WatchCache(store, PREFIX, decode=decode, limits=limits)
        running.append((cache, asyncio.create_task(cache.run())))
        if ready:
            await cache.wait_ready()
        return cache

    yield open_cache
    for cache, task in running:
        await cache.close()
        await task


@pytest.fixture
async def cache(store: GatedStore, open_cache: OpenCache) -> WatchCache[Item]:
    return await open_cache(store)
