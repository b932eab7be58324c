"""Cases that take the whole server over an etcd of several members, or with users: members that are silent, tokens that expire."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.apiserver.process import Serving, serving
from tests.connector import Connector
from tests.storage.etcd.test_access import enable_auth
from tests.tools import path
from tests.tools.etcd import Etcd

pytestmark = [pytest.mark.etcd, pytest.mark.slow]

POOLS = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/default/workerpools"


class Line:
    """A way to a member on which everything can be dropped: nothing is refused, nothing arrives, new connections hang."""

    def __init__(self, member: Etcd) -> None:
        self._host, _, self._port = member.url.removeprefix("http://").rpartition(":")
        self._open = asyncio.Event()
        self._open.set()
        self.url = ""

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[Line]:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = "http://{}:{}".format(*server.sockets[0].getsockname())
        try:
            yield self
        finally:
            server.close()

    def drop(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        there, away = await asyncio.open_connection(self._host, int(self._port))
        await asyncio.gather(self._pump(reader, away), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while content := await reader.read(65_536):
                await self._open.wait()
                writer.write(content)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


class Watch:
    """The names that a watch over HTTP has brought so far."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client
        self._version = ""
        self.names: list[str] = []

    async def begin(self) -> None:
        async with self._client.get(POOLS) as response:
            self._version = (await response.json())["metadata"]["resourceVersion"]

    async def until(self, *names: str) -> None:
        """Read on, as an informer does, from the last version seen."""
        async with asyncio.timeout(60):
            while not set(names) <= set(self.names):
                async with self._client.get(POOLS, params={"watch": "true", "resourceVersion": self._version}) as response:
                    assert response.status == 200
                    async for line in response.content:
                        event = json.loads(line)
                        assert event["type"] == "ADDED"
                        self._version = event["object"]["metadata"]["resourceVersion"]
                        self.names.append(event["object"]["metadata"]["name"])
                        if set(names) <= set(self.names):
                            return


async def create(client: aiohttp.ClientSession, name: str) -> tuple[int, Any]:
    pool = {
        "apiVersion": "clrk.apoxy.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": name},
        "spec": {"template": {"image": "w:1"}},
    }
    async with client.post(POOLS, json=pool) as response:
        return response.status, await response.json()


def client_of(server: Serving) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(server.url, connector=Connector(ssl=server.tls))


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[Etcd]]:
    """Three members, of which the first one is down and the second one leads."""
    made = [Etcd(tmp_path, name=name) for name in ("m1", "m2", "m3")]
    cluster = ",".join(f"{member.name}={member.peer_url}" for member in made)
    try:
        for member in made[1:]:
            member.launch(cluster=cluster)
        for member in made[1:]:
            member.wait_ready()
        command = [str(path("etcdctl")), f"--endpoints={made[1].url}", "endpoint", "status", "--write-out=json"]
        status = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)[0]["Status"]
        if status["leader"] != status["header"]["member_id"]:
            made[1:] = made[:0:-1]
        yield made
    finally:
        for member in made:
            member.stop()


async def test_t107_the_first_member_is_down_and_then_the_leader_cannot_be_heard(members: list[Etcd], tmp_path: Path) -> None:
    """No request hangs: each is answered, with a Status while nobody is, and watches have everything that was acknowledged."""
    async with Line(members[1]).laid() as line:
        endpoints = ",".join((members[0].url, line.url, members[2].url))
        running = serving(tmp_path / "clrk", f"--etcd-servers={endpoints}", quiet=False)
        server = await asyncio.to_thread(running.__enter__)
        try:
            async with client_of(server) as client:
                watch, acknowledged = Watch(client), []
                await watch.begin()
                assert (await create(client, "before"))[0] == 201
                await watch.until("before")
                line.drop()
                async with asyncio.timeout(15):
                    for number in range(1000):
                        code, answer = await create(client, f"pool-{number}")
                        if code == 201:
                            acknowledged.append(f"pool-{number}")
                            break
                        assert (answer["kind"], code) in {("Status", 500), ("Status", 503), ("Status", 504)}
                        await asyncio.sleep(0.1)
                assert acknowledged
                line.mend()
                assert (await create(client, "after"))[0] == 201
                await watch.until("before", *acknowledged, "after")
                assert len(watch.names) == len(set(watch.names))
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


async def test_t103_open_watches_outlive_an_idle_token(tmp_path: Path) -> None:
    """Nothing is asked of etcd for longer than its tokens live; then both replicas write, and the member is restarted."""
    etcd = Etcd(tmp_path, flags=("--auth-token-ttl=4",))
    etcd.start()
    try:
        await asyncio.to_thread(enable_auth, etcd)
        password = tmp_path / "password"
        password.write_text("secret\n")
        flags = (f"--etcd-servers={etcd.url}", "--etcd-user=clrk", f"--etcd-password-file={password}")
        replicas = [serving(tmp_path / name, *flags, quiet=False) for name in ("one", "two")]
        servers = [await asyncio.to_thread(replica.__enter__) for replica in replicas]
        try:
            async with client_of(servers[0]) as one, client_of(servers[1]) as two:
                watch = Watch(one)
                await watch.begin()
                reading = asyncio.create_task(watch.until("of-two"))
                await asyncio.sleep(12)  # only the clock makes a token expire
                assert (await create(two, "of-two"))[0] == 201
                await reading
                assert (await create(one, "of-one"))[0] == 201
                await asyncio.to_thread(etcd.stop)
                await asyncio.to_thread(etcd.start)
                async with asyncio.timeout(30):
                    for number in range(1000):
                        last = f"last-{number}"
                        if (await create(two, last))[0] == 201:
                            break
                        await asyncio.sleep(0.1)
                await watch.until("of-two", "of-one", last)
        finally:
            for replica in replicas:
                await asyncio.to_thread(replica.__exit__, None, None, None)
    finally:
        etcd.stop()
