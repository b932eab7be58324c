"""T120: the health endpoints, as load balancers, kubelets and operators ask them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates
from apiserver.config import Config
from storage.errors import Unavailable
from storage.memory import MemoryStore
from storage.store import Page
from tests.apiserver.running import Listening, listening
from tests.apiserver.status_assertions import assert_status

READY = "[+]ping ok\n[+]etcd ok\n[+]informer-sync ok\n[+]shutdown ok\n"


class FailingStore(MemoryStore):
    """A store that can be taken away."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.silent = False

    async def current_revision(self) -> int:
        if self.silent:
            await asyncio.Event().wait()
        if self.away:
            raise Unavailable("a secret address cannot be reached")
        return await super().current_revision()


@pytest.fixture
async def store() -> AsyncIterator[FailingStore]:
    store = FailingStore()
    yield store
    await store.close()


@pytest.fixture
async def anyone(server: Listening) -> AsyncIterator[aiohttp.ClientSession]:
    async with server.client(None) as session:
        yield session


async def ask(client: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with client.get(path) as response:
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-cache, private"
        return response.status, await response.text()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/", "/readyz/etcd", "/livez/ping", "/healthz/etcd"])
async def test_t120_a_healthy_server_says_ok_to_anybody(anyone: aiohttp.ClientSession, path: str) -> None:
    assert await ask(anyone, path) == (200, "ok")


async def test_t120_verbose_lists_the_checks(anyone: aiohttp.ClientSession) -> None:
    assert await ask(anyone, "/readyz?verbose") == (200, f"{READY}readyz check passed\n")
    assert await ask(anyone, "/livez?verbose=true") == (200, "[+]ping ok\nlivez check passed\n")


async def test_t120_checks_can_be_left_out(anyone: aiohttp.ClientSession) -> None:
    text = READY.replace("etcd ok", "etcd excluded: ok")
    warning = 'warn: some health checks cannot be excluded: no matches for "foo"\n'
    assert await ask(anyone, "/readyz?verbose&exclude=etcd&exclude=foo") == (200, f"{text}{warning}readyz check passed\n")


async def test_t120_without_its_store_a_server_is_alive_but_not_ready(anyone: aiohttp.ClientSession, store: FailingStore) -> None:
    store.away = True
    assert await ask(anyone, "/livez") == (200, "ok")
    code, text = await ask(anyone, "/readyz")
    assert (code, text) == (500, READY.replace("[+]etcd ok", "[-]etcd failed: reason withheld") + "readyz check failed\n")
    assert (await ask(anyone, "/readyz/etcd"))[0] == 500
    assert "secret" not in (await ask(anyone, "/readyz/etcd"))[1]
    assert await ask(anyone, "/readyz?exclude=etcd") == (200, "ok")
    store.away = False
    assert await ask(anyone, "/readyz") == (200, "ok")


async def test_t120_a_store_that_does_not_answer_is_a_failure_in_time(anyone: aiohttp.ClientSession, store: FailingStore) -> None:
    """Many probes share one question, and it is given up."""
    store.silent = True
    answers = await asyncio.gather(*(ask(anyone, "/readyz") for _ in range(20)))
    assert {code for code, _ in answers} == {500}
    store.silent = False
    assert await ask(anyone, "/readyz") == (200, "ok")


async def test_a_server_that_stops_is_not_ready(server: Listening, anyone: aiohttp.ClientSession) -> None:
    assert server.app is not None
    server.app.drain()
    assert (await ask(anyone, "/readyz"))[1].startswith(READY.replace("[+]shutdown ok", "[-]shutdown failed: reason withheld"))
    assert await ask(anyone, "/livez") == (200, "ok")


async def test_checks_that_do_not_exist_are_a_404(anyone: aiohttp.ClientSession, client: aiohttp.ClientSession) -> None:
    async with anyone.get("/livez/etcd") as response:
        await assert_status(response, 404, "NotFound")
    async with client.put("/livez") as response:
        await assert_status(response, 405, "MethodNotAllowed")


async def test_t004_discovery_answers_while_the_store_cannot_be_reached(pki: Certificates, config: Config) -> None:
    class Nowhere(MemoryStore):
        async def list(self, *_: object, **__: object) -> Page:
            raise Unavailable("nobody is there")

        async def current_revision(self) -> int:
            raise Unavailable("nobody is there")

    store = Nowhere()
    app = build_app(config, store, standalone([pki.authority.certificate]))
    async with app.running(), listening(pki, app.handle, app=app) as running, running.client(pki.admin) as client:
        async with client.get("/apis/example.dev/v1") as response:
            names = [resource["name"] for resource in (await response.json())["resources"]]
            assert names == ["clustergadgets", "gadgets", "gadgets/status", "gadgets/scale"]
        code, text = await ask(client, "/readyz")
        assert code == 500
        assert "[-]etcd failed" in text
        assert "[-]informer-sync failed" in text
        async with client.get("/apis/example.dev/v1/namespaces/ns1/gadgets") as response:
            assert response.status in (503, 504)
            assert (await response.json())["details"]["retryAfterSeconds"] == int(response.headers["Retry-After"])
    await store.close()
