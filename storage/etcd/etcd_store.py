"""The contract of a store over etcd: keys, values and revisions as etcd's messages.

Knows etcd's messages; the connection knows how to send them. Policy: one transaction for a write, never two objects in one (they would
share a revision, and who resumes there would lose one); everything is read linearizably.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator
from typing import Any

from storage.errors import (
    Compacted,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StoreClosed,
    StoreFull,
    Unavailable,
    Unsupported,
)
from storage.etcd.compactor import Compactor
from storage.etcd.config import EtcdConfig
from storage.etcd.connection import Connection
from storage.etcd.link import COMPACT, RANGE, STATUS, TXN
from storage.etcd.messages import COMPARE_MOD, CompactionRequest, RangeRequest, StatusRequest, TxnRequest, TxnResponse
from storage.etcd.watch import Watches
from storage.keys import prefix_end
from storage.store import KeyValue, Page, WatchBatch

_PAGE_KEYS = 500
_ABSENT = 0
_NEVER = -1


class EtcdStore:
    """Keeps the contract of `Store` in etcd from 3.4.25, 3.5.8 or 3.6 on. Connects when it is first used, and again whenever it has to.

    Until etcd can be reached, operations raise Unavailable and watches wait.
    """

    def __init__(self, config: EtcdConfig) -> None:
        self._prefix = config.prefix.encode()
        self._prefix_length = len(self._prefix)
        self._connection = Connection(config, on_epoch=self._on_epoch)
        self._watches = Watches(self._connection, self._prefix, progress_seconds=config.progress_seconds)
        self._compactor = Compactor(self._connection, interval_seconds=config.compact_seconds)

    @classmethod
    async def open(cls, config: EtcdConfig) -> EtcdStore:
        """Return a store that has looked once whether etcd is there; one that cannot be reached is waited for by whoever uses the store.

        Raises:
            Unsupported: etcd is there, and is too old.
        """
        store = cls(config)
        try:
            await store._connection.known_epoch()
        except Unsupported:
            await store.close()
            raise
        except Unavailable:
            pass
        return store

    async def create(self, key: str, value: bytes) -> KeyValue:
        """See `Store.create`."""
        response, revision = await self._write(key, value, None)
        if response.succeeded:
            return KeyValue(key, value, revision)
        raise KeyExists(self._only(response.responses[0].response_range.kvs, key))

    async def update(self, key: str, value: bytes, *, expected_revision: int) -> KeyValue:
        """See `Store.update`."""
        response, revision = await self._write(key, value, expected_revision)
        if response.succeeded:
            return KeyValue(key, value, revision)
        raise RevisionConflict(self._only(response.responses[0].response_range.kvs, key))

    async def delete(self, key: str, *, expected_revision: int) -> KeyValue:
        """See `Store.delete`."""
        response, revision = await self._write(key, None, expected_revision)
        if response.succeeded:
            return KeyValue(key, response.responses[0].response_delete_range.prev_kvs[0].value, revision)
        raise RevisionConflict(self._only(response.responses[0].response_range.kvs, key))

    async def get(self, key: str, *, revision: int | None = None) -> KeyValue:
        """See `Store.get`."""
        response = await self._read(RangeRequest(key=self._prefix + key.encode()), revision)
        return self._only(response.kvs, key)

    async def list(self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None) -> Page:
        """See `Store.list`. Long lists are read in pages at one revision, so that neither side is held up by them."""
        try:
            return await self._list(prefix, start_key, limit, revision)
        except Compacted:
            if revision is not None:
                raise
            # The revision of the first page was compacted before the last one was read.
            return await self._list(prefix, start_key, limit, None)

    def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[WatchBatch]:
        """See `Store.watch`.

        A reader that does not read holds up its own stream, in etcd, and is never cut; it may be overtaken by a compaction.
        """
        if self._connection.closed.is_set():
            raise StoreClosed("the store has been closed")
        return self._watches.watch(prefix, after_revision)

    async def current_revision(self) -> int:
        """See `Store.current_revision`. One small linearizable read."""
        revision = await self._connection.read_record()
        self._watches.want(revision)
        return revision + self._connection.epoch.offset

    async def compact(self, revision: int) -> None:
        """See `Store.compact`. It is all of etcd whose history is forgotten, not only our keys'."""
        epoch = await self._connection.known_epoch()
        if revision - epoch.offset < 1:
            return
        try:
            await self._connection.call(COMPACT, CompactionRequest(revision=revision - epoch.offset))
        except Compacted:
            return
        except FutureRevision as error:
            raise FutureRevision(revision, await self.current_revision()) from error

    async def upkeep(self) -> None:
        """See `LoadableStore.upkeep`.

        Compacts every `EtcdConfig.compact_seconds`, in turn with all other replicas and with kube-apiserver, until cancelled.
        """
        await self._compactor.run()

    async def load(self, items: AsyncIterator[KeyValue], *, above_revision: int) -> int:
        """See `Store.load`. "No keys" means none under `EtcdConfig.prefix` and a slash: other installations may live beside it."""
        everything = RangeRequest(key=self._prefix + b"/", range_end=self._prefix + b"0", limit=1)
        response = await self._connection.call(RANGE, everything)
        if response.kvs:
            raise KeyExists(self._key_value(response.kvs[0]))
        epoch = await self._connection.known_epoch()
        offset = max(epoch.offset, above_revision - response.header.revision)
        await self._put_record(offset, offset + response.header.revision + 1)
        async for item in items:
            await self.create(item.key, item.value)
        revision = await self.current_revision()
        await self._put_record(offset, revision + 1)
        return await self.current_revision()

    async def size_bytes(self) -> int:
        """Return how large the database file of the member in use is, free pages included."""
        response = await self._connection.call(STATUS, StatusRequest())
        return int(response.dbSize)

    async def close(self) -> None:
        """See `Store.close`."""
        self._connection.closed.set()
        self._watches.cut()
        await self._connection.close()

    async def _write(self, key: str, value: bytes | None, expected_revision: int | None) -> tuple[Any, int]:
        offset = (await self._connection.known_epoch()).offset
        name = self._prefix + key.encode()
        request = TxnRequest()
        compare = request.compare.add()
        compare.target, compare.key = COMPARE_MOD, name
        if expected_revision is None:
            compare.mod_revision = _ABSENT
        else:
            expected = expected_revision - offset
            compare.mod_revision = expected if expected > 0 else _NEVER
        success = request.success.add()
        if value is None:
            success.request_delete_range.key = name
            success.request_delete_range.prev_kv = True
        else:
            put = success.request_put
            put.key = name
            put.value = value
        request.failure.add().request_range.key = name
        try:
            response = await self._connection.call(TXN, request, write=True)
        except StoreFull:
            # The write with which etcd finds out that it is full has been done all the same.
            kvs = (await self._connection.call(RANGE, RangeRequest(key=name))).kvs
            if not kvs or kvs[0].value != value or kvs[0].mod_revision == compare.mod_revision:
                raise
            return TxnResponse(succeeded=True), kvs[0].mod_revision + offset
        return response, response.header.revision + offset

    async def _read(self, request: Any, revision: int | None) -> Any:
        epoch = await self._connection.known_epoch()
        if revision is None:
            return await self._connection.call(RANGE, request)
        if revision < epoch.floor or revision <= epoch.offset:
            raise Compacted(revision, max(epoch.floor, epoch.offset + await self._connection.compact_revision(0)))
        request.revision = revision - epoch.offset
        try:
            return await self._connection.call(RANGE, request)
        except Compacted as error:
            oldest = epoch.offset + await self._connection.compact_revision(request.revision)
            raise Compacted(revision, max(epoch.floor, oldest)) from error
        except FutureRevision as error:
            raise FutureRevision(revision, await self.current_revision()) from error

    async def _list(self, prefix: str, start_key: str | None, limit: int | None, revision: int | None) -> Page:
        end = prefix_end(prefix)
        request = RangeRequest(
            key=self._prefix + max(prefix, start_key or "").encode(), range_end=b"\0" if end is None else self._prefix + end.encode()
        )
        items: builtins.list[KeyValue] = []
        while True:
            request.limit = _PAGE_KEYS if limit is None else min(_PAGE_KEYS, limit - len(items))
            response = await self._read(request, revision)
            offset, cut = self._connection.epoch.offset, self._prefix_length
            items += [KeyValue(kv.key[cut:].decode(), kv.value, kv.mod_revision + offset) for kv in response.kvs]
            if revision is None:
                revision = response.header.revision + offset
            if not response.more or len(items) == limit:
                return Page(items, revision, response.count - len(response.kvs))
            request.key = response.kvs[-1].key + b"\0"

    async def _put_record(self, offset: int, floor: int) -> None:
        request = TxnRequest()
        put = request.success.add().request_put
        put.key, put.value = self._connection.record_key, f"{offset} {floor}".encode()
        await self._connection.call(TXN, request, write=True)
        await self._connection.read_record()

    def _on_epoch(self) -> None:
        self._watches.cut()

    def _only(self, kvs: Any, key: str) -> KeyValue:
        if not kvs:
            raise KeyNotFound(key)
        return self._key_value(kvs[0])

    def _key_value(self, kv: Any) -> KeyValue:
        return KeyValue(kv.key[self._prefix_length :].decode(), kv.value, kv.mod_revision + self._connection.epoch.offset)
