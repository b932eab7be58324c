"""Two replicas over one etcd, directly and behind a real kube-apiserver: what one has acknowledged the other knows, and either can go."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.connector import Connector
from tests.e2e.aggregated import until
from tests.e2e.replicated import Replica, Replicated
from tests.e2e.traffic import NOTHING, OUTAGES, version_of
from tests.kubectl.running import pool

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

MERGE = {"Content-Type": "application/merge-patch+json"}
_SMALL_BUFFER_BYTES = 64 * 1024


def pools(namespace: str) -> str:
    return f"/apis/clrk.apoxy.dev/v1alpha1/namespaces/{namespace}/workerpools"


def unbuffered(address: Any) -> socket.socket:
    """A socket for a client that reads slowly: what it does not read has to wait at the server."""
    opened = socket.socket(*address[:3])
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER_BYTES)
    return opened


@asynccontextmanager
async def client(
    service: Replicated, replica: Replica, socket_factory: Any = None, *, raise_for_status: bool = True
) -> AsyncIterator[aiohttp.ClientSession]:
    """An administrator who asks one replica."""
    connector = Connector(ssl=service.tls(), limit=0, socket_factory=socket_factory)
    async with aiohttp.ClientSession(replica.url, connector=connector, raise_for_status=raise_for_status) as session:
        yield session


async def answer(request: Any) -> Any:
    async with request as response:
        return await response.json()


async def refuses(replica: Replica) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", replica.port)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


async def events(session: aiohttp.ClientSession, path: str, version: int, count: int) -> list[tuple[str, str, int]]:
    """The next events after a version: type, name and version of each."""
    seen: list[tuple[str, str, int]] = []
    async with session.get(path, params={"watch": "1", "resourceVersion": str(version)}) as response:
        async for line in response.content:
            event = json.loads(line)
            seen.append((event["type"], event["object"]["metadata"]["name"], version_of(event["object"])))
            if len(seen) == count:
                break
    return seen


async def test_t106_watches_of_both_replicas_see_what_one_has_written(service: Replicated) -> None:
    path, writers, each = pools("t106-watch"), 10, 50
    service.cluster.namespace("t106-watch")
    one, two = service.replicas
    async with client(service, one) as first, client(service, two) as second, asyncio.timeout(60):
        start = version_of(await answer(first.get(path)))
        watching = [asyncio.create_task(events(session, path, start, 2 * writers * each)) for session in (first, first, second, second)]
        written: list[tuple[str, str, int]] = []

        async def write(writer: int) -> None:
            for number in range(each):
                name = f"p{writer}-{number}"
                made = await answer(second.post(path, json=pool(name)))
                changed = await answer(second.patch(f"{path}/{name}", json={"spec": {"replicas": 7}}, headers=MERGE))
                written.extend((("ADDED", name, version_of(made)), ("MODIFIED", name, version_of(changed))))

        await asyncio.gather(*(write(writer) for writer in range(writers)))
        for seen in await asyncio.gather(*watching):
            assert seen == sorted(written, key=lambda event: event[2])


async def test_t106_a_replica_reads_what_the_other_has_acknowledged(service: Replicated) -> None:
    path = pools("t106-read")
    service.cluster.namespace("t106-read")
    one, two = service.replicas
    async with client(service, one) as first, client(service, two) as second:
        for number, (writer, reader) in enumerate([(second, first), (first, second)] * 50):
            name = f"p{number}"
            made = await answer(writer.post(path, json=pool(name)))
            assert await answer(reader.get(f"{path}/{name}")) == made
            changed = await answer(writer.patch(f"{path}/{name}", json={"spec": {"replicas": number}}, headers=MERGE))
            listed = await answer(reader.get(path))
            assert version_of(listed) >= version_of(changed)
            assert {item["metadata"]["name"]: version_of(item) for item in listed["items"]}[name] == version_of(changed)


async def test_t106_pages_and_watches_go_on_at_the_other_replica(service: Replicated) -> None:
    path = pools("t106-pages")
    service.cluster.namespace("t106-pages")
    one, two = service.replicas
    async with client(service, one) as first, client(service, two) as second:
        for number in range(10):
            await answer(first.post(path, json=pool(f"p{number}")))
        whole = await answer(first.get(path))
        page = await answer(first.get(path, params={"limit": "4"}))
        items, version, sessions = page["items"], version_of(page), [second, first]
        while token := page["metadata"].get("continue"):
            # What is written between pages is in none of them.
            await answer(second.patch(f"{path}/p{len(items)}", json={"spec": {"replicas": 7}}, headers=MERGE))
            await answer(second.delete(f"{path}/p9"))
            await answer(second.post(path, json=pool("p9")))
            page = await answer(sessions[0].get(path, params={"limit": "4", "continue": token}))
            assert version_of(page) == version
            items += page["items"]
            sessions.reverse()
        assert items == whole["items"]

        all_of_them = await events(first, path, version, 6)
        half = await events(first, path, version, 3)
        assert half + await events(second, path, half[-1][2], 3) == all_of_them
        assert [version_of(item) for item in (await answer(first.get(path)))["items"]] != [version_of(item) for item in items]


@pytest.mark.parametrize("rounds", [pytest.param(1, id="once"), pytest.param(8, id="eight times", marks=pytest.mark.load)])
async def test_t122_replicas_are_restarted_one_after_the_other_without_a_failed_request(service: Replicated, rounds: int) -> None:
    clients = service.clients(f"rolling-{rounds}", NOTHING)
    async with clients.running(writers=16, watchers=50):
        await clients.writes(50)
        for replica in service.replicas * rounds:
            await asyncio.to_thread(replica.end)
            await clients.writes(20)
            await asyncio.to_thread(replica.start)
            await asyncio.to_thread(service.wait_ready)
            await clients.writes(20)
    # Each watch was ended once at least, and gone on with where it was.
    assert clients.counts["WATCH 200"] >= 100


async def test_t122_a_second_signal_ends_a_replica_at_once(service: Replicated) -> None:
    going, staying = service.replicas
    await asyncio.to_thread(going.end)
    await asyncio.to_thread(going.start, "--shutdown-delay-duration=10m")
    await asyncio.to_thread(service.wait_ready)
    clients = service.clients("second-signal", OUTAGES)
    async with clients.running(writers=4, watchers=50):
        await clients.writes(20)
        going.tell()
        await asyncio.to_thread(service.wait_ready, staying)
        await clients.writes(20)
        going.tell()
        await asyncio.to_thread(going.wait)
        await clients.writes(20)
        await asyncio.to_thread(going.start)
        await asyncio.to_thread(service.wait_ready)
    assert "WATCH error 410" not in clients.counts


async def test_t122_a_list_that_is_read_slowly_comes_to_its_end(service: Replicated) -> None:
    path, count = pools("slow-list"), 60
    service.cluster.namespace("slow-list")
    going, staying = service.replicas
    async with client(service, going, unbuffered) as session:
        value = pool("")
        value["metadata"] = {"generateName": "large-", "annotations": {"filler": "x" * 200_000}}
        await asyncio.gather(*(answer(session.post(path, json=value)) for _ in range(count)))
        async with session.get(path) as response:
            begun = await response.content.readexactly(1000)
            going.tell()
            await asyncio.to_thread(service.wait_ready, staying)
            await until(lambda: refuses(going))
            assert len(json.loads(begun + await response.read())["items"]) == count
        await asyncio.to_thread(going.wait)
    await asyncio.to_thread(going.start)
    await asyncio.to_thread(service.wait_ready)
