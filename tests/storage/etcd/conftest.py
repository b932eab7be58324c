"""etcd members of a test's own, which it may kill, and stores over them that are closed in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.etcd import EtcdConfig, EtcdStore
from tests.tools.etcd import Etcd

OpenStore = Callable[..., EtcdStore]


@pytest.fixture
def make_etcd(tmp_path: Path) -> Iterator[Callable[..., Etcd]]:
    """Prepare members that are killed at the end of the test."""
    made: list[Etcd] = []

    def make(**options: Any) -> Etcd:
        made.append(Etcd(tmp_path, **options))
        return made[-1]

    yield make
    for etcd in made:
        etcd.stop()


@pytest.fixture
def etcd(make_etcd: Callable[..., Etcd]) -> Etcd:
    """A member that runs."""
    etcd = make_etcd()
    etcd.start()
    return etcd


@pytest.fixture
async def open_store() -> AsyncIterator[OpenStore]:
    """Open stores over the given members, with other fields of EtcdConfig as keywords."""
    opened: list[EtcdStore] = []

    def open_one(*members: Etcd, **options: Any) -> EtcdStore:
        opened.append(EtcdStore(EtcdConfig(endpoints=tuple(member.url for member in members), **options)))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()
