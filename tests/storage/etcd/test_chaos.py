"""Three members, one after the other killed or silenced under load: nothing acknowledged is lost, no event is missing or comes twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from storage.errors import KeyExists, KeyNotFound, RevisionConflict, Unavailable, Unknown
from storage.etcd import EtcdStore
from tests.storage.etcd.conftest import OpenStore
from tests.storage.following import PODS, Following, following, state_at
from tests.tools.etcd import Etcd

pytestmark = [pytest.mark.etcd, pytest.mark.slow]


class Reader:
    """Reads a watch until the revision that `end` will name."""

    def __init__(self, watch: Following, end: asyncio.Future[int]) -> None:
        self._watch = watch
        self._end = end
        self._moved = asyncio.Event()

    async def run(self) -> None:
        while not self._end.done() or self._watch.position < self._end.result():
            await self._watch.batch()
            self._moved.set()

    async def more_events(self, count: int) -> None:
        target = len(self._watch.events) + count
        async with asyncio.timeout(60):
            while len(self._watch.events) < target:
                self._moved.clear()
                await self._moved.wait()


class Writer:
    """Writes one key again and again, and keeps what was acknowledged."""

    def __init__(self, store: EtcdStore, key: str) -> None:
        self._store = store
        self.key = key
        self.acknowledged: list[tuple[int, bytes | None]] = []

    async def run(self, stop: asyncio.Event) -> None:
        revision, n = 0, 0
        while not stop.is_set():
            n += 1
            value = b"%d" % n
            try:
                if not revision:
                    revision = (await self._store.create(self.key, value)).revision
                    self.acknowledged.append((revision, value))
                elif n % 7:
                    revision = (await self._store.update(self.key, value, expected_revision=revision)).revision
                    self.acknowledged.append((revision, value))
                else:
                    gone = await self._store.delete(self.key, expected_revision=revision)
                    self.acknowledged.append((gone.revision, None))
                    revision = 0
            except (KeyExists, RevisionConflict) as error:
                revision = error.current.revision
            except KeyNotFound:
                revision = 0
            except (Unavailable, Unknown):
                await asyncio.sleep(0.02)


async def test_watches_and_acknowledged_writes_are_whole_while_members_fail(make_etcd: Callable[..., Etcd], open_store: OpenStore) -> None:
    members = [make_etcd(name=name) for name in ("m1", "m2", "m3")]
    cluster = ",".join(f"{member.name}={member.peer_url}" for member in members)
    for member in members:
        member.launch(cluster=cluster)
    for member in members:
        member.wait_ready()
    options = {"keepalive_seconds": 1.0, "keepalive_timeout_seconds": 0.5, "request_timeout_seconds": 3.0}
    stores = [open_store(*members[n:], *members[:n], **options) for n in range(3)]
    start = await stores[0].current_revision()
    writers = [Writer(store, f"{PODS}{n}-{m}") for n, store in enumerate(stores) for m in range(4)]
    stop, end = asyncio.Event(), asyncio.get_running_loop().create_future()
    async with following(stores[0], after_revision=start) as one, following(stores[1], after_revision=start) as two:
        readers = [Reader(watch, end) for watch in (one, two)]
        reading = [asyncio.create_task(reader.run()) for reader in readers]
        writing = [asyncio.create_task(writer.run(stop)) for writer in writers]
        for member in (*members, members[0]):
            await readers[0].more_events(300)
            member.stop()
            await readers[0].more_events(300)
            await asyncio.to_thread(member.start_in, cluster)
            await readers[0].more_events(300)
            member.pause()
            await readers[0].more_events(300)
            member.resume()
        stop.set()
        await asyncio.gather(*writing)
        last = await stores[0].create(PODS + "last", b"x")
        end.set_result(last.revision)
        await asyncio.gather(*reading)
        assert one.events == two.events
        written = {(event.revision, event.key, event.value) for event in one.events}
        for writer in writers:
            assert {(revision, writer.key, value) for revision, value in writer.acknowledged} <= written
        assert (await stores[2].list(PODS)).items == state_at(one.events, last.revision)
