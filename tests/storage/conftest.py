"""Every store there is behind one fixture: a backend is one entry in BACKENDS, and the cache over it comes by itself.

What a backend cannot do is a named capability; a fixture that needs it runs over the backends that have it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from storage.cache import WatchCache
from storage.etcd import EtcdConfig, EtcdStore
from storage.memory import MemoryStore
from storage.sqlite import SqliteStore
from storage.store import KeyValue, LoadableStore, Store
from tests.tools.etcd import Etcd

Open = Callable[[], Awaitable[LoadableStore]]


@dataclass(frozen=True, slots=True)
class Backend:
    """How to open the store that belongs to one test."""

    name: str
    opener: Callable[[pytest.FixtureRequest], Open]
    """Called once for a test; what it returns is called for each opening, the next one after the last store was closed."""
    can_reopen: bool = True
    """What was written is there when the store is opened again."""
    can_undo_load: bool = True
    """A load that failed has left nothing."""
    marks: tuple[pytest.MarkDecorator, ...] = ()


def open_memory(request: pytest.FixtureRequest) -> Open:
    async def open_store() -> LoadableStore:
        return MemoryStore()

    return open_store


def open_sqlite(request: pytest.FixtureRequest) -> Open:
    folder: Path = request.getfixturevalue("tmp_path")

    async def open_store() -> LoadableStore:
        return await SqliteStore.open(folder / "store.db")

    return open_store


@pytest.fixture(scope="session")
def shared_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    """One etcd for all tests of a run that can do with a prefix of their own."""
    etcd = Etcd(tmp_path_factory.mktemp("etcd"))
    etcd.start()
    yield etcd
    etcd.stop()


def open_etcd(request: pytest.FixtureRequest) -> Open:
    etcd: Etcd = request.getfixturevalue("shared_etcd")
    config = EtcdConfig(endpoints=(etcd.url,), prefix=f"/{uuid.uuid4()}")

    async def open_store() -> LoadableStore:
        return EtcdStore(config)

    return open_store


BACKENDS = [
    Backend("memory", open_memory, can_reopen=False),
    Backend("sqlite", open_sqlite),
    Backend("etcd", open_etcd, can_undo_load=False, marks=(pytest.mark.etcd,)),
]


def params(*, cached: bool, able: Callable[[Backend], bool] = lambda backend: True) -> list[Any]:
    bare = [pytest.param((backend, False), id=backend.name, marks=backend.marks) for backend in BACKENDS if able(backend)]
    if not cached:
        return bare
    return bare + [pytest.param((backend, True), id=f"{backend.name}-cached", marks=backend.marks) for backend in BACKENDS if able(backend)]


class Opened:
    """The stores that one test has opened, the last of which is in use."""

    def __init__(self, open_backend: Open, *, cached: bool) -> None:
        self._open_backend = open_backend
        self._cached = cached
        self._backend: LoadableStore | None = None
        self._cache: tuple[WatchCache[KeyValue], asyncio.Task[None]] | None = None

    async def open(self) -> Store:
        self._backend = await self._open_backend()
        if not self._cached:
            return self._backend
        cache = WatchCache(self._backend, "/registry/", decode=lambda item: item)
        self._cache = cache, asyncio.create_task(cache.run())
        await cache.wait_ready()
        return cache

    async def reopen(self) -> Store:
        await self.close()
        return await self.open()

    async def close(self) -> None:
        if self._cache is not None:
            cache, task = self._cache
            self._cache = None
            await cache.close()
            await task
        if self._backend is not None:
            await self._backend.close()


@pytest.fixture(params=params(cached=True))
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    backend, cached = request.param
    opened = Opened(backend.opener(request), cached=cached)
    yield opened
    await opened.close()


@pytest.fixture
async def store(opened: Opened) -> Store:
    """A store without a key, of each kind in turn."""
    return await opened.open()


@pytest.fixture(params=params(cached=True, able=lambda backend: backend.can_reopen))
async def reopenable(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    """For stores that outlive their process: open, reopen, close."""
    backend, cached = request.param
    opened = Opened(backend.opener(request), cached=cached)
    yield opened
    await opened.close()


@pytest.fixture(params=params(cached=False))
async def loadable(request: pytest.FixtureRequest) -> AsyncIterator[LoadableStore]:
    """A store without a key, to be filled."""
    backend, _ = request.param
    store = await backend.opener(request)()
    yield store
    await store.close()


@pytest.fixture(params=params(cached=False, able=lambda backend: backend.can_undo_load))
async def undoing(request: pytest.FixtureRequest) -> AsyncIterator[LoadableStore]:
    """A store without a key, to be filled, or left empty."""
    backend, _ = request.param
    store = await backend.opener(request)()
    yield store
    await store.close()
