"""What the store refuses to start on, and what it says."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import apsw
import pytest

from storage.errors import Corrupted, StoreClosed, StoreError, StoreLocked, Unavailable
from storage.sqlite import SqliteStore
from storage.sqlite.database import check_version, open_writer

A = "/registry/pods/ns1/a"
OPEN = """
import asyncio, sys
from pathlib import Path
from storage.errors import StoreLocked
from storage.sqlite import SqliteStore
try:
    asyncio.run(SqliteStore.open(Path(sys.argv[1])))
except StoreLocked as error:
    print(error)
"""


async def test_t100_a_second_process_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    second = await asyncio.create_subprocess_exec(sys.executable, "-c", OPEN, str(tmp_path / "store.db"), stdout=PIPE)
    said, _ = await second.communicate()
    assert said.decode().strip() == f"{tmp_path / 'store.db'} is served by another process (pid {os.getpid()}); stop it first"
    await store.create(A, b"one")
    await store.close()


async def test_a_second_store_in_the_same_process_is_refused_until_the_first_is_closed(tmp_path: Path) -> None:
    first = await SqliteStore.open(tmp_path / "store.db")
    with pytest.raises(StoreLocked):
        await SqliteStore.open(tmp_path / "store.db")
    await first.close()
    second = await SqliteStore.open(tmp_path / "store.db")
    await second.close()


async def test_a_server_that_got_round_the_lock_stops_the_first_one(tmp_path: Path) -> None:
    """The lock's file was removed, or lies on a disk that keeps no locks: two never both write."""
    first = await SqliteStore.open(tmp_path / "store.db")
    written = await first.create(A, b"one")
    (tmp_path / "store.db.lock").unlink()
    second = await SqliteStore.open(tmp_path / "store.db")
    with pytest.raises(StoreLocked):
        await first.update(A, b"two", expected_revision=written.revision)
    with pytest.raises(Unavailable):
        await first.get(A)
    assert await second.get(A) == written
    await first.close()
    await second.close()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.close()
    with pytest.raises(StoreClosed):
        await store.create(A, b"one")
    with pytest.raises(StoreClosed):
        await store.get(A)


@pytest.mark.parametrize("version", ["3.40.1", "3.51.2"])
def test_a_sqlite_with_the_fault_of_the_log_is_refused(version: str) -> None:
    with pytest.raises(StoreError, match=r"3\.51\.3 or newer is needed"):
        check_version(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "3.54.1", "4.0.0"])
def test_newer_sqlites_are_taken(version: str) -> None:
    check_version(version)


async def test_the_version_is_checked_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    with pytest.raises(StoreError, match=r"SQLite 3\.51\.2"):
        await SqliteStore.open(tmp_path / "store.db")


def test_a_file_that_cannot_have_a_log_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database in memory stays without one, as one on some network file systems does."""
    monkeypatch.setattr("storage.sqlite.database.os.open", lambda *_: os.dup(1))
    with pytest.raises(StoreError, match="does not do journal_mode = wal"):
        open_writer(Path(":memory:"), busy_seconds=1)


def test_settings_are_as_durability_needs_them(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "store.db", busy_seconds=1)
    names = ("journal_mode", "synchronous", "mmap_size", "wal_autocheckpoint")
    assert {name: connection.pragma(name) for name in names} == {
        "journal_mode": "wal",
        "synchronous": 2,
        "mmap_size": 0,
        "wal_autocheckpoint": 0,
    }
    connection.close()


async def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = apsw.Connection(str(tmp_path / "store.db"))
    other.execute("CREATE TABLE precious (x); INSERT INTO precious VALUES (1)")
    other.close()
    before = (tmp_path / "store.db").read_bytes()
    with pytest.raises(StoreError, match="is no store of format"):
        await SqliteStore.open(tmp_path / "store.db")
    assert (tmp_path / "store.db").read_bytes() == before


async def test_a_file_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    await (await SqliteStore.open(tmp_path / "store.db")).close()
    connection = apsw.Connection(str(tmp_path / "store.db"))
    connection.pragma("user_version", 2)
    connection.close()
    with pytest.raises(StoreError, match="version 2"):
        await SqliteStore.open(tmp_path / "store.db")


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"this is not a database, whatever else it may be\n" * 100)
    with pytest.raises(Corrupted):
        await SqliteStore.open(tmp_path / "store.db")


async def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match="cannot be opened"):
        await SqliteStore.open(tmp_path / "file" / "store.db")


async def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "data" / "store.db")
    await store.create(A, b"secret")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (tmp_path / "data").iterdir()}
    assert modes == dict.fromkeys(["store.db", "store.db-wal", "store.db-shm", "store.db.lock"], 0)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    await store.close()


async def test_closing_leaves_one_file_and_the_lock(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.create(A, b"one")
    await store.close()
    assert sorted(os.listdir(tmp_path)) == ["store.db", "store.db.lock"]
