"""The store under load, and what went wrong for other stores on SQLite."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import apsw
import pytest

from storage.sqlite import SqliteConfig, SqliteStore
from storage.store import KeyValue
from storage.window import HistoryLimits
from tests.storage.following import PODS, Following, following

POOLS = "/registry/pools/"


@pytest.mark.parametrize("rounds", [pytest.param(20, id="short"), pytest.param(150, id="as reported", marks=pytest.mark.slow)])
@pytest.mark.parametrize("restarting", [False, True], ids=["running", "restarting"])
async def test_t097_the_first_key_of_a_prefix_is_in_get_list_and_watch(tmp_path: Path, restarting: bool, rounds: int) -> None:
    """CASES T097: created at the same instant as the first of another prefix, it stayed missing from lists and watches."""
    keys = [f"{prefix}{namespace}/first" for prefix in (PODS, POOLS) for namespace in ("ns1", "ns2")]
    for round_ in range(rounds):
        path = tmp_path / f"{round_}.db"
        store = await SqliteStore.open(path)
        after = await store.current_revision()

        async def read(prefix: str, store: SqliteStore = store, after: int = after) -> list[str]:
            async with following(store, prefix, after_revision=after) as watch:
                return [event.key for event in await watch.until_events(2)]

        watches = [asyncio.create_task(read(prefix)) for prefix in (PODS, POOLS)]
        await asyncio.sleep(0)
        created = await asyncio.gather(*(store.create(key, b"first") for key in random.sample(keys, len(keys))))
        watched = [key for keys in await asyncio.gather(*watches) for key in keys]
        if restarting:
            await store.close()
            store = await SqliteStore.open(path)
        assert sorted(watched) == sorted(keys)
        listed = [*(await store.list(PODS)).items, *(await store.list(POOLS)).items]
        assert sorted(listed, key=lambda item: item.key) == sorted(created, key=lambda item: item.key)
        assert sorted([await store.get(key) for key in keys], key=lambda item: item.key) == sorted(created, key=lambda item: item.key)
        await store.close()


@pytest.mark.parametrize(
    ("delay_milliseconds", "updates"),
    [
        pytest.param(2, 15, id="short"),
        pytest.param(50, 300, id="as reported", marks=pytest.mark.slow),
        pytest.param(50, 6_000, id="for minutes", marks=pytest.mark.load),
    ],
)
async def test_t098_a_list_never_runs_ahead_of_a_write_that_shows_later(tmp_path: Path, delay_milliseconds: int, updates: int) -> None:
    """CASES T098: an id taken before the commit let a list at 101 miss 100, and the watch from 101 never sent it."""

    def slow_commit() -> bool:
        # In the writer's thread: the loop goes on meanwhile.
        apsw.sleep(random.randrange(delay_milliseconds + 1))
        return False

    store = await SqliteStore.open(tmp_path / "store.db")
    store._writer._connection.set_commit_hook(slow_commit)
    keys = [f"{PODS}ns{writer}/a" for writer in range(32)]

    async def write(key: str) -> None:
        current = await store.create(key, b"0")
        for n in range(updates):
            current = await store.update(key, b"%d" % n, expected_revision=current.revision)

    writers = [asyncio.create_task(write(key)) for key in keys]
    checks = 0
    while not all(writer.done() for writer in writers):
        page = await store.list(PODS)
        state = {item.key: item for item in page.items}
        assert await store.current_revision() >= page.revision
        upto = await store.current_revision() + 20
        async with following(store, after_revision=page.revision) as watch:
            await read_towards(watch, upto, writers)
        for event in watch.events:
            assert event.value is not None
            state[event.key] = KeyValue(event.key, event.value, event.revision)
        assert (await store.list(PODS, revision=watch.position)).items == sorted(state.values(), key=lambda item: item.key)
        checks += 1
    await asyncio.gather(*writers)
    assert checks > 5
    await store.close()


async def read_towards(watch: Following, revision: int, writers: list[asyncio.Task[None]]) -> None:
    while watch.position < revision and not all(writer.done() for writer in writers):
        await watch.batch()


@pytest.mark.parametrize(
    ("objects", "listers", "updates"),
    [
        pytest.param(1_500, 4, 80, id="short"),
        pytest.param(5_000, 8, 800, id="as reported", marks=pytest.mark.slow),
        pytest.param(5_000, 8, 20_000, id="for minutes", marks=pytest.mark.load),
    ],
)
async def test_t100_writers_lists_compaction_and_an_outside_reader_get_on(tmp_path: Path, objects: int, listers: int, updates: int) -> None:
    """CASES T100: "database is locked". A reader of another program holds its snapshot all the time."""
    config = SqliteConfig(history=HistoryLimits(revisions=200), checkpoint_pages=100, compaction_rows=20)
    store = await SqliteStore.open(tmp_path / "store.db", config)
    for start in range(0, objects, 500):
        await asyncio.gather(*(store.create(f"{POOLS}ns1/{n:04}", b"pool" * 100) for n in range(start, start + 500)))
    outsider = apsw.Connection(str(tmp_path / "store.db"), flags=apsw.SQLITE_OPEN_READONLY)
    outsider.execute("BEGIN")
    held = outsider.execute("SELECT count(*), max(revision) FROM log").fetchall()

    async def write(writer: int) -> None:
        current = await store.create(f"{PODS}ns{writer}/a", b"0")
        for n in range(updates):
            current = await store.update(current.key, b"%d" % n, expected_revision=current.revision)

    async def read() -> None:
        while not writing.done():
            assert len((await store.list(POOLS)).items) == objects

    writing = asyncio.gather(*(write(writer) for writer in range(16)))
    await asyncio.gather(writing, *(read() for _ in range(listers)))
    assert outsider.execute("SELECT count(*), max(revision) FROM log").fetchall() == held
    outsider.execute("ROLLBACK")
    assert len((await store.list(PODS)).items) == 16
    await store.close()
    # Compaction came through: of all updates the window keeps 200 and a thirtieth more, and what is live.
    kept = outsider.execute("SELECT count(*) FROM log").get
    outsider.close()
    assert kept < objects + 16 + 300


async def test_history_is_forgotten_by_itself_and_swept_from_the_disk(tmp_path: Path) -> None:
    config = SqliteConfig(history=HistoryLimits(revisions=30))
    store = await SqliteStore.open(tmp_path / "store.db", config)
    current = await store.create(PODS + "ns1/a", b"0")
    for n in range(300):
        current = await store.update(current.key, b"%d" % n, expected_revision=current.revision)
    gone = await store.delete(current.key, expected_revision=current.revision)
    await store.compact(gone.revision)
    await store.close()
    store = await SqliteStore.open(tmp_path / "store.db")
    assert await store.current_revision() == gone.revision
    await store.close()
    connection = apsw.Connection(str(tmp_path / "store.db"))
    assert connection.execute("SELECT count(*) FROM log").get <= 31
    connection.close()


async def test_a_sweep_that_was_cut_short_goes_on_after_opening(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    current = await store.create(PODS + "ns1/a", b"0")
    for n in range(20):
        current = await store.update(current.key, b"%d" % n, expected_revision=current.revision)
    await store.close()
    connection = apsw.Connection(str(tmp_path / "store.db"))
    connection.execute("UPDATE meta SET number = ? WHERE name = 'compact_revision'", (current.revision,))
    store = await SqliteStore.open(tmp_path / "store.db")
    # Whatever the writer does first, the sweep is a part of it or comes before the next.
    for n in range(20):
        await store.create(f"{PODS}ns2/{n}", b"x")
    assert (await store.list(PODS + "ns1/")).items == [current]
    assert connection.execute("SELECT count(*) FROM log WHERE key = ?", (current.key,)).get == 1
    connection.close()
    await store.close()


async def test_checkpoints_keep_the_log_short(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db", SqliteConfig(checkpoint_pages=50))
    for n in range(400):
        await store.create(f"{PODS}ns1/{n}", b"x" * 3000)
    assert (tmp_path / "store.db-wal").stat().st_size < 200 * 4200
    await store.close()
