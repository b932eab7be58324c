"""A disk that fails or lies: nothing wrong is served, nothing that failed is acknowledged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from storage.errors import Corrupted, KeyExists, Overloaded, StoreError, Unavailable, Unknown
from storage.sqlite import SqliteConfig, SqliteStore
from storage.sqlite.database import PAGE_BYTES
from storage.store import KeyValue
from tests.storage.following import PODS, following
from tests.storage.sqlite.faults import disk

A, B = PODS + "ns1/a", PODS + "ns1/b"
VALUE = b"a value that can be found in the file"


async def closed_store(path: Path) -> int:
    """Make a store of two keys, and return the revision of the first."""
    store = await SqliteStore.open(path)
    first = (await store.create(A, VALUE)).revision
    await store.create(B, b"sound")
    await store.close()
    return first


async def test_a_changed_value_is_found_by_each_way_of_reading(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    first = await closed_store(path)
    content = path.read_bytes()
    assert content.count(VALUE) == 1
    path.write_bytes(content.replace(VALUE, VALUE.replace(b"found", b"bound")))
    store = await SqliteStore.open(path)
    assert (await store.get(B)).value == b"sound"
    with pytest.raises(Corrupted, match=A):
        await store.get(A)
    with pytest.raises(Corrupted):
        await store.list(PODS)
    with pytest.raises(Corrupted):
        await store.update(A, b"new", expected_revision=first)
    async with following(store, after_revision=first - 1) as watch:
        with pytest.raises(Corrupted):
            await watch.batch()
    assert (await store.create(PODS + "ns1/c", b"goes on")).revision > first + 1
    await store.close()


@pytest.mark.parametrize(
    "change", ["key = '/registry/x'", "revision = revision + 9", "previous = 1", "deleted = 1", "value = x'00'", "checksum = 1"]
)
async def test_a_row_that_is_not_what_was_written_is_found(tmp_path: Path, change: str) -> None:
    path = tmp_path / "store.db"
    first = await closed_store(path)
    connection = apsw.Connection(str(path))
    connection.execute(f"UPDATE log SET {change} WHERE key = ?", (A,))
    connection.close()
    store = await SqliteStore.open(path)
    async with following(store, "/registry/", after_revision=first - 1) as watch:
        with pytest.raises(Corrupted):
            await watch.until_revision(await store.current_revision())
    await store.close()


async def test_damaged_pages_are_never_served(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    written = {f"{PODS}ns1/{n:03}": b"%d " % n * 400 for n in range(100)}
    await asyncio.gather(*(store.create(key, value) for key, value in written.items()))
    await store.close()
    content = path.read_bytes()
    for page in range(1, len(content) // PAGE_BYTES):
        path.write_bytes(content[: page * PAGE_BYTES] + bytes(PAGE_BYTES) + content[(page + 1) * PAGE_BYTES :])
        try:
            store = await SqliteStore.open(path)
        except StoreError:
            continue
        for key, value in written.items():
            try:
                got = await store.get(key)
            except StoreError:
                continue
            assert got.value == value
        await store.close()


async def test_a_failed_sync_is_unknown_to_its_writers_and_the_end_of_writing(tmp_path: Path) -> None:
    """After a failed fsync nobody knows what the disk holds: it is not tried again."""
    with disk() as faulty:
        store = await SqliteStore.open(tmp_path / "store.db")
        sound = await store.create(A, b"sound")
        async with following(store, after_revision=sound.revision) as watch:
            reading = asyncio.create_task(watch.end())
            await asyncio.sleep(0)
            faulty.failing = True
            results = await asyncio.gather(*(store.create(f"{PODS}ns2/{n}", b"lost") for n in range(4)), return_exceptions=True)
            faulty.failing = False
            assert all(isinstance(result, Unknown) for result in results)
            assert faulty.failures == 1
            with pytest.raises(Unavailable, match="could not write to its disk"):
                await reading
            assert not watch.events
        with pytest.raises(Unavailable, match="could not write to its disk"):
            await store.create(B, b"after")
        with pytest.raises(Unavailable):
            await store.get(A)
        await store.close()
        store = await SqliteStore.open(tmp_path / "store.db")
        assert await store.get(A) == sound
        assert (await store.create(B, b"after")).revision > sound.revision
        await store.close()


async def test_a_full_disk_is_unknown_to_its_writers_and_loses_nothing(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    store._writer._connection.pragma("max_page_count", 40)
    written: list[KeyValue] = []

    async def fill() -> None:
        for n in range(100):
            written.append(await store.create(f"{PODS}ns1/{n:03}", b"x" * 4000))

    with pytest.raises(Unknown, match="full"):
        await fill()
    assert written
    with pytest.raises(Unavailable):
        await store.create(B, b"after")
    await store.close()
    store = await SqliteStore.open(tmp_path / "store.db")
    assert (await store.list(PODS)).items[: len(written)] == written
    await store.close()


async def test_what_waits_for_the_disk_is_bounded(tmp_path: Path) -> None:
    with disk() as slow:
        store = await SqliteStore.open(tmp_path / "store.db", SqliteConfig(waiting_writes=16))
        slow.sync_seconds_max = 0.02
        results = await asyncio.gather(*(store.create(f"{PODS}ns1/{n}", b"x") for n in range(40)), return_exceptions=True)
        slow.sync_seconds_max = 0.0
        assert sum(isinstance(result, KeyValue) for result in results) == 16
        assert sum(isinstance(result, Overloaded) for result in results) == 24
        assert len((await store.list(PODS)).items) == 16
        await store.create(B, b"goes on")
        await store.close()


async def test_a_program_that_keeps_the_lock_makes_writes_unavailable_and_no_more(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db", SqliteConfig(busy_seconds=0.01))
    outsider = apsw.Connection(str(tmp_path / "store.db"))
    outsider.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"):
        await store.create(A, b"one")
    outsider.execute("ROLLBACK")
    outsider.close()
    created = await store.create(A, b"one")
    with pytest.raises(KeyExists):
        await store.create(A, b"one")
    assert await store.get(A) == created
    await store.close()
