"""Clients at work while something happens to the servers, and the account of what came of it.

Writers create, change and delete objects, read back what they have written, and keep a ledger of what was acknowledged. Watchers list
once and follow, as informers do. At the end what is listed equals the ledger and what every watcher has come to believe.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from tests.connector import Connector
from tests.kubectl.running import pool

State = dict[str, int]
"""The resourceVersion of each object that there is, by name."""
_PACE_SECONDS = 0.01
_RETRY_SECONDS = 0.1
_LONGEST_SECONDS = 90.0
_ANSWERS = {"POST": 201, "PATCH": 200, "GET": 200, "DELETE": 200}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What clients of a server put up with, and try again."""

    codes: tuple[int, ...] = ()
    """Answers."""
    broken: bool = False
    """Connections that break, or cannot be made, and watches that end in an error."""
    relists: bool = False
    """Watches that cannot be resumed."""


NOTHING = Tolerance()
OUTAGES = Tolerance(codes=(429, 500, 502, 503, 504), broken=True, relists=True)
"""What comes of a part that was killed."""


class Refused(Exception):
    """An answer that is put up with; whether the request was carried out is not known."""


@dataclass(slots=True)
class Ledger:
    """What one writer knows about its own objects."""

    there: State = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    """Those of which a creation had to be tried again: it may have been carried out twice."""
    acknowledged: int = 0


class Traffic:
    """Clients of the server at `url`, in one namespace."""

    def __init__(self, url: str, tls: ssl.SSLContext, namespace: str, tolerance: Tolerance) -> None:
        self.path = f"/apis/clrk.apoxy.dev/v1alpha1/namespaces/{namespace}/workerpools"
        self.tolerance = tolerance
        self.counts: Counter[str] = Counter()
        """Answers by method and code, and what was put up with."""
        self.refusals: list[str] = []
        """What was put up with, in words."""
        self.ledgers: list[Ledger] = []
        self.watchers: list[Watcher] = []
        self._url, self._tls = url, tls
        self._progress = asyncio.Condition()
        self._ending = False

    @asynccontextmanager
    async def running(self, *, writers: int, watchers: int) -> AsyncIterator[Traffic]:
        """Have them work during the block, and settle accounts at its end."""
        connector = Connector(ssl=self._tls, limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
        async with aiohttp.ClientSession(self._url, connector=connector, timeout=timeout) as client:
            self.ledgers = [Ledger() for _ in range(writers)]
            self.watchers = [Watcher(self, client) for _ in range(watchers)]
            async with asyncio.TaskGroup() as following:
                for watcher in self.watchers:
                    await watcher.list()
                follows = [following.create_task(watcher.follow()) for watcher in self.watchers]
                async with asyncio.TaskGroup() as writing:
                    for number, ledger in enumerate(self.ledgers):
                        writing.create_task(self._write(client, f"w{number}-", ledger))
                    try:
                        yield self
                    finally:
                        self._ending = True
                await self._settle(client)
                for task in follows:
                    task.cancel()

    async def writes(self, count: int) -> None:
        """Return when so many more writes have been acknowledged."""
        goal = self.acknowledged + count
        async with asyncio.timeout(_LONGEST_SECONDS), self._progress:
            await self._progress.wait_for(lambda: self.acknowledged >= goal)

    @property
    def acknowledged(self) -> int:
        return sum(ledger.acknowledged for ledger in self.ledgers)

    async def ask(self, client: aiohttp.ClientSession, method: str, path: str, value: Any = None) -> tuple[int, Any]:
        """Ask once, and return code and answer.

        Raises:
            Refused: it failed in a way that is put up with.
        """
        media_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        body = None if value is None else orjson.dumps(value)
        try:
            async with client.request(method, path, data=body, headers={"Content-Type": media_type}) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            self.counts[f"{method} broken"] += 1
            if not self.tolerance.broken:
                raise AssertionError(f"{method} {path}: {error!r}") from error
            raise Refused from error
        self.counts[f"{method} {response.status}"] += 1
        if self.turned_away(response):
            self.refusals.append(f"{method} {path}: {response.status} {content.decode()}")
            raise Refused
        return response.status, orjson.loads(content) if response.content_type == "application/json" else content.decode()

    def turned_away(self, response: aiohttp.ClientResponse) -> bool:
        """Whether an answer is put up with."""
        # For a moment after its start kube-apiserver does not know our resources, and says so without a Status.
        unknown = self.tolerance.broken and response.status == 404 and response.content_type != "application/json"
        # Whoever says when to come again is asked again by clients of every language: a disk that stalls for seconds makes etcd late.
        later = response.status in (429, 503) and "Retry-After" in response.headers
        return unknown or later or response.status in self.tolerance.codes

    async def insist(self, client: aiohttp.ClientSession, method: str, path: str, value: Any = None) -> tuple[Any, bool]:
        """Ask until it is answered, and return the answer and whether it had to be asked again. What is gone may be deleted again."""
        again = False
        async with asyncio.timeout(_LONGEST_SECONDS):
            while True:
                try:
                    code, answer = await self.ask(client, method, path, value)
                except Refused:
                    again = True
                    await asyncio.sleep(_RETRY_SECONDS)
                else:
                    assert code == _ANSWERS[method] or (method, code, again) == ("DELETE", 404, True), f"{method} {path}: {code} {answer}"
                    return answer, again

    async def _write(self, client: aiohttp.ClientSession, prefix: str, ledger: Ledger) -> None:
        number = 0
        while not self._ending:
            number += 1
            value = pool("")
            value["metadata"] = {"generateName": prefix, "labels": {"number": f"{prefix}{number}"}}
            made, again = await self.insist(client, "POST", self.path, value)
            name = made["metadata"]["name"]
            if again:
                ledger.doubtful.add(f"{prefix}{number}")
            await self._acknowledge(ledger, name, made)
            await self._read_back(client, ledger, name)
            changed, _ = await self.insist(client, "PATCH", f"{self.path}/{name}", {"spec": {"replicas": number + 1}})
            assert changed["metadata"]["generation"] == 2
            await self._acknowledge(ledger, name, changed)
            await self._read_back(client, ledger, name)
            if number % 2 == 0:
                await self.insist(client, "DELETE", f"{self.path}/{name}")
                await self._acknowledge(ledger, name, None)
            await asyncio.sleep(_PACE_SECONDS)

    async def _acknowledge(self, ledger: Ledger, name: str, value: Any) -> None:
        async with self._progress:
            ledger.acknowledged += 1
            if value is None:
                del ledger.there[name]
                ledger.gone.add(name)
            else:
                ledger.there[name] = version_of(value)
            self._progress.notify_all()

    async def _read_back(self, client: aiohttp.ClientSession, ledger: Ledger, name: str) -> None:
        """Whichever replica is asked: it knows what another one has acknowledged."""
        read, _ = await self.insist(client, "GET", f"{self.path}/{name}")
        assert version_of(read) == ledger.there[name], f"{name} was read as of {version_of(read)} after {ledger.there[name]}"

    async def _settle(self, client: aiohttp.ClientSession) -> None:
        marker, _ = await self.insist(client, "POST", self.path, pool(f"settled-{self.acknowledged}"))
        listed, _ = await self.insist(client, "GET", self.path)
        found = {item["metadata"]["name"]: item for item in listed["items"]}
        state = {name: version_of(item) for name, item in found.items()}
        known = {marker["metadata"]["name"]: version_of(marker)}
        for ledger in self.ledgers:
            known |= ledger.there
        unknown = {found[name]["metadata"]["labels"]["number"] for name in set(state) - set(known)}
        # Who is turned away was not served; only a connection that broke leaves open what became of a request.
        doubtful = set().union(*(ledger.doubtful for ledger in self.ledgers)) if self.tolerance.broken else set()
        assert unknown <= doubtful, f"nobody was told of {unknown - doubtful}"
        assert {name: state.get(name) for name in known} == known
        async with asyncio.timeout(_LONGEST_SECONDS):
            for watcher in self.watchers:
                await watcher.until(version_of(marker))
                assert watcher.state == state


class Watcher:
    """A client that lists once and follows, whoever is behind the address; it lists again only when its history is gone."""

    def __init__(self, traffic: Traffic, client: aiohttp.ClientSession) -> None:
        self.state: State = {}
        self.version = 0
        self._traffic = traffic
        self._client = client
        self._moved = asyncio.Event()

    async def list(self) -> None:
        """Begin, or begin anew."""
        listed, _ = await self._traffic.insist(self._client, "GET", self._traffic.path)
        self.state = {item["metadata"]["name"]: version_of(item) for item in listed["items"]}
        self.version = version_of(listed)
        self._moved.set()

    async def follow(self) -> None:
        """Watch after what was seen last, again and again."""
        traffic = self._traffic
        while True:
            query = {"watch": "1", "resourceVersion": str(self.version), "allowWatchBookmarks": "true", "timeoutSeconds": "600"}
            try:
                async with self._client.get(traffic.path, params=query) as response:
                    traffic.counts[f"WATCH {response.status}"] += 1
                    if response.status == 200:
                        await self._take(response)
                        continue
                    assert traffic.turned_away(response), f"watch: {response.status} {await response.text()}"
            except (aiohttp.ClientError, TimeoutError) as error:
                traffic.counts["WATCH broken"] += 1
                if not traffic.tolerance.broken:
                    raise AssertionError(f"a watch broke: {error!r}") from error
            await asyncio.sleep(_RETRY_SECONDS)

    async def _take(self, response: aiohttp.ClientResponse) -> None:
        async for line in response.content:
            event = orjson.loads(line)
            if event["type"] == "ERROR":
                self._traffic.counts[f"WATCH error {event['object'].get('code')}"] += 1
                assert self._traffic.tolerance.relists, event
                await self.list()
                return
            self._apply(event)

    def _apply(self, event: dict[str, Any]) -> None:
        """Take an event: it must fit to what was there, and be newer than all before."""
        version = version_of(event["object"])
        if event["type"] == "BOOKMARK":
            assert version >= self.version
        else:
            name = event["object"]["metadata"]["name"]
            assert version > self.version, f"{event['type']} {name} at {version} after {self.version}"
            assert (event["type"] == "ADDED") == (name not in self.state), event
            if event["type"] == "DELETED":
                del self.state[name]
            else:
                self.state[name] = version
        self.version = version
        self._moved.set()

    async def until(self, version: int) -> None:
        """Return when everything up to this version is known."""
        while self.version < version:
            self._moved.clear()
            await self._moved.wait()


def version_of(value: dict[str, Any]) -> int:
    """The resourceVersion of an object or a list, which is a number here."""
    return int(value["metadata"]["resourceVersion"])
