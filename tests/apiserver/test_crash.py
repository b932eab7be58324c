"""CASES T101, over HTTP: whenever the server is killed, what it had acknowledged is there when it is started again.

One round: start; compare what is listed with the ledger of the round before; go on with its watch; write; kill.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import ssl
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.connector import Connector

POOLS = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/default/workerpools"
WRITERS = 6
NAMES_EACH = 3

State = dict[str, int]
"""The resourceVersion of each object that there is, by name."""


@dataclass(slots=True)
class Ledger:
    """What one writer has been told about its own objects, and what it has asked for without being told."""

    names: list[str]
    there: State = field(default_factory=dict)
    waiting_for: tuple[str, str] | None = None
    """Name and method."""
    highest: int = 0
    acknowledged: list[tuple[str, int]] = field(default_factory=list)
    """Name and resourceVersion of each object that was written in this round."""

    def check(self, listed: State) -> None:
        """Compare with what is there now, and take over what has become of the last write."""
        unknown, method = self.waiting_for or ("", "")
        for name in self.names:
            now, before = listed.get(name), self.there.get(name)
            if now != before:
                assert name == unknown, f"{name} was acknowledged at {before} and is at {now}"
                assert (now is None) == (method == "DELETE"), f"{method} of {name} at {before} led to {now}"
                assert now is None or now > self.highest
        self.there = {name: listed[name] for name in self.names if name in listed}
        self.waiting_for = None
        self.acknowledged.clear()


class Replay:
    """A client that lists once and then follows the watch, over the ends of servers."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.version = 0
        self.seen: set[tuple[str, int]] = set()
        self.changed = asyncio.Event()

    def begin(self, listed: State, version: int) -> None:
        self.state, self.version = dict(listed), version

    def apply(self, event: dict[str, Any]) -> None:
        """Take an event: it must fit to what was there, and be newer than all before."""
        assert self.state is not None
        name, version = event["object"]["metadata"]["name"], int(event["object"]["metadata"]["resourceVersion"])
        assert version > self.version
        assert (event["type"] == "ADDED") == (name not in self.state)
        if event["type"] == "DELETED":
            del self.state[name]
        else:
            self.state[name] = version
            self.seen.add((name, version))
        self.version = version
        self.changed.set()

    async def follow(self, client: aiohttp.ClientSession) -> None:
        """Go on after what was seen last, and apply events until the server is gone; list again when the server says so."""
        with suppress(aiohttp.ClientError):
            while True:
                async with client.get(POOLS, params={"watch": "1", "resourceVersion": str(self.version)}) as response:
                    assert response.status == 200
                    async for line in response.content:
                        event = orjson.loads(line)
                        if event["type"] == "ERROR":
                            assert event["object"]["code"] == 410
                            self.begin(*await listed(client))
                            self.changed.set()
                            break
                        self.apply(event)

    async def until(self, version: int) -> None:
        """Return when everything up to this version has been applied."""
        while self.version < version:
            self.changed.clear()
            await self.changed.wait()


class Server:
    """The server of one folder, started again and again."""

    def __init__(self, template: Process) -> None:
        self._template = template
        self._pid = 0

    async def start(self) -> str:
        """Start it, and return its address when it is ready."""
        assert self._template.stdin is not None
        self._template.stdin.write(b"start\n")
        self._pid = int(await self._said())
        return (await self._said()).removeprefix("Serving on ").partition(";")[0]

    def kill(self) -> None:
        """Kill it. May be called twice."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)

    async def gone(self) -> None:
        """Return when it has ended."""
        assert await self._said() == "gone\n"
        self._pid = 0

    async def _said(self) -> str:
        assert self._template.stdout is not None
        return (await self._template.stdout.readline()).decode()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    command = (sys.executable, "-m", "tests.apiserver.crash_template", str(tmp_path))
    template = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    server = Server(template)
    yield server
    server.kill()
    assert template.stdin is not None
    template.stdin.close()
    await template.wait()


def tls(data_dir: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(data_dir / "pki" / "ca.crt"))
    context.load_cert_chain(data_dir / "pki" / "admin.crt", data_dir / "pki" / "admin.key")
    return context


def pool(name: str) -> dict[str, Any]:
    image = {"image": f"x/{random.random()}", "env": [{"name": "FILLER", "value": "x" * 2000}]}
    return {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": name}, "spec": {"template": image}}


async def ask(client: aiohttp.ClientSession, method: str, name: str, version: int) -> int:
    """Write, and return the resourceVersion that was given; 0 for a deletion."""
    path = POOLS if method == "POST" else f"{POOLS}/{name}"
    value, media_type = pool(name), "application/json"
    if method == "PUT":
        value["metadata"]["resourceVersion"] = str(version)
    elif method == "PATCH":
        value, media_type = {"spec": {"warmPool": random.randrange(1_000_000)}}, "application/merge-patch+json"
    body = None if method == "DELETE" else orjson.dumps(value)
    async with client.request(method, path, data=body, headers={"Content-Type": media_type}) as response:
        answer = orjson.loads(await response.read())
        assert response.status == (201 if method == "POST" else 200), answer
        return 0 if method == "DELETE" else int(answer["metadata"]["resourceVersion"])


async def write(client: aiohttp.ClientSession, ledger: Ledger, told: asyncio.Semaphore) -> None:
    """Write until the server is gone; each acknowledgement gives up one of `told`."""
    while True:
        name = random.choice(ledger.names)
        version = ledger.there.get(name)
        method = "POST" if version is None else random.choice(("PUT", "PUT", "PATCH", "PATCH", "DELETE"))
        ledger.waiting_for = name, method
        try:
            given = await ask(client, method, name, version or 0)
        except aiohttp.ClientError:
            return
        ledger.waiting_for = None
        if given:
            assert given > (version or 0)
            ledger.there[name] = given
            ledger.highest = max(ledger.highest, given)
            ledger.acknowledged.append((name, given))
        else:
            del ledger.there[name]
        told.release()


async def listed(client: aiohttp.ClientSession) -> tuple[State, int]:
    async with client.get(POOLS) as response:
        answer = orjson.loads(await response.read())
        assert response.status == 200
    found = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in answer["items"]}
    return found, int(answer["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(10, id="ten"),
        pytest.param(100, id="hundred", marks=pytest.mark.slow),
        pytest.param(200, id="as reported", marks=pytest.mark.load),
    ],
)
async def test_t101_every_acknowledged_write_survives_kills_of_the_server(tmp_path: Path, server: Server, rounds: int) -> None:
    ledgers = [Ledger([f"pool-{writer}-{number}" for number in range(NAMES_EACH)]) for writer in range(WRITERS)]
    replay, highest, acknowledgements = Replay(), 0, 0
    for _ in range(rounds + 1):
        url = await server.start()
        async with aiohttp.ClientSession(url, connector=Connector(ssl=tls(tmp_path))) as client, asyncio.TaskGroup() as tasks:
            state, version = await listed(client)
            assert version >= highest
            assert set(state) <= {name for ledger in ledgers for name in ledger.names}
            acknowledged = {one for ledger in ledgers for one in ledger.acknowledged}
            acknowledgements += len(acknowledged)
            for ledger in ledgers:
                ledger.check(state)
            if replay.state is None:
                replay.begin(state, version)
            assert {(name, given) for name, given in acknowledged if given <= replay.version} <= replay.seen
            tasks.create_task(replay.follow(client))
            given = await ask(client, "POST", "next", 0)
            assert given > max(highest, version)
            await replay.until(given)
            assert replay.state == state | {"next": given}
            await ask(client, "DELETE", "next", 0)

            told = asyncio.Semaphore(0)
            for ledger in ledgers:
                tasks.create_task(write(client, ledger, told))
            for _ in range(random.randrange(1, 100)):
                await told.acquire()
            server.kill()
        await server.gone()
        highest = max(replay.version, version, *(ledger.highest for ledger in ledgers))
    assert acknowledgements >= rounds
