"""An etcd whose space is used up: writes are refused with what to do about it, the rest goes on, and so do writes once there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from storage.errors import StoreFull
from storage.store import KeyValue, Store
from tests.storage.etcd.conftest import OpenStore
from tests.storage.following import PODS, following
from tests.tools import path
from tests.tools.etcd import Etcd

pytestmark = pytest.mark.etcd

_QUOTA_BYTES = 4 << 20
_VALUE_BYTES = 500_000


async def test_a_full_etcd_refuses_writes_and_serves_on(make_etcd: Callable[..., Etcd], open_store: OpenStore) -> None:
    etcd = make_etcd(flags=(f"--quota-backend-bytes={_QUOTA_BYTES}",))
    etcd.start()
    store = open_store(etcd)
    written: list[KeyValue] = []
    async with following(store, after_revision=await store.current_revision()) as watch:
        with pytest.raises(StoreFull, match=r"space exceeded.*--quota-backend-bytes"):
            await _fill(store, written)
        with pytest.raises(StoreFull, match="space exceeded"):
            await store.update(written[0].key, b"y", expected_revision=written[0].revision)

        # What needs no room goes on, deletions above all: they make it.
        assert [item.key for item in (await store.list(PODS)).items] == [item.key for item in written]
        gone = [await store.delete(item.key, expected_revision=item.revision) for item in written]
        events = await watch.until_events(len(written) + len(gone))
        assert [event.revision for event in events] == [item.revision for item in (*written, *gone)]

        revision = await store.current_revision()
        for words in (("compact", str(revision)), ("defrag",), ("alarm", "disarm")):
            _etcdctl(etcd, *words)
        again = await store.create(PODS + "again", b"x")
        assert (await watch.until_events(len(events) + 1))[-1].revision == again.revision


async def _fill(store: Store, written: list[KeyValue]) -> None:
    while len(written) < 1000:  # etcd looks at its size now and then: it takes more than its quota
        written.append(await store.create(f"{PODS}{len(written):04}", b"x" * _VALUE_BYTES))


def _etcdctl(etcd: Etcd, *words: str) -> None:
    subprocess.run([path("etcdctl"), f"--endpoints={etcd.url}", *words], check=True, capture_output=True)
