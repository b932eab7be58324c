"""A store whose operations are timed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from apiserver.metrics.histogram import DURATION_SECONDS, Histogram
from storage.errors import KeyExists, KeyNotFound, RevisionConflict, StoreError

if TYPE_CHECKING:
    from prometheus_client import Metric

    from storage.store import KeyValue, Page, Store, WatchBatch

_Result = TypeVar("_Result")
_ANSWERS = (KeyExists, KeyNotFound, RevisionConflict)
"""Raised, and no failure of the store."""


class _Operations:
    __slots__ = ("durations", "failures")

    def __init__(self) -> None:
        self.durations = Histogram(DURATION_SECONDS)
        self.failures = 0


class MeasuredStore:
    """Passes everything on, and notes how long it took. Another Store to its users."""

    def __init__(self, store: Store, *, every_read: bool) -> None:
        """`every_read`: also those of the current revision, which a store in this process answers faster than it can be timed."""
        self._store = store
        self._operations: dict[tuple[str, str, str], _Operations] = {}
        self._every_read = every_read

    async def _timed(self, operation: str, key: str, work: Awaitable[_Result]) -> _Result:
        began, failures = perf_counter(), 0
        try:
            return await work
        except _ANSWERS:
            raise
        except StoreError:
            failures = 1
            raise
        finally:
            _, _, group, resource, *_ = f"{key}////".split("/", 4)
            labels = (operation, group, resource)
            operations = self._operations.get(labels)
            if operations is None:
                operations = self._operations[labels] = _Operations()
            operations.durations.observe(perf_counter() - began)
            operations.failures += failures

    def create(self, key: str, value: bytes) -> Coroutine[Any, Any, KeyValue]:
        """See `Store.create`."""
        return self._timed("create", key, self._store.create(key, value))

    def update(self, key: str, value: bytes, *, expected_revision: int) -> Coroutine[Any, Any, KeyValue]:
        """See `Store.update`."""
        return self._timed("update", key, self._store.update(key, value, expected_revision=expected_revision))

    def delete(self, key: str, *, expected_revision: int) -> Coroutine[Any, Any, KeyValue]:
        """See `Store.delete`."""
        return self._timed("delete", key, self._store.delete(key, expected_revision=expected_revision))

    def get(self, key: str, *, revision: int | None = None) -> Coroutine[Any, Any, KeyValue]:
        """See `Store.get`."""
        return self._timed("get", key, self._store.get(key, revision=revision))

    def list(
        self, prefix: str, *, start_key: str | None = None, limit: int | None = None, revision: int | None = None
    ) -> Coroutine[Any, Any, Page]:
        """See `Store.list`."""
        return self._timed("list", prefix, self._store.list(prefix, start_key=start_key, limit=limit, revision=revision))

    def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[WatchBatch]:
        """See `Store.watch`; not timed."""
        return self._store.watch(prefix, after_revision=after_revision)

    def current_revision(self) -> Coroutine[Any, Any, int]:
        """See `Store.current_revision`."""
        if not self._every_read:
            return self._store.current_revision()
        return self._timed("current_revision", "", self._store.current_revision())

    async def compact(self, revision: int) -> None:
        """See `Store.compact`; not timed."""
        await self._store.compact(revision)

    async def size_bytes(self) -> int:
        """See `Store.size_bytes`; not timed."""
        return await self._store.size_bytes()

    async def close(self) -> None:
        """See `Store.close`."""
        await self._store.close()

    def collect(self) -> Iterator[Metric]:
        """What has been timed. The names are etcd's whatever the store is, as dashboards and kine have them."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        labels = ("operation", "group", "resource")
        durations = HistogramMetricFamily("etcd_request_duration_seconds", "How long operations of the store took.", labels=labels)
        requests = CounterMetricFamily("etcd_requests", "Operations of the store.", labels=labels)
        failures = CounterMetricFamily("etcd_request_errors", "Operations of the store that failed.", labels=labels)
        for key, operations in self._operations.items():
            durations.add_metric(key, operations.durations.buckets(), operations.durations.total)
            requests.add_metric(key, sum(operations.durations.counts))
            failures.add_metric(key, operations.failures)
        yield from (durations, requests, failures)
