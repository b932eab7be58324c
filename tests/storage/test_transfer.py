"""Backup, restore and move: every value is kept, no revision is given twice, whoever holds an old one is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.errors import Compacted, KeyExists, StoreError, StoreLocked, Unavailable
from storage.open import open_source, open_store
from storage.store import KeyValue, LoadableStore, Store
from storage.transfer import REVISION_JUMP, backup, copy, migrate
from tests.storage.following import PODS, following, write_history

FAR = 10**15
"""Above every revision that a store begins with."""


async def values(store: Store) -> dict[str, bytes]:
    return {item.key: item.value for item in (await store.list("/")).items}


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def stream(*items: KeyValue) -> AsyncIterator[KeyValue]:
    for item in items:
        yield item


async def assert_begins_above(store: Store, old: list[int], revision: int) -> None:
    """Every revision of before is refused, by list and by watch; the next write is above."""
    assert await store.current_revision() >= revision
    for before in old:
        with pytest.raises(Compacted):
            await store.list(PODS, revision=before)
        async with following(store, after_revision=before) as watch:
            with pytest.raises(Compacted):
                await watch.batch()
    written = await store.create(PODS + "after/a", b"after")
    assert written.revision > revision
    async with following(store, after_revision=revision) as watch:
        assert [event.key for event in await watch.until_revision(written.revision)] == [written.key]


async def test_a_loaded_store_has_the_values_above_the_revision_asked_for(loadable: LoadableStore) -> None:
    items = [KeyValue(f"{PODS}ns1/{n:04}", b"%d" % n, n + 5) for n in range(1203)]
    before = await loadable.current_revision()
    revision = await loadable.load(stream(*items), above_revision=5_000_000)
    page = await loadable.list(PODS)
    assert [(item.key, item.value) for item in page.items] == [(item.key, item.value) for item in items]
    assert all(5_000_000 < item.revision <= revision for item in page.items)
    assert len({item.revision for item in page.items}) == len(items)
    updated = await loadable.update(items[0].key, b"new", expected_revision=page.items[0].revision)
    assert updated.revision > revision
    await assert_begins_above(loadable, [before, 5, 5_000_000, revision - 1], updated.revision)


async def test_an_empty_load_moves_the_revisions_all_the_same(loadable: LoadableStore) -> None:
    before = await loadable.current_revision()
    revision = await loadable.load(stream(), above_revision=FAR)
    assert revision >= FAR
    assert (await loadable.list(PODS)).items == []
    await assert_begins_above(loadable, [before], revision)


async def test_a_store_with_keys_is_not_loaded(loadable: LoadableStore) -> None:
    there = await loadable.create(PODS + "ns1/a", b"there")
    with pytest.raises(KeyExists) as caught:
        await loadable.load(stream(KeyValue(PODS + "ns1/b", b"new", 1)), above_revision=FAR)
    assert caught.value.current == there
    assert (await loadable.list(PODS)).items == [there]
    assert (await loadable.create(PODS + "ns1/b", b"next")).revision < FAR


async def test_a_store_that_has_been_emptied_is_loaded_above_its_own_revisions(loadable: LoadableStore) -> None:
    created = await loadable.create(PODS + "ns1/a", b"one")
    deleted = await loadable.delete(created.key, expected_revision=created.revision)
    revision = await loadable.load(stream(KeyValue(PODS + "ns1/b", b"new", 1)), above_revision=1)
    assert revision > deleted.revision
    assert await values(loadable) == {PODS + "ns1/b": b"new"}
    await assert_begins_above(loadable, [created.revision, deleted.revision], revision)


async def test_watches_of_before_a_load_are_told(loadable: LoadableStore) -> None:
    now = await loadable.current_revision()
    async with following(loadable, after_revision=now) as watch:
        reading = asyncio.create_task(watch.end())
        await asyncio.sleep(0)
        await loadable.load(stream(KeyValue(PODS + "ns1/b", b"new", 1)), above_revision=FAR)
        with pytest.raises(Compacted):
            await reading
    assert not watch.events


async def test_a_load_that_fails_leaves_nothing(undoing: LoadableStore) -> None:
    async def failing() -> AsyncIterator[KeyValue]:
        for n in range(600):
            yield KeyValue(f"{PODS}ns1/{n}", b"value", 1)
        raise Unavailable("the source is gone")

    before = await undoing.current_revision()
    with pytest.raises(Unavailable, match="the source is gone"):
        await undoing.load(failing(), above_revision=FAR)
    assert (await undoing.list(PODS)).items == []
    assert await undoing.current_revision() == before
    assert (await undoing.create(PODS + "ns1/a", b"value")).revision < FAR


async def test_a_round_trip_over_every_kind_of_store_keeps_every_value(tmp_path: Path, loadable: LoadableStore) -> None:
    first, last = await open_store(tmp_path / "first"), await open_store(tmp_path / "last")
    events = await write_history(first)
    for n in range(1100):
        await first.create(f"/registry/nodes/{n}", b"node %d" % n)
    expected = await values(first)
    seen: list[tuple[int, int]] = []
    middle = await copy(first, loadable, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 1102), (500, 1102), (1000, 1102), (1102, 1102)]
    assert middle > REVISION_JUMP
    assert await values(loadable) == expected
    revision = await copy(loadable, last)
    assert await values(last) == expected
    assert revision > middle + REVISION_JUMP
    await assert_begins_above(last, [events[0].revision, events[-1].revision, middle], revision)
    await first.close()
    await last.close()


async def test_a_backup_is_one_file_made_while_others_write_and_restores_one_moment(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "data")
    current = [await store.create(f"{PODS}ns1/{n:04}", b"0") for n in range(700)]
    writing = True

    async def write() -> None:
        # Every value of one round before the next round: what a moment shows is never more than one round apart.
        count = 0
        while writing:
            count += 1
            for n, item in enumerate(current):
                current[n] = await store.update(item.key, b"%d" % count, expected_revision=item.revision)

    writer = asyncio.create_task(write())
    await backup(tmp_path / "data", tmp_path / "backup")
    writing = False
    await writer
    held = await store.current_revision()
    await store.close()
    assert names_in(tmp_path) == ["backup", "data"]

    revision = await migrate(tmp_path / "backup", tmp_path / "restored")
    restored = await open_store(tmp_path / "restored")
    rounds = [int(item.value) for item in (await restored.list(PODS)).items]
    assert len(rounds) == 700
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[0] - rounds[-1] <= 1
    await assert_begins_above(restored, [current[0].revision, held], revision)
    await restored.close()


async def test_a_backup_is_read_without_a_file_beside_it(tmp_path: Path) -> None:
    """It may lie where nothing can be written."""
    store = await open_store(tmp_path / "data")
    await store.create(PODS + "ns1/a", b"value")
    await backup(tmp_path / "data", tmp_path / "backup")
    await store.close()
    source = await open_source(tmp_path / "backup")
    assert [item.value for item in (await source.list(PODS)).items] == [b"value"]
    assert names_in(tmp_path) == ["backup", "data"]
    await source.close()
    assert names_in(tmp_path) == ["backup", "data"]


async def test_two_backups_into_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "data")
    for n in range(600):
        await store.create(f"{PODS}ns1/{n}", b"value")
    await asyncio.gather(backup(tmp_path / "data", tmp_path / "backup"), backup(tmp_path / "data", tmp_path / "backup"))
    await store.close()
    assert names_in(tmp_path) == ["backup", "data"]
    await migrate(tmp_path / "backup", tmp_path / "restored")


async def test_a_file_that_is_served_is_no_source_for_a_move(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "data")
    await store.create(PODS + "ns1/a", b"value")
    with pytest.raises(StoreLocked):
        await migrate(tmp_path / "data", tmp_path / "moved", exclusive=True)
    await store.close()
    source = await open_source(tmp_path / "data", exclusive=True)
    with pytest.raises(StoreLocked):
        await open_store(tmp_path / "data")
    await source.close()
    await migrate(tmp_path / "data", tmp_path / "moved", exclusive=True)
    moved = await open_store(tmp_path / "moved")
    assert await values(moved) == {PODS + "ns1/a": b"value"}
    await moved.close()


async def test_a_backup_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is no store at"):
        await backup(tmp_path / "nothing", tmp_path / "backup")
    assert not names_in(tmp_path)


async def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "backup").write_text("precious")
    with pytest.raises(FileExistsError):
        await backup(tmp_path / "data", tmp_path / "backup")
    assert (tmp_path / "backup").read_text() == "precious"


async def test_a_file_of_another_program_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("no database at all, but long enough to look at" * 20)
    with pytest.raises(StoreError):
        await open_source(tmp_path / "other")
