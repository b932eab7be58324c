"""The SQLite store: the contract on the event loop, over the writer's thread and a reader's thread.

Knows `Writer`, `Reader` and `Fanout`. Policy: a committed group is told to the watches and acknowledged to its writers in one step of the
loop, in the order of revisions. Reads are done at the revision told so far, so nobody sees a write before the watches can.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import apsw

from storage.errors import Compacted, FutureRevision, Overloaded, StoreClosed, StoreError, Unavailable
from storage.fanout import Fanout
from storage.sqlite.config import SqliteConfig
from storage.sqlite.database import FileLock, open_reader, open_writer, translated
from storage.sqlite.reader import Reader
from storage.sqlite.writer import Group, Write, Writer
from storage.store import Event, KeyValue, Page, WatchBatch
from storage.window import HistoryWindow

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_LOAD_ROWS = 500


class SqliteStore:
    """Keeps the contract of `Store` in one file on a local disk, of which it is the only server."""

    def __init__(self, path: Path, config: SqliteConfig, lock: FileLock) -> None:
        """Use `open`: this one blocks, and wants the lock."""
        self._path = path
        self._config = config
        self._lock = lock
        self._loop = asyncio.get_running_loop()
        self._arrived: list[Write] = []
        self._waiting = 0
        self._loading = False
        self._closing: asyncio.Task[None] | None = None
        self._failure: StoreError | None = None
        self._over = asyncio.Event()
        self._writer_ended: asyncio.Future[None] = self._loop.create_future()
        self._read_thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-reader")
        connection = open_writer(path, busy_seconds=config.busy_seconds)
        try:
            self._writer = Writer(connection, config, listener=_OnLoop(self._loop, self))
            self._reader = Reader(open_reader(path, busy_seconds=config.busy_seconds))
        except BaseException:
            connection.close()
            raise
        self._begin(self._writer.revision)
        self._writer.start()

    def _begin(self, revision: int) -> None:
        self._fanout = Fanout(revision)
        self._window = HistoryWindow(self._config.history, revision=revision, now_seconds=time.monotonic())

    @classmethod
    async def open(cls, path: Path, config: SqliteConfig | None = None) -> SqliteStore:
        """Open a store's file, making it and its folder when they are missing. Blocks the loop: it belongs to the start.

        Raises:
            StoreLocked: another process serves this file.
            Corrupted: the file is damaged.
            Unavailable: the file cannot be opened.
            StoreError: SQLite is too old, or does not do what durability needs, or the file is of another program.
        """
        try:
            lock = FileLock(path)
        except OSError as error:
            raise Unavailable(f"{path} cannot be opened: {error.strerror}") from error
        try:
            return cls(path, config or SqliteConfig(), lock)
        except apsw.Error as error:
            lock.release()
            raise translated(error) from error
        except OSError as error:
            lock.release()
            raise Unavailable(f"{path} cannot be opened: {error.strerror}") from error
        except BaseException:
            lock.release()
            raise

    async def create(self, key: str, value: bytes) -> KeyValue:
        """See `Store.create`."""
        return await self._write(key, value, None)

    async def update(self, key: str, value: bytes, *, expected_revision: int) -> KeyValue:
        """See `Store.update`."""
        return await self._write(key, value, expected_revision)

    async def delete(self, key: str, *, expected_revision: int) -> KeyValue:
        """See `Store.delete`."""
        return await self._write(key, None, expected_revision)

    async def get(self, key: str, *, revision: int | None = None) -> KeyValue:
        """See `Store.get`."""
        self._check_revision(revision)
        return await self._read(self._reader.get, key, revision, self._fanout.revision)

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """See `Store.list`."""
        self._check_revision(revision)
        return await self._read(self._reader.list, prefix, start_key, limit, revision, self._fanout.revision)

    def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[WatchBatch]:
        """See `Store.watch`."""
        self._check_open()

        async def past(after: int, upto: int) -> tuple[Sequence[Event], int]:
            return await self._read(self._reader.events, prefix, after, upto)

        return self._fanout.watch(prefix, after_revision, past=past)

    async def current_revision(self) -> int:
        """See `Store.current_revision`. Never yields to the loop: every write there is has gone through this object."""
        self._check_open()
        return self._fanout.checked_revision()

    async def compact(self, revision: int) -> None:
        """See `Store.compact`. The rows are removed afterwards, in steps between the writes."""
        self._check_revision(revision)
        self._check_not_loading()
        await self._ask(self._writer.compact, revision)

    async def upkeep(self) -> None:
        """See `LoadableStore.upkeep`: wait for the end. History is cut with the writes that make it too long."""
        await self._over.wait()
        if self._closing is None:
            self._check_open()

    async def load(self, items: AsyncIterator[KeyValue], *, above_revision: int) -> int:
        """See `LoadableStore.load`. One transaction: when it fails or is cancelled, the store is empty again."""
        self._check_not_loading()
        self._loading = True
        try:
            await self._ask(self._writer.begin_load, above_revision)
            committed = False
            try:
                rows: list[tuple[str, bytes]] = []
                async for item in items:
                    rows.append((item.key, item.value))
                    if len(rows) == _LOAD_ROWS:
                        await self._ask(self._writer.load, rows)
                        rows = []
                await self._ask(self._writer.load, rows)
                committed = True
            finally:
                revision: int = await self._ask(self._writer.end_load, committed)
        finally:
            self._loading = False
        old = self._fanout
        self._begin(revision)
        old.end(Compacted(old.revision, revision))
        return revision

    async def size_bytes(self) -> int:
        """See `Store.size_bytes`: the database and its write-ahead log."""
        return await self._read(self._file_bytes)

    async def close(self) -> None:
        """See `Store.close`."""
        if self._closing is None:
            self._over.set()
            self._hand_over()
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        # The reader first: the last connection that closes checkpoints and removes the log, and that has to be the writer.
        await self._loop.run_in_executor(self._read_thread, self._reader.close)
        self._writer.stop()
        await self._writer_ended
        self._writer.join()
        self._read_thread.shutdown()
        self._lock.release()
        self._fanout.end()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise StoreClosed("the store has been closed")
        if self._failure is not None:
            # A new one for each call: an exception keeps the tracebacks of all its raises.
            raise Unavailable(str(self._failure)) from self._failure

    def _check_revision(self, revision: int | None) -> None:
        self._check_open()
        if revision is not None and revision > self._fanout.revision:
            raise FutureRevision(revision, self._fanout.revision)

    def _check_not_loading(self) -> None:
        self._check_open()
        if self._loading:
            raise Unavailable("the store is being filled")

    async def _read(self, read: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        self._check_open()
        return await self._loop.run_in_executor(self._read_thread, lambda: read(*args, **kwargs))

    def _file_bytes(self) -> int:
        files = (self._path, self._path.with_name(self._path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def _write(self, key: str, value: bytes | None, expected_revision: int | None) -> KeyValue:
        self._check_not_loading()
        if self._waiting >= self._config.waiting_writes:
            raise Overloaded(f"{self._waiting} writes wait for the disk")
        self._waiting += 1
        if not self._arrived:
            # What arrives in one turn of the loop is handed over at once.
            self._loop.call_soon(self._hand_over)
        future: asyncio.Future[KeyValue] = self._loop.create_future()
        self._arrived.append(Write(key, value, expected_revision, future))
        return await future

    def _hand_over(self) -> None:
        if self._arrived:
            self._writer.write(self._arrived)
            self._arrived = []

    async def _ask(self, ask: Callable[..., None], argument: object) -> Any:
        """Hand a task to the writer after the writes that came before it, and return or raise its result."""
        self._hand_over()
        future: asyncio.Future[Any] = self._loop.create_future()
        ask(argument, done=lambda result: self._loop.call_soon_threadsafe(_settle, future, result))
        return await future

    def committed(self, writes: Sequence[Write], group: Group | StoreError) -> None:
        """Tell the watches, then those who wait: see `Listener`, but on the loop."""
        self._waiting -= len(writes)
        if isinstance(group, StoreError):
            for write in writes:
                _settle(write.future, group)
            return
        if group.events:
            self._fanout.publish(group.events, group.revision)
        for write, outcome in zip(writes, group.outcomes, strict=True):
            _settle(write.future, outcome)
        target = self._window.advance(group.revision, time.monotonic())
        if target is not None and not self._loading:
            self._writer.compact(target, done=_ignore)

    def failed(self, error: StoreError) -> None:
        """End the watches: see `Listener`, but on the loop."""
        self._failure = error
        self._over.set()
        self._fanout.end(error)

    def ended(self) -> None:
        """See `Listener`, but on the loop."""
        self._writer_ended.set_result(None)


class _OnLoop:
    """Carries what the writer tells from its thread to the loop, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, store: SqliteStore) -> None:
        self._call = loop.call_soon_threadsafe
        self._store = store

    def committed(self, writes: Sequence[Write], group: Group | StoreError) -> None:
        self._call(self._store.committed, writes, group)

    def failed(self, error: StoreError) -> None:
        self._call(self._store.failed, error)

    def ended(self) -> None:
        self._call(self._store.ended)


def _settle(future: asyncio.Future[Any], result: object) -> None:
    if future.done():
        return
    if isinstance(result, StoreError):
        future.set_exception(result)
    else:
        future.set_result(result)


def _ignore(_result: object) -> None:
    """Nobody waits for this task."""
