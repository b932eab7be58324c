"""The real server over a store in memory, on a free port, with real TLS and client certificates.

`server` and `client` are what most tests need; `pki` holds the session's authority, `user` somebody who may do nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates, KeyPair, make_client, prepare_certificates
from apiserver.config import Config
from storage.memory import MemoryStore
from tests.apiserver.running import Listening, listening
from tests.tools.etcd import Etcd

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return prepare_certificates(tmp_path_factory.mktemp("pki"), ["localhost", "127.0.0.1", "::1"])


@pytest.fixture(scope="session")
def user(pki: Certificates) -> KeyPair:
    """Alice, who is known and may do nothing."""
    return make_client(pki.authority.certificate_file.parent, pki.authority, "alice", ("dev",))


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    """A real one, for what must not be in memory."""
    etcd = Etcd(tmp_path)
    etcd.start()
    yield etcd
    etcd.stop()


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Override it in a module to serve other kinds, or with other limits."""
    return Config(data_dir=tmp_path, kinds=("tests.apiserver.gadgets",), store_name="etcd", enable_garbage_collector=True)


@pytest.fixture
async def server(pki: Certificates, store: MemoryStore, config: Config) -> AsyncIterator[Listening]:
    """The real server, ready, with the kinds of `tests.apiserver.gadgets`."""
    app = build_app(config, store, standalone([pki.authority.certificate]))
    async with app.running():
        await app.wait_ready()
        async with listening(pki, app.handle, app=app) as running:
            yield running


@pytest.fixture
async def client(server: Listening) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that may do everything; paths are relative to the server."""
    async with server.client(server.pki.admin) as session:
        yield session
