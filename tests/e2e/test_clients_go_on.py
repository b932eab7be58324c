"""T109: clients, above all in Python, on a quiet kind; another one takes writes, and history is short. None loops, none falls silent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from apiserver.config import Config, TLSConfig
from apiserver.registry.watching import WatchLimits
from storage.cache import CacheLimits
from storage.history import RingLimits
from storage.memory import MemoryStore
from storage.window import HistoryLimits
from tests.apiserver.process import Serving
from tests.connector import Connector
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.aggregated import SERVER_USER, serving
from tests.e2e.clients.cuttable import Cuttable
from tests.e2e.clients.running import Program, command_of, kubeconfig_at, running
from tests.e2e.installed import OURS, registration, until
from tests.kubectl.running import pool, worker

RESUMING = (
    "python generated kubernetes",
    "python generated kubernetes.aio",
    "python generated kubernetes_asyncio",
    "python dynamic",
)
"""They go on after the last bookmark. kr8s asks for none and lists again; kopf does not say what it does."""
OTHERS = ("go informer", "java", "javascript")
"""Informers of other languages, which are here for the end: they know then what there is."""
KR8S, KOPF = "python kr8s_client", "python operator_ observe"
POOLS = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/busy/workerpools"
_WRITES_PER_SECOND = 50
_CHANGES = 100
"""So many are kept in memory: all that happen but for those while the line is away."""


@dataclass(frozen=True, slots=True)
class Course:
    """How long it all takes."""

    history_seconds: float
    bookmark_seconds: float
    bookmarks: int
    """So many are waited for before something happens: longer than history is kept."""


SHORT = Course(history_seconds=5.0, bookmark_seconds=0.5, bookmarks=16)
FULL = Course(history_seconds=120.0, bookmark_seconds=60.0, bookmarks=12)


@pytest.mark.parametrize(
    "course",
    [
        pytest.param(SHORT, id="short", marks=[pytest.mark.slow, pytest.mark.e2e]),
        pytest.param(FULL, id="half an hour", marks=pytest.mark.load),
    ],
)
async def test_t109_clients_go_on_whatever_happens_to_their_connections(plane: ControlPlane, tmp_path: Path, course: Course) -> None:
    async with _forgetful(plane, tmp_path / "clrk", course) as server, _busy(plane, server):
        await asyncio.to_thread(_live_through, plane, server, tmp_path, course)


@asynccontextmanager
async def _forgetful(plane: ControlPlane, folder: Path, course: Course) -> AsyncIterator[Serving]:
    """A server that keeps history for a short time, behind kube-apiserver; who talks to it directly is the administrator."""
    base = Config(
        tls=TLSConfig(names=("clrk-apiserver.clrk-system.svc",)),
        cache=CacheLimits(compaction_seconds=course.bookmark_seconds, history=RingLimits(changes=_CHANGES)),
        watch=WatchLimits(bookmark_seconds=course.bookmark_seconds),
    )
    store = MemoryStore(history=HistoryLimits(seconds=course.history_seconds))
    async with serving(plane, folder, base=base, store=store) as server:
        here = server.listening
        registered = registration(f"--data-dir={folder}", "--external-name=localhost", f"--port={here.port}", f"--user={SERVER_USER}")
        await asyncio.to_thread(plane.kubectl, "apply", "--server-side", "-f", "-", stdin=registered.encode())
        await server.kubectl("wait", "--for=condition=Available", "--timeout=60s", *OURS)
        try:
            yield Serving(here.url, plane.kubeconfig, os.getpid(), here.tls(here.pki.admin))
        finally:
            await server.kubectl("delete", *OURS)


@asynccontextmanager
async def _busy(plane: ControlPlane, server: Serving) -> AsyncIterator[None]:
    """Another kind takes writes meanwhile."""

    async def write(client: aiohttp.ClientSession) -> None:
        for number in range(10**9):
            value = {"metadata": {"labels": {"number": str(number)}}}
            async with client.patch(f"{POOLS}/x", json=value, headers={"Content-Type": "application/merge-patch+json"}) as response:
                assert response.status == 200
            await asyncio.sleep(1 / _WRITES_PER_SECOND)

    await asyncio.to_thread(plane.kubectl, "create", "namespace", "busy")
    async with aiohttp.ClientSession(server.url, connector=Connector(ssl=server.tls)) as client:
        async with client.post(POOLS, json=pool("x")) as response:
            assert response.status == 201
        writing = asyncio.create_task(write(client))
        try:
            yield
            assert not writing.done()
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace with one client that looks at it."""

    server: Serving
    namespace: str
    program: Program

    def ask(self, method: str, name: str = "", value: Any = None) -> Any:
        path = f"/apis/worker.saved.sh/v1alpha1/namespaces/{self.namespace}/localworkers{name}"
        media_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        code, answer = self.server.request(method, path, value, media_type=media_type)
        assert code < 300, answer
        return answer

    def forgotten(self, version: str) -> bool:
        """Whether nothing can be said any more about what was there at this version."""
        path = f"/apis/worker.saved.sh/v1alpha1/namespaces/{self.namespace}/localworkers"
        code, _ = self.server.request("GET", f"{path}?resourceVersion={version}&resourceVersionMatch=Exact&limit=1")
        return code == 410

    def objects(self) -> dict[str, Any]:
        return {item["metadata"]["name"]: item for item in self.ask("GET")["items"]}


def _live_through(plane: ControlPlane, server: Serving, folder: Path, course: Course) -> None:
    with ExitStack() as stack:
        line = stack.enter_context(Cuttable(urlsplit(plane.url).port or 0))
        reached = kubeconfig_at(plane.kubeconfig, line.port, folder / "reached")
        places = {}
        for number, client in enumerate((*RESUMING, KR8S, KOPF, *OTHERS)):
            namespace = f"{course.bookmarks}-{number}"
            plane.kubectl("create", "namespace", namespace)
            program = stack.enter_context(running(folder / str(number), reached, *command_of(client), namespace))
            places[client] = Place(server, namespace, program)
        _begin(places)
        _grow_old(places, course)
        _cut(places, line)
        _grow_old(places, course)
        _be_away(places, line, course)
        _end(places)


def _begin(places: dict[str, Place]) -> None:
    for client, place in places.items():
        place.ask("POST", value=worker("x"))
        if client == KOPF:
            place.program.until("event", where=lambda line: line["object"]["metadata"]["name"] == "x")
        else:
            place.program.until("listed")


def _grow_old(places: dict[str, Place], course: Course) -> None:
    """Wait until what the clients have listed is history; nothing happens to what they look at."""
    begin = {client: len(places[client].program.all("event", type="BOOKMARK")) for client in RESUMING}
    for client in RESUMING:
        bookmarks = begin[client] + course.bookmarks
        places[client].program.until("event", type="BOOKMARK", times=bookmarks, seconds=60 + 2 * course.bookmarks * course.bookmark_seconds)
    for client in (*RESUMING, KR8S):
        listed = places[client].program.all("listed")[-1]
        assert places[client].forgotten(listed["resourceVersion"])


def _cut(places: dict[str, Place], line: Cuttable) -> None:
    """Who has had bookmarks goes on after the last one, though the list from which it began is history."""
    assert line.cut() > 0
    for place in places.values():
        place.ask("POST", value=worker("a"))
    for client in (*RESUMING, KOPF, *OTHERS):
        places[client].program.event("ADDED", "a")
    for client in RESUMING:
        assert len(places[client].program.all("listed")) == 1
        assert places[client].program.all("expired") == []
    assert "a" in places[KR8S].program.until("listed", times=2)["objects"] or places[KR8S].program.event("ADDED", "a")


def _be_away(places: dict[str, Place], line: Cuttable, course: Course) -> None:
    """Who has missed too much is told so, and lists again."""
    with line.away():
        for place in places.values():
            place.ask("DELETE", "/a")
            place.ask("POST", value=worker("b"))
            for number in range(1 + _CHANGES // len(places)):
                place.ask("PATCH", "/x", {"spec": {"image": str(number)}})
        version = places[KR8S].ask("GET")["metadata"]["resourceVersion"]
        until(lambda: places[KR8S].forgotten(version), seconds=60 + 2 * course.history_seconds)
    for client in RESUMING:
        places[client].program.until("expired")
        again = places[client].program.until("listed", times=2)["objects"]
        assert "a" not in again
        assert "b" in again
    assert "b" in places[KR8S].program.until("listed", times=3)["objects"]
    places[KOPF].program.until("event", where=lambda line: line["object"]["metadata"]["name"] == "b")
    for client in OTHERS:
        places[client].program.event("ADDED", "b")


def _end(places: dict[str, Place]) -> None:
    for place in places.values():
        place.ask("PATCH", "/b", {"spec": {"image": "z"}})
        place.program.event("MODIFIED", "b")
        place.ask("POST", value=worker("last"))
    for client, place in places.items():
        if client == KOPF:
            place.program.event("ADDED", "last")
            seen = {line["object"]["metadata"]["name"]: line["object"]["metadata"] for line in place.program.all("event")}
            assert {name: seen[name] for name in place.objects()} == {name: value["metadata"] for name, value in place.objects().items()}
            assert "Traceback" not in place.program.story()
        else:
            place.program.end()
            assert place.program.until("end")["objects"] == place.objects()
            # One attempt after the other would show as many of them.
            assert len(place.program.all("expired")) <= 1
