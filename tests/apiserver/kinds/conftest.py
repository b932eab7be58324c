"""The real server with the kinds that it brings: one for each module, since most tests here only ask whether an object is accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates
from apiserver.config import Config
from storage.memory import MemoryStore
from tests.apiserver.running import Listening, listening


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(pki: Certificates, store: MemoryStore, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Listening]:
    app = build_app(Config(data_dir=tmp_path_factory.mktemp("server")), store, standalone([pki.authority.certificate]))
    async with app.running():
        await app.wait_ready()
        async with listening(pki, app.handle, app=app) as running:
            yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(server: Listening) -> AsyncIterator[aiohttp.ClientSession]:
    async with server.client(server.pki.admin) as session:
        yield session
