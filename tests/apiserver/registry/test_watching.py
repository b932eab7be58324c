"""Watchers with connections that do not take what they are sent: nobody is waited for, nothing is lost, memory is bounded."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from apiserver.meta.options import ListOptions
from apiserver.meta.resource import describe
from apiserver.registry.forms import PLAIN
from apiserver.registry.frames import Framing
from apiserver.registry.resource_store import ResourceStore
from apiserver.registry.selection import select
from apiserver.registry.watching import Outlet, Watches, WatchLimits
from storage.cache import CacheLimits
from storage.history import RingLimits
from storage.memory import MemoryStore
from tests.apiserver.gadgets import Gadget

KIND = describe(Gadget)
WATCH_LIST = ListOptions(watch=True, send_initial_events=True, resource_version_match="NotOlderThan", allow_watch_bookmarks=True)


class Pipe(asyncio.WriteTransport):
    """A connection whose other end reads only when it is told to."""

    def __init__(self, *, stuck: bool = False) -> None:
        super().__init__()
        self.stuck = stuck
        self.unsent: list[bytes] = []
        self.received = b""
        self.largest = 0
        self.aborted = False
        self.arrived = asyncio.Event()
        self.written = asyncio.Event()
        self._drained = asyncio.Event()

    def write(self, data: Any) -> None:
        self.unsent.append(bytes(data))
        self.written.set()
        self.largest = max(self.largest, self.get_write_buffer_size())
        if not self.stuck:
            self.flush()

    def flush(self) -> None:
        self.received += b"".join(self.unsent)
        self.unsent.clear()
        self._drained.set()
        self.arrived.set()

    def release(self) -> None:
        self.stuck = False
        self.flush()

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.unsent))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True
        self._drained.set()

    async def drain(self) -> None:
        while self.unsent and not self.aborted:
            self._drained.clear()
            await self._drained.wait()

    def events(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in self.received.splitlines()]

    async def wait_for(self, count: int) -> list[dict[str, Any]]:
        async with asyncio.timeout(10):
            while len(events := self.events()) < count:
                self.arrived.clear()
                await self.arrived.wait()
        return events


class World:
    """One resource, and those who watch it."""

    def __init__(self, resource: ResourceStore, watches: Watches) -> None:
        self.resource = resource
        self.watches = watches
        self.tasks: list[asyncio.Task[None]] = []

    def watch(
        self, pipe: Pipe, options: ListOptions = WATCH_LIST, *, timeout_seconds: float = 60.0, framing: Framing = "plain"
    ) -> asyncio.Task[None]:
        selection = select(KIND, "", "", options)
        outlet = Outlet(pipe, pipe.drain, framing)
        serving = self.watches.serve(selection, PLAIN, options, outlet, timeout_seconds=timeout_seconds)
        self.tasks.append(asyncio.create_task(serving))
        return self.tasks[-1]

    async def put(self, name: str, *, note: str = "") -> None:
        value = {
            "apiVersion": "example.dev/v1",
            "kind": "Gadget",
            "metadata": {"name": name, "namespace": "ns1", "uid": "u"},
            "spec": {"replicas": 1, "note": note},
        }
        codec, cache = self.resource.codec, self.resource.cache
        key = codec.key("ns1", name)
        encoded = codec.encode(value)
        current = cache.peek(key)
        if current is None:
            await cache.create(key, encoded.value)
        else:
            await cache.update(key, encoded.value, expected_revision=current.revision)


@asynccontextmanager
async def world(limits: WatchLimits, ring: RingLimits | None = None) -> AsyncIterator[World]:
    store = MemoryStore()
    resource = ResourceStore(KIND, store, limits=CacheLimits(history=ring or RingLimits()))
    following = asyncio.create_task(resource.run())
    await resource.cache.wait_ready()
    made = World(resource, Watches(resource, limits))
    try:
        yield made
    finally:
        made.watches.close()
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)
        await resource.cache.close()
        await following
        await store.close()


SMALL = WatchLimits(buffer_bytes=4096, piece_bytes=1024, rest_ratio=0)


def revisions(events: list[dict[str, Any]]) -> list[int]:
    return [int(event["object"]["metadata"]["resourceVersion"]) for event in events if event["type"] != "BOOKMARK"]


async def test_one_who_does_not_read_holds_nobody_up_and_misses_nothing() -> None:
    """T115."""
    async with world(SMALL) as here:
        quick, slow = Pipe(), Pipe()
        here.watch(quick)
        here.watch(slow)
        await quick.wait_for(1)
        await slow.wait_for(1)
        slow.stuck = True
        for number in range(200):
            await here.put(f"g{number % 10}", note="x" * 500)
        seen = await quick.wait_for(201)
        assert len(slow.events()) < 201
        assert slow.largest < SMALL.buffer_bytes + 2 * 2048
        assert here.watches.fallen_behind >= 1
        slow.release()
        assert revisions(await slow.wait_for(201)) == revisions(seen)
        await here.put("last")
        assert (await slow.wait_for(202))[-1] == (await quick.wait_for(202))[-1]


async def test_a_compressed_stream_stays_whole_for_one_who_falls_behind() -> None:
    """Its end tells length and checksum of exactly what this client was sent, by the group and by itself."""
    async with world(SMALL) as here:
        slow, quick = Pipe(), Pipe()
        for number in range(10):
            await here.put(f"before{number}", note=f"{number}" * 300)
        serving = [here.watch(pipe, framing="gzip", timeout_seconds=3) for pipe in (slow, quick)]
        for number in range(100):
            slow.stuck = number % 20 > 5
            await here.put(f"g{number}", note=random.Random(number).randbytes(500).hex())
            if not slow.stuck:
                slow.flush()
                await asyncio.sleep(0)
        slow.release()
        await asyncio.gather(*serving)
        assert here.watches.fallen_behind
        for pipe in (slow, quick):
            lines = gzip.decompress(unchunked(pipe.received)).splitlines()
            types = Counter(orjson.loads(line)["type"] for line in lines)
            assert (types["ADDED"], types["BOOKMARK"]) == (110, 2)


def unchunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body, data = body + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return body


async def test_one_who_is_too_far_behind_is_told_so() -> None:
    """T115, T056: never silence."""
    async with world(SMALL, RingLimits(changes=20)) as here:
        slow = Pipe()
        serving = here.watch(slow)
        await slow.wait_for(1)
        slow.stuck = True
        for number in range(200):
            await here.put(f"g{number % 10}", note="x" * 500)
        slow.release()
        async with asyncio.timeout(10):
            await serving
        last = slow.events()[-1]
        assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_one_who_takes_nothing_at_all_is_cut() -> None:
    """T115."""
    async with world(WatchLimits(buffer_bytes=4096, piece_bytes=1024, stall_seconds=0.05)) as here:
        slow = Pipe()
        serving = here.watch(slow)
        await slow.wait_for(1)
        slow.stuck = True
        for number in range(50):
            await here.put(f"g{number}", note="x" * 500)
        async with asyncio.timeout(10):
            await serving
        assert slow.aborted
        assert here.watches.cut == 1
        assert len(here.watches) == 0


async def test_initial_events_wait_for_the_reader_and_what_changes_meanwhile_follows() -> None:
    """T048: in pieces; each object once, then the bookmark, then the changes."""
    async with world(SMALL) as here:
        for number in range(300):
            await here.put(f"g{number:03d}", note="x" * 300)
        slow = Pipe(stuck=True)
        here.watch(slow)
        await slow.written.wait()
        assert slow.largest < SMALL.buffer_bytes
        for number in range(5):
            await here.put(f"g{number:03d}", note="changed")
        slow.release()
        events = await slow.wait_for(306)
    assert [event["type"] for event in events] == ["ADDED"] * 300 + ["BOOKMARK"] + ["MODIFIED"] * 5
    bookmark = events[300]["object"]["metadata"]
    assert bookmark["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert all(event["object"]["spec"]["note"] == "x" * 300 for event in events[:300])
    assert revisions(events[301:])[0] > int(bookmark["resourceVersion"])


async def test_one_who_comes_while_events_are_on_their_way_sees_each_once() -> None:
    """T116: members come and go between the making of an event and its writing."""
    async with world(WatchLimits(step_seconds=0, rest_ratio=0)) as here:
        pipes = [Pipe() for _ in range(20)]
        for number, pipe in enumerate(pipes):
            here.watch(pipe)
            await here.put(f"g{number % 3}")
        streams = [await pipe.wait_for(1) for pipe in pipes]
        await here.put("last")
        for pipe in pipes:
            async with asyncio.timeout(10):
                while pipe.events()[-1]["object"]["metadata"].get("name") != "last":
                    pipe.arrived.clear()
                    await pipe.arrived.wait()
        streams = [pipe.events() for pipe in pipes]
    everything = revisions(streams[0])
    for stream in streams:
        end = next(at for at, event in enumerate(stream) if event["type"] == "BOOKMARK")
        begin = int(stream[end]["object"]["metadata"]["resourceVersion"])
        assert revisions(stream[end + 1 :]) == [revision for revision in everything if revision > begin]


async def test_bookmarks_come_now_and_then_and_before_the_end() -> None:
    """T048, T071."""
    async with world(WatchLimits(bookmark_seconds=0.02)) as here:
        await here.put("a")
        pipe = Pipe()
        serving = here.watch(pipe, timeout_seconds=60)
        events = await pipe.wait_for(4)
        assert [event["type"] for event in events] == ["ADDED", "BOOKMARK", "BOOKMARK", "BOOKMARK"]
        assert "annotations" not in events[2]["object"]["metadata"]
        assert int(events[2]["object"]["metadata"]["resourceVersion"]) == here.resource.cache.revision
        here.watches.close()
        await serving


async def test_no_bookmark_overtakes_the_events_before_it() -> None:
    async with world(WatchLimits(step_seconds=0, rest_ratio=0, bookmark_seconds=0.003)) as here:
        pipes = [Pipe() for _ in range(20)]
        for pipe in pipes:
            here.watch(pipe)
            await pipe.wait_for(1)
        for number in range(200):
            await here.put(f"g{number % 3}")
        await here.put("last")
        for pipe in pipes:
            async with asyncio.timeout(10):
                while b'"last"' not in pipe.received:
                    pipe.arrived.clear()
                    await pipe.arrived.wait()
        streams = [pipe.events() for pipe in pipes]
    for stream in streams:
        seen = [int(event["object"]["metadata"]["resourceVersion"]) for event in stream]
        assert seen == sorted(seen)


async def test_group_goes_with_its_last_watcher() -> None:
    """T116: what watchers cost is given back."""
    async with world(SMALL) as here:
        pipes = [Pipe(), Pipe()]
        tasks = [here.watch(pipe) for pipe in pipes]
        for pipe in pipes:
            await pipe.wait_for(1)
        assert len(here.watches) == 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(here.watches) == 0
        await here.put("a")
        assert all(len(pipe.events()) == 1 for pipe in pipes)


@pytest.mark.parametrize("members", [0, 1, 1000])
async def test_event_is_made_once_for_all(members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """T116."""
    from apiserver.registry.frames import Frames

    made = 0
    original = Frames.event

    def counted(self: Frames, *arguments: Any, **options: Any) -> bytes:
        nonlocal made
        made += 1
        return original(self, *arguments, **options)

    async with world(SMALL) as here:
        pipes = [Pipe() for _ in range(members)]
        for pipe in pipes:
            here.watch(pipe)
        for pipe in pipes:
            await pipe.wait_for(1)
        monkeypatch.setattr(Frames, "event", counted)
        for number in range(10):
            await here.put(f"g{number}")
        for pipe in pipes:
            await pipe.wait_for(11)
    assert made == (10 if members else 0)


async def test_t122_the_end_waits_for_what_is_on_its_way_and_comes_with_a_bookmark_behind_it() -> None:
    """Also while writes are held back after busy ones, and for one who had fallen behind."""
    async with world(WatchLimits(buffer_bytes=4096, piece_bytes=1024, rest_ratio=1e9)) as here:
        quick, slow = Pipe(), Pipe()
        serving = [here.watch(quick), here.watch(slow)]
        await quick.wait_for(1)
        await slow.wait_for(1)
        slow.stuck = True
        for number in range(20):
            await here.put(f"g{number}", note="x" * 1000)
        here.watches.close()
        after = here.resource.cache.revision
        await here.put("too-late")
        slow.release()
        await asyncio.gather(*serving)
        for pipe in (quick, slow):
            events = pipe.events()
            last = int(events[-1]["object"]["metadata"]["resourceVersion"])
            assert events[-1]["type"] == "BOOKMARK"
            assert revisions(events) == list(range(revisions(events)[0], last + 1))
        assert int(quick.events()[-1]["object"]["metadata"]["resourceVersion"]) == after
