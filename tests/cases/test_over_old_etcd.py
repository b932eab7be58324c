"""T104: two whole servers over one etcd, of each series that is in use: an idle namespace and an idle kind, while others are written to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates, prepare_certificates
from apiserver.config import Config, ListenConfig, StartupError
from apiserver.listening_socket import bind
from apiserver.registry.watching import WatchLimits
from apiserver.serve import serve
from storage.cache import CacheLimits
from storage.etcd import EtcdConfig, EtcdStore
from storage.open import open_store
from tests.apiserver.running import listening
from tests.kubectl.running import pool, worker
from tests.tools.etcd import Etcd
from tests.tools.needed import needed

pytestmark = [pytest.mark.etcd, pytest.mark.slow]

POOLS, WORKERS = (
    f"/apis/{group}/v1alpha1/namespaces/{{}}/{resource}"
    for group, resource in (("clrk.apoxy.dev", "workerpools"), ("worker.saved.sh", "localworkers"))
)
BUSY = POOLS.format("busy")
IDLE = [
    pytest.param(POOLS.format("idle"), pool, id="an idle namespace"),
    pytest.param(WORKERS.format("idle"), worker, id="an idle kind"),
]
_SECONDS = 30
_WRITES_PER_SECOND = 50
_CONFIG = Config(watch=WatchLimits(bookmark_seconds=0.2), cache=CacheLimits(compaction_seconds=0.1))


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return prepare_certificates(tmp_path_factory.mktemp("pki"), ["localhost", "127.0.0.1"])


@pytest.fixture(scope="module", params=["etcd-3.5.12", "etcd-3.6", "etcd"])
def etcd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    needed(request.param)
    etcd = Etcd(tmp_path_factory.mktemp("etcd"), program=request.param)
    etcd.start()
    yield etcd
    etcd.stop()


@asynccontextmanager
async def served(etcd: Etcd, pki: Certificates) -> AsyncIterator[aiohttp.ClientSession]:
    """A server of our own, and its administrator."""
    store = await open_store(EtcdConfig(endpoints=(etcd.url,)))
    try:
        app = build_app(_CONFIG, store, standalone([pki.authority.certificate]))
        async with app.running():
            await app.wait_ready()
            async with listening(pki, app.handle, app=app) as running, running.client(running.pki.admin) as client:
                yield client
    finally:
        await store.close()


@pytest.fixture
async def replicas(etcd: Etcd, pki: Certificates) -> AsyncIterator[tuple[aiohttp.ClientSession, aiohttp.ClientSession]]:
    """Two servers, of which the second one takes writes in one namespace all the time."""

    async def write(client: aiohttp.ClientSession) -> None:
        for number in range(10**9):
            await patched(client, number)
            await asyncio.sleep(1 / _WRITES_PER_SECOND)

    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(served(etcd, pki)) for _ in range(2)]
        async with two.post(BUSY, json=pool("x")) as response:
            assert response.status in (201, 409)  # the etcd is the module's
        writing = asyncio.create_task(write(two))
        try:
            yield one, two
            assert not writing.done()
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing


async def patched(client: aiohttp.ClientSession, number: int) -> int:
    """Write in the busy namespace, and return the version."""
    value = {"metadata": {"annotations": {"number": str(number)}}}
    async with client.patch(f"{BUSY}/x", json=value, headers={"Content-Type": "application/merge-patch+json"}) as response:
        assert response.status == 200
        return version_of(await response.json())


def version_of(value: Any) -> int:
    return int(value["metadata"]["resourceVersion"])


@asynccontextmanager
async def watching(client: aiohttp.ClientSession, path: str, **query: str) -> AsyncIterator[AsyncIterator[Any]]:
    """The events of a watch that takes bookmarks."""

    async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
        async for line in response.content:
            yield orjson.loads(line)

    async with asyncio.timeout(_SECONDS), client.get(path, params={"watch": "1", "allowWatchBookmarks": "true", **query}) as response:
        assert response.status == 200
        yield events(response)


async def initial_bookmark(events: AsyncIterator[Any]) -> int:
    """Read to the end of what exists; return its version."""
    async for event in events:
        assert event["type"] in ("ADDED", "BOOKMARK"), event
        if event["type"] == "BOOKMARK":
            assert event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
            return version_of(event["object"])
    raise AssertionError("the watch ended before its bookmark")


@pytest.mark.parametrize(("path", "make"), IDLE)
async def test_t104_what_exists_is_told_at_once(
    replicas: tuple[aiohttp.ClientSession, aiohttp.ClientSession], path: str, make: Callable[[str], Any]
) -> None:
    """It is no older than the last write elsewhere."""
    one, two = replicas
    for number in range(7):
        before = await patched(two, -number)
        async with watching(one, path, sendInitialEvents="true", resourceVersionMatch="NotOlderThan") as events:
            assert await initial_bookmark(events) >= before


@pytest.mark.parametrize(("path", "make"), IDLE)
async def test_t104_bookmarks_follow_what_is_written_elsewhere_so_that_a_compaction_does_not_overtake_a_watch(
    etcd: Etcd, replicas: tuple[aiohttp.ClientSession, aiohttp.ClientSession], path: str, make: Callable[[str], Any]
) -> None:
    one, two = replicas
    async with watching(one, path, sendInitialEvents="true", resourceVersionMatch="NotOlderThan") as events:
        first = await initial_bookmark(events)
        written = await patched(two, -1)
        async for event in events:
            assert event["type"] == "BOOKMARK"
            last = version_of(event["object"])
            if last >= written:
                break
    store = EtcdStore(EtcdConfig(endpoints=(etcd.url,)))
    await store.compact(last)
    await store.close()
    for client in replicas:
        await until_forgotten(client, path, first)
    async with two.post(path, json=make(f"after-{last}")) as response:
        created = version_of(await response.json())
    for client in replicas:
        async with watching(client, path, resourceVersion=str(last)) as events:
            async for event in events:
                assert event["type"] in ("ADDED", "BOOKMARK"), event
                if event["type"] == "ADDED":
                    assert version_of(event["object"]) == created
                    break


async def until_forgotten(client: aiohttp.ClientSession, path: str, version: int) -> None:
    """Return when the server has found out that nothing can be said of this version any more, which it looks at now and then."""
    async with asyncio.timeout(_SECONDS):
        while True:
            query = {"resourceVersion": str(version), "resourceVersionMatch": "Exact", "limit": "1"}
            async with client.get(path, params=query) as response:
                if response.status == 410:
                    return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("path", "make"), IDLE)
async def test_t104_a_server_reads_what_the_other_one_has_written(
    replicas: tuple[aiohttp.ClientSession, aiohttp.ClientSession], path: str, make: Callable[[str], Any]
) -> None:
    one, two = replicas
    prefix = f"read-{make.__name__}"
    for number in range(10):
        name = f"{prefix}-{number}"
        async with two.post(path, json=make(name)) as response:
            created = version_of(await response.json())
        async with one.get(path) as response:
            listed = await response.json()
            assert name in [item["metadata"]["name"] for item in listed["items"]]
            assert version_of(listed) >= created
        async with two.delete(f"{path}/{name}") as response:
            assert response.status == 200
        async with one.get(f"{path}/{name}") as response:
            assert response.status == 404


async def test_t104_an_etcd_that_cannot_be_trusted_with_progress_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None so old can be built from a module: a newer one is taken for one."""
    needed("etcd-3.5.12")
    monkeypatch.setattr("storage.etcd.link._ORDERED_SINCE", {(3, 5): 13})
    etcd = Etcd(tmp_path, program="etcd-3.5.12")
    etcd.start()
    try:
        refused = pytest.raises(StartupError, match=rf"etcd cannot be used: {etcd.url}: its version is 3\.5\.12; .*3\.5\.8.* are supported")
        with bind(ListenConfig(secure_port=0)) as bound, refused:
            await serve(Config(data_dir=tmp_path / "clrk"), EtcdConfig(endpoints=(etcd.url,)), ready=lambda *_: None, bound=bound)
    finally:
        etcd.stop()
