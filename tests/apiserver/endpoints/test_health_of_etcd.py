"""T120, over a real etcd that is killed, falls silent, and comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates
from apiserver.config import Config
from storage.etcd import EtcdConfig, EtcdStore
from tests.apiserver.running import Listening, listening
from tests.tools.etcd import Etcd

pytestmark = [pytest.mark.etcd, pytest.mark.slow]
SINGLE = ("/livez", "/readyz", "/healthz", "/readyz/etcd", "/readyz?exclude=etcd", "/readyz?verbose")
_ANSWER_SECONDS = 2.5
_BACK_SECONDS = 30.0


@pytest.fixture
async def server(etcd: Etcd, pki: Certificates, config: Config) -> AsyncIterator[Listening]:
    store = EtcdStore(EtcdConfig(endpoints=(etcd.url,)))
    app = build_app(config, store, standalone([pki.authority.certificate]))
    async with app.running():
        await app.wait_ready()
        async with listening(pki, app.handle, app=app) as running:
            yield running
    await store.close()


@pytest.fixture
async def anyone(server: Listening) -> AsyncIterator[aiohttp.ClientSession]:
    async with server.client(None) as session:
        yield session


async def ask(client: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with asyncio.timeout(_ANSWER_SECONDS), client.get(path) as response:
        return response.status, await response.text()


async def codes(client: aiohttp.ClientSession) -> dict[str, int]:
    answers = await asyncio.gather(*(ask(client, path) for path in SINGLE))
    return {path: code for path, (code, _) in zip(SINGLE, answers, strict=True)}


HEALTHY = dict.fromkeys(SINGLE, 200)
WITHOUT_ETCD = HEALTHY | {"/readyz": 500, "/healthz": 500, "/readyz/etcd": 500, "/readyz?verbose": 500}


async def back(client: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(_BACK_SECONDS):
        while await codes(client) != HEALTHY:
            pass


async def test_t120_an_etcd_that_is_killed_and_comes_back(anyone: aiohttp.ClientSession, etcd: Etcd) -> None:
    assert await codes(anyone) == HEALTHY
    etcd.stop()
    assert await codes(anyone) == WITHOUT_ETCD
    code, text = await ask(anyone, "/readyz")
    assert (code, "[-]etcd failed: reason withheld\n" in text, "[+]ping ok\n" in text) == (500, True, True)
    assert str(etcd.url) not in text
    etcd.start()
    await back(anyone)


async def test_t120_an_etcd_that_falls_silent_and_speaks_again(anyone: aiohttp.ClientSession, etcd: Etcd) -> None:
    etcd.pause()
    try:
        assert await codes(anyone) == WITHOUT_ETCD
        assert await ask(anyone, "/livez?verbose") == (200, "[+]ping ok\nlivez check passed\n")
    finally:
        etcd.resume()
    await back(anyone)


async def test_discovery_and_openapi_do_not_wait_for_a_silent_etcd(server: Listening, etcd: Etcd) -> None:
    """All of it together within 100 ms of the server's (and the client's) time on a processor."""
    async with server.client(server.pki.admin) as client:
        paths = ("/apis/example.dev/v1", "/apis", "/apis/example.dev", "/version", "/openapi/v3", "/openapi/v2")
        await asyncio.gather(*(client.get(path) for path in paths))
        etcd.pause()
        try:
            waiting = asyncio.create_task(client.get("/apis/example.dev/v1/namespaces/ns1/gadgets"))
            began = time.process_time()
            async with asyncio.timeout(_ANSWER_SECONDS):
                answers = await asyncio.gather(*(client.get(path) for path in paths))
            spent = time.process_time() - began
            assert {answer.status for answer in answers} == {200}
            assert not waiting.done()
            assert spent < 0.1
            waiting.cancel()
        finally:
            etcd.resume()
