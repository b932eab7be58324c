"""etcd away, restarted, emptied, or partly down: operations fail at once and watches go on, with no gap and nothing twice."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable

import pytest

from storage.errors import Compacted, StoreError, Unavailable, Unknown, Unsupported
from storage.etcd import EtcdConfig, EtcdStore
from storage.store import KeyValue
from tests.storage.etcd.conftest import OpenStore
from tests.storage.following import PODS, following
from tests.tools.etcd import Etcd

pytestmark = pytest.mark.etcd


async def create_in_the_end(store: EtcdStore, key: str, value: bytes = b"x") -> KeyValue:
    """Create a key, trying again as a client would for as long as etcd is away."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await store.create(key, value)
            except (Unavailable, Unknown):
                await asyncio.sleep(0.02)


async def test_an_etcd_that_is_not_there_yet_is_unavailable_at_once_and_found_when_it_comes(
    make_etcd: Callable[..., Etcd], open_store: OpenStore
) -> None:
    etcd = make_etcd()
    store = open_store(etcd)
    for operation in (store.current_revision(), store.create(PODS + "a", b"x"), store.get(PODS + "a"), store.list(PODS)):
        with pytest.raises(Unavailable, match=f"cannot be reached: {etcd.url}"):
            await operation
    async with following(store, after_revision=0) as watch:
        reading = asyncio.create_task(watch.until_events(1))
        etcd.start()
        created = await create_in_the_end(store, PODS + "a")
        assert [event.revision for event in await reading] == [created.revision]


async def test_a_watch_goes_on_over_restarts_of_etcd(etcd: Etcd, open_store: OpenStore) -> None:
    store = open_store(etcd)
    async with following(store, after_revision=await store.current_revision()) as watch:
        made = []
        for n in range(3):
            for m in range(10):
                made.append(await create_in_the_end(store, f"{PODS}{n}-{m}"))
            if n == 1:
                await watch.until_events(15)
            etcd.stop()
            etcd.start()
        last = await create_in_the_end(store, PODS + "last")
        events = await watch.until_events(31)
        assert [(event.key, event.revision) for event in events] == [(item.key, item.revision) for item in [*made, last]]


async def test_what_is_written_elsewhere_while_the_connection_is_down_is_delivered(etcd: Etcd, open_store: OpenStore) -> None:
    reader, writer = open_store(etcd), open_store(etcd)
    async with following(reader, after_revision=await reader.current_revision()) as watch:
        await create_in_the_end(writer, PODS + "a")
        await watch.until_events(1)
        etcd.stop()
        etcd.start()
        made = [await create_in_the_end(writer, f"{PODS}b{n}") for n in range(100)]
        events = await watch.until_events(101)
        assert [event.revision for event in events[1:]] == [item.revision for item in made]


async def test_an_etcd_that_went_back_ends_watches_with_compacted(etcd: Etcd, open_store: OpenStore) -> None:
    """A restored backup: what readers hold is of another history, whatever its numbers are."""
    store = open_store(etcd)
    async with following(store, after_revision=await store.current_revision()) as watch:
        for n in range(10):
            await store.create(f"{PODS}{n}", b"x")
        await watch.until_events(10)
        etcd.stop()
        shutil.rmtree(etcd.data)
        etcd.start()
        with pytest.raises(Compacted):
            await watch.batch()
    assert (await store.list(PODS)).items == []
    async with following(store, after_revision=await store.current_revision()) as watch:
        created = await store.create(PODS + "again", b"x")
        assert [event.revision for event in await watch.until_events(1)] == [created.revision]


async def test_three_members_serve_with_the_first_one_down_and_after_the_loss_of_the_one_in_use(
    make_etcd: Callable[..., Etcd], open_store: OpenStore
) -> None:
    members = [make_etcd(name=name, flags=("--initial-cluster-token=three",)) for name in ("m1", "m2", "m3")]
    cluster = ",".join(f"{member.name}={member.peer_url}" for member in members)
    for member in members[1:]:
        member.launch(cluster=cluster)
    for member in members[1:]:
        member.wait_ready()
    store = open_store(*members)
    async with following(store, after_revision=await store.current_revision()) as watch:
        before = [await create_in_the_end(store, f"{PODS}before{n}") for n in range(10)]
        await watch.until_events(5)
        members[0].start_in(cluster)
        members[1].stop()
        after = [await create_in_the_end(store, f"{PODS}after{n}") for n in range(10)]
        events = await watch.until_events(20)
        assert [event.revision for event in events] == [item.revision for item in [*before, *after]]


async def test_a_member_that_falls_silent_is_left_for_another(make_etcd: Callable[..., Etcd], open_store: OpenStore) -> None:
    """As when packets are dropped: nothing is refused, only keepalive notices."""
    members = [make_etcd(name=name, flags=("--initial-cluster-token=three",)) for name in ("m1", "m2", "m3")]
    cluster = ",".join(f"{member.name}={member.peer_url}" for member in members)
    for member in members:
        member.launch(cluster=cluster)
    for member in members:
        member.wait_ready()
    store = open_store(*members, keepalive_seconds=1.0, keepalive_timeout_seconds=0.5)
    async with following(store, after_revision=await store.current_revision()) as watch:
        await create_in_the_end(store, PODS + "a")
        await watch.until_events(1)
        members[0].pause()
        with pytest.raises(StoreError):
            await store.create(PODS + "b", b"x")
        created = await create_in_the_end(store, PODS + "c")
        await watch.until_revision(created.revision)
        assert created.key in [event.key for event in watch.events]
        members[0].resume()


@pytest.mark.parametrize("too_early", [pytest.param(False, id="asked in time"), pytest.param(True, id="asked too early")])
async def test_progress_is_had_from_an_etcd_that_keeps_to_itself_what_it_is_asked_too_early(
    make_etcd: Callable[..., Etcd], open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, too_early: bool
) -> None:
    """A watch that has to catch up in a quiet prefix gets no event, and with none this etcd never answers; so the watch begins anew."""
    if too_early:
        monkeypatch.setattr("storage.etcd.watch._CATCH_UP_SECONDS", 0.01)
        monkeypatch.setattr("storage.etcd.watch._ANSWER_SECONDS", 0.05)
    etcd = make_etcd(program="etcd-3.5.12")
    etcd.start()
    store = open_store(etcd, progress_seconds=0.01)
    for n in range(5):
        before = await store.current_revision()
        elsewhere = await store.create(f"/registry/other/{n}", b"x")
        async with following(store, after_revision=before) as watch:
            await watch.until_progress(elsewhere.revision)
            created = await store.create(f"{PODS}{n}", b"x")
            assert [event.revision for event in await watch.until_events(1)] == [created.revision]


async def test_a_member_that_is_too_old_is_passed_over_for_one_that_is_not(
    make_etcd: Callable[..., Etcd], open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while a cluster is brought to a newer version; alone, it is told what is wrong with it."""
    monkeypatch.setattr("storage.etcd.link._ORDERED_SINCE", {(3, 5): 13})
    old, new = make_etcd(name="old", program="etcd-3.5.12"), make_etcd(name="new")
    for etcd in (old, new):
        etcd.start()
    await open_store(old, new).current_revision()
    with pytest.raises(Unsupported, match=r"cannot be used.*3\.5\.12"):
        await open_store(old).current_revision()
    with pytest.raises(Unsupported, match=r"3\.5\.12"):
        await EtcdStore.open(EtcdConfig(endpoints=(old.url,)))
