"""Each part of an installation is killed and comes back while clients are at work: what was acknowledged is there, and all agree on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import pytest

from tests.connector import Connector
from tests.e2e.aggregated import until
from tests.e2e.replicated import Replica, Replicated, without
from tests.e2e.test_controllers import owned
from tests.e2e.traffic import OUTAGES
from tests.kubectl.running import manifest, pool

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

_ANSWER_SECONDS = 10.0
"""Here it is asked for on a machine that is busy; how quick it is on one that is not is another test's."""


@contextmanager
def our_etcd_away(service: Replicated) -> Iterator[None]:
    service.etcd.stop()
    yield
    service.etcd.start()


@contextmanager
def replicas_away(*replicas: Replica) -> Iterator[None]:
    for replica in replicas:
        replica.kill()
    yield
    for replica in replicas:
        replica.start()


@asynccontextmanager
async def alive(*replicas: Replica) -> AsyncIterator[None]:
    """Ask replicas again and again whether they are alive, which they always must be."""

    async def look(replica: Replica) -> None:
        while True:
            assert await health(replica, "/livez") == 200
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        looks = [group.create_task(look(replica)) for replica in replicas]
        yield
        for task in looks:
            task.cancel()


async def health(replica: Replica, path: str) -> int:
    async with aiohttp.ClientSession(replica.url, connector=Connector()) as session, asyncio.timeout(_ANSWER_SECONDS):
        return (await session.get(path, ssl=False)).status


async def ready(replica: Replica, code: int) -> bool:
    return await health(replica, "/readyz") == code


async def test_kube_apiserver_is_killed(service: Replicated) -> None:
    """Clients of a replica do not notice, and those of kube-apiserver go on where they were."""
    clients, direct = service.clients("killed-1", OUTAGES), service.direct_clients("killed-1-direct", service.replicas[0], OUTAGES)
    async with alive(*service.replicas), clients.running(writers=4, watchers=20), direct.running(writers=2, watchers=5):
        await clients.writes(30)
        async with without(service.plane.away()):
            await direct.writes(30)
        await clients.writes(30)
    assert not [answer for answer in direct.counts if not answer.endswith(("200", "201"))]
    assert "WATCH error 410" not in clients.counts


async def test_the_etcd_of_kube_apiserver_is_killed(service: Replicated) -> None:
    clients, direct = service.clients("killed-2", OUTAGES), service.direct_clients("killed-2-direct", service.replicas[0], OUTAGES)
    async with alive(*service.replicas), clients.running(writers=4, watchers=20), direct.running(writers=2, watchers=5):
        await clients.writes(30)
        async with without(service.plane.etcd_away()):
            await direct.writes(30)
        await clients.writes(30)
    assert not [answer for answer in direct.counts if not answer.endswith(("200", "201"))]


async def test_t120_our_etcd_is_killed(service: Replicated) -> None:
    clients = service.clients("killed-3", OUTAGES)
    async with alive(*service.replicas), clients.running(writers=4, watchers=20):
        await clients.writes(30)
        async with without(our_etcd_away(service)):
            for replica in service.replicas:
                await until(lambda replica=replica: ready(replica, 500))  # type: ignore[misc]
        for replica in service.replicas:
            await until(lambda replica=replica: ready(replica, 200))  # type: ignore[misc]
        await clients.writes(30)
    assert clients.counts["WATCH 200"] >= 20


async def test_a_replica_is_killed(service: Replicated) -> None:
    going, staying = service.replicas
    clients = service.clients("killed-4", OUTAGES)
    async with alive(staying), clients.running(writers=4, watchers=20):
        await clients.writes(30)
        async with without(replicas_away(going)):
            await asyncio.to_thread(service.wait_ready, staying)
            await clients.writes(30)
        await asyncio.to_thread(service.wait_ready)
        await clients.writes(30)
    assert "WATCH error 410" not in clients.counts


async def test_all_replicas_are_killed(service: Replicated) -> None:
    clients = service.clients("killed-5", OUTAGES)
    async with clients.running(writers=4, watchers=20):
        await clients.writes(30)
        async with without(replicas_away(*service.replicas)):
            pass
        await clients.writes(30)
    await asyncio.to_thread(service.wait_ready)


async def test_the_controllers_are_killed(service: Replicated) -> None:
    """They take up what has been deleted meanwhile."""
    clients = service.clients("killed-6", OUTAGES)
    here, run = "--namespace=killed-6", service.cluster.kubectl
    async with clients.running(writers=4, watchers=20):
        await asyncio.to_thread(run, "create", "-f", "-", here, stdin=manifest(pool("owner")))
        dependent = owned(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dependent"}}, service.cluster.json("wp/owner", here)
        )
        await asyncio.to_thread(run, "create", "-f", "-", here, stdin=json.dumps(dependent))
        async with without(service.plane.controllers_away()):
            await asyncio.to_thread(run, "delete", "wp/owner", here)
            await clients.writes(30)
        await asyncio.to_thread(run, "wait", "--for=delete", "--timeout=60s", "configmap/dependent", here)
    await asyncio.to_thread(run, "delete", "namespace", "killed-6", "--timeout=60s")
    assert not [answer for answer in clients.counts if not answer.endswith(("200", "201"))]
