"""Compaction in turns, and revisions that are shown with an offset."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from storage.errors import Compacted, KeyExists, RevisionConflict
from storage.etcd.compactor import Compactor
from storage.etcd.config import EtcdConfig
from storage.etcd.connection import Connection
from storage.store import KeyValue, Store
from tests.storage.etcd.conftest import OpenStore
from tests.storage.following import PODS, following
from tests.tools.etcd import Etcd

pytestmark = pytest.mark.etcd


@pytest.fixture
async def compactor(etcd: Etcd) -> AsyncIterator[Callable[[], Compactor]]:
    """Make compactors with connections of their own, which are closed in the end."""
    connections: list[Connection] = []

    def make() -> Compactor:
        connections.append(Connection(EtcdConfig(endpoints=(etcd.url,)), on_epoch=lambda: None))
        return Compactor(connections[-1], interval_seconds=300.0)

    yield make
    for connection in connections:
        await connection.close()


async def some_writes(store: Store) -> KeyValue:
    last = await store.create(PODS + str(uuid.uuid4()), b"0")
    for n in b"12345":
        last = await store.update(last.key, bytes([n]), expected_revision=last.revision)
    return last


async def test_two_who_compact_at_once_take_turns(etcd: Etcd, open_store: OpenStore, compactor: Callable[[], Compactor]) -> None:
    store = open_store(etcd)
    two = [compactor(), compactor()]
    before = await some_writes(store)
    # Nobody knows a revision yet: the first one writes down the time, the other one learns it.
    assert await asyncio.gather(*(one.take_turn() for one in two)) == [0, 0]
    await some_writes(store)
    turns = await asyncio.gather(*(one.take_turn() for one in two))
    assert sorted(turns)[0] == 0
    assert sorted(turns)[1] > before.revision
    with pytest.raises(Compacted) as caught:
        await store.list(PODS, revision=before.revision)
    assert caught.value.compact_revision == max(turns)
    # Who lost has learnt the time, so that it takes over when the other one dies.
    loser = two[turns.index(0)]
    await some_writes(store)
    assert await loser.take_turn() > max(turns)


async def test_the_turns_are_those_of_kube_apiserver(etcd: Etcd, open_store: OpenStore, compactor: Callable[[], Compactor]) -> None:
    """Same key, same meaning of its version: a kube-apiserver on the same etcd and we do not compact twice."""
    store = open_store(etcd, prefix="compact_")
    one = compactor()
    await one.take_turn()
    written = await store.get("rev_key")
    await store.update("rev_key", b"7", expected_revision=written.revision)
    assert await one.take_turn() == 0
    assert await one.take_turn() > 0


async def test_the_stores_own_task_compacts(etcd: Etcd, open_store: OpenStore) -> None:
    store = open_store(etcd, compact_seconds=0.05)
    task = asyncio.create_task(store.upkeep())
    first = await some_writes(store)

    async def until_it_is_gone() -> None:
        async with asyncio.timeout(30):
            while True:
                await store.get(first.key, revision=first.revision)
                await store.update(first.key, b"y", expected_revision=(await store.get(first.key)).revision)

    with pytest.raises(Compacted):
        await until_it_is_gone()
    await store.close()
    await task


async def items(*keys: str) -> AsyncIterator[KeyValue]:
    for key in keys:
        yield KeyValue(key, key.encode(), 7)


async def test_a_load_shows_revisions_above_the_old_ones_to_everybody(etcd: Etcd, open_store: OpenStore) -> None:
    store, replica = open_store(etcd), open_store(etcd)
    beside = open_store(etcd, prefix="/other")
    async with following(replica, after_revision=await replica.current_revision()) as watch:
        revision = await store.load(items(PODS + "a", PODS + "b"), above_revision=1_000_000)
        assert revision > 1_000_000
        assert await replica.current_revision() >= revision
        with pytest.raises(Compacted):
            await watch.batch()
    for one in (store, replica, open_store(etcd)):
        page = await one.list(PODS)
        assert [item.key for item in page.items] == [PODS + "a", PODS + "b"]
        assert 1_000_000 < page.items[0].revision < page.items[1].revision <= page.revision
        with pytest.raises(Compacted) as caught:
            await one.get(PODS + "a", revision=999_999)
        assert caught.value.compact_revision == revision
    assert await beside.current_revision() < 1_000_000


async def test_a_revision_from_before_the_load_never_matches(etcd: Etcd, open_store: OpenStore) -> None:
    """etcd takes 0 for "is not there": an expected revision at or below the offset must not become one."""
    store = open_store(etcd)
    revision = await store.load(items(PODS + "a"), above_revision=1_000_000)
    for old in (0, 7, 999_999, 1_000_000):
        with pytest.raises(RevisionConflict):
            await store.update(PODS + "a", b"x", expected_revision=old)
        with pytest.raises(RevisionConflict):
            await store.delete(PODS + "a", expected_revision=old)
        async with following(store, after_revision=old) as watch:
            with pytest.raises(Compacted):
                await watch.batch()
    with pytest.raises(KeyExists):
        await store.load(items(PODS + "b"), above_revision=0)
    assert await store.current_revision() == revision
