"""Forgetting old history, in turn with everybody else who compacts the same etcd.

All take turns by the version of one key, as kube-apiserver does it and under its name: who finds the version that it saw last writes the
key, which raises the version, and compacts; all others see that it was done. A turn that nobody takes is taken by the next who wakes up.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/storage/etcd3/compact.go
"""

from __future__ import annotations

import asyncio
import logging

from storage.errors import Compacted, StoreClosed, StoreError
from storage.etcd.connection import Connection
from storage.etcd.link import COMPACT, TXN
from storage.etcd.messages import COMPARE_VERSION, CompactionRequest, TxnRequest

log = logging.getLogger(__name__)

_TURN_KEY = b"compact_rev_key"  # without our prefix: it is one etcd that is compacted


class Compactor:
    """Compacts to where etcd was one turn ago: what is younger than `interval_seconds` stays."""

    def __init__(self, connection: Connection, *, interval_seconds: float) -> None:
        self._connection = connection
        self._interval_seconds = interval_seconds
        self._version = 0
        self._revision = 0

    async def run(self) -> None:
        """Take turns until cancelled or the store is closed. A turn that fails is logged, and the next one tried in its time."""
        while self._interval_seconds > 0:
            await asyncio.sleep(self._interval_seconds)
            try:
                await self.take_turn()
            except StoreClosed:
                return
            except StoreError as error:
                log.warning("etcd: compaction failed: %s", error)

    async def take_turn(self) -> int:
        """Compact, unless somebody else has since our last turn; return the revision (etcd's) compacted to, 0 for none."""
        request = TxnRequest()
        compare = request.compare.add()
        compare.target, compare.key, compare.version = COMPARE_VERSION, _TURN_KEY, self._version
        put = request.success.add().request_put
        put.key, put.value = _TURN_KEY, str(self._revision).encode()
        request.failure.add().request_range.key = _TURN_KEY
        response = await self._connection.call(TXN, request, write=True)
        target, self._revision = self._revision, response.header.revision
        if not response.succeeded:
            kvs = response.responses[0].response_range.kvs
            self._version = kvs[0].version if kvs else 0
            return 0
        self._version += 1
        if target:
            try:
                await self._connection.call(COMPACT, CompactionRequest(revision=target))
            except Compacted:
                return 0  # somebody compacted further by hand
        return target
