"""A disk that fails or lies: nothing wrong is served, nothing that failed is acknowledged."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from storage.errors import Compacted, Corrupted, KeyExists, Overloaded, StoreError, StoreFull, Unavailable, Unknown
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
        await store.create(A, b"new")
    with pytest.raises(Corrupted):
        await store.delete(A, expected_revision=first)
    async with following(store, after_revision=first - 1) as watch:
        with pytest.raises(Corrupted):
            await watch.batch()
    mended = await store.update(A, b"new", expected_revision=first)
    assert await store.get(A) == mended
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


async def test_a_full_disk_refuses_writes_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Wherever in a commit the room ends: nothing of it is found, in this process and in one that opens the file after a crash."""
    with disk() as faulty:
        store = await SqliteStore.open(tmp_path / "store.db")
        written = [await store.create(A, b"sound")]
        async with following(store, after_revision=written[0].revision) as watch:
            for room_bytes in range(0, 60_000, 1_999):
                faulty.room_bytes = room_bytes
                results = await asyncio.gather(
                    *(store.create(f"{PODS}ns2/{room_bytes}-{n}", b"x" * 5000) for n in range(2)), return_exceptions=True
                )
                faulty.room_bytes = None
                assert all(isinstance(result, KeyValue | StoreFull) for result in results), results
                written += [result for result in results if isinstance(result, KeyValue)]
                assert (await store.list(PODS)).items == sorted(written, key=lambda item: item.key)
                crashed = tmp_path / f"crashed-{room_bytes}"
                crashed.mkdir()
                for file in ("store.db", "store.db-wal"):
                    shutil.copy(tmp_path / file, crashed)
                opened = await SqliteStore.open(crashed / "store.db")
                assert (await opened.list(PODS)).items == sorted(written, key=lambda item: item.key)
                await opened.close()
            assert 1 < len(written) < 50, "some were refused and some were not"
            gone = await store.delete(A, expected_revision=written[0].revision)
            events = await watch.until_events(len(written))
            assert [event.revision for event in events] == [*(item.revision for item in written[1:]), gone.revision]
        await store.close()


async def test_a_full_disk_leaves_compaction_for_later(tmp_path: Path) -> None:
    with disk() as faulty:
        store = await SqliteStore.open(tmp_path / "store.db")
        item = await store.create(A, b"0")
        for n in range(20):
            item = await store.update(A, b"%d" % n, expected_revision=item.revision)
        faulty.room_bytes = 0
        with pytest.raises(StoreFull, match="full"):
            await store.compact(item.revision)
        faulty.room_bytes = None
        await store.compact(item.revision)
        with pytest.raises(Compacted):
            await store.list(PODS, revision=item.revision - 1)
        assert await store.get(A) == item
        await store.close()


async def test_a_store_that_is_filled_until_the_disk_is_full_is_empty_again(tmp_path: Path) -> None:
    async def items() -> AsyncIterator[KeyValue]:
        for n in range(400):
            yield KeyValue(f"{PODS}ns1/{n:03}", b"x" * 5000, n + 1)

    with disk() as faulty:
        store = await SqliteStore.open(tmp_path / "store.db")
        faulty.room_bytes = 1_000_000
        with pytest.raises(StoreFull):
            await store.load(items(), above_revision=1000)
        faulty.room_bytes = None
        assert (await store.list(PODS)).items == []
        await store.create(A, b"goes on")
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
