"""What is held and watched of each resource, read from its cache and its watches when somebody asks.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/storage/cacher/metrics/metrics.go
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from apiserver.metrics.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import Metric

    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.watching import Watches

_SIZES_BYTES = tuple(1024.0 * 2**power for power in range(8))
_EXACT_DIGITS = 10**15
"""A revision is told by its last digits, which a float holds exactly."""


class WatchEvents:
    """The events that were sent to the watchers of one resource."""

    def __init__(self) -> None:
        self.sizes = Histogram(_SIZES_BYTES)

    def sent(self, sizes: Sequence[int], watchers: int) -> None:
        """Note that events of these sizes, in bytes, were sent to so many watchers."""
        for size in sizes:
            self.sizes.observe(size, watchers)


class ResourceMetrics:
    """All resources of a server."""

    def __init__(self, resources: Sequence[tuple[ResourceStore, Watches, WatchEvents]], *, capacity: int) -> None:
        """`capacity`: how many past changes each cache keeps, at most."""
        self._resources = resources
        self._capacity = capacity

    def collect(self) -> Iterator[Metric]:
        """What there is now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        by_resource = ("group", "resource")
        by_version = ("group", "version", "resource")
        by_scope = ("verb", *by_version, "subresource", "scope", "component")
        stored = GaugeMetricFamily("apiserver_storage_objects", "Objects that are stored.", labels=("resource",))
        objects = GaugeMetricFamily("apiserver_resource_objects", "Objects that are stored.", labels=by_resource)
        revision = GaugeMetricFamily(
            "apiserver_watch_cache_resource_version", "The revision that the cache shows, its last 15 digits.", labels=by_resource
        )
        capacity = GaugeMetricFamily("watch_cache_capacity", "How many past changes a cache keeps, at most.", labels=by_resource)
        received = CounterMetricFamily("apiserver_watch_cache_events_received", "Changes that the cache was told of.", labels=by_resource)
        lists = CounterMetricFamily("apiserver_watch_cache_initializations", "How often the cache has listed.", labels=by_resource)
        behind = CounterMetricFamily("clrk_watchers_fallen_behind", "How often a watcher had to catch up.", labels=by_resource)
        cut = CounterMetricFamily("apiserver_terminated_watchers", "Watchers that were cut since they did not read.", labels=by_resource)
        events = CounterMetricFamily("apiserver_watch_events", "Events that were sent to watchers.", labels=by_version)
        sizes = HistogramMetricFamily("apiserver_watch_events_sizes", "Bytes of the events that were sent to watchers.", labels=by_version)
        running = GaugeMetricFamily("apiserver_longrunning_requests", "Watches that are open.", labels=by_scope)
        for resource, watches, sent in self._resources:
            kind = resource.kind
            labels = (kind.group, kind.plural)
            stored.add_metric((str(kind.group_resource),), len(resource.cache.snapshot()))
            objects.add_metric(labels, len(resource.cache.snapshot()))
            revision.add_metric(labels, resource.cache.revision % _EXACT_DIGITS)
            capacity.add_metric(labels, self._capacity)
            received.add_metric(labels, watches.received)
            lists.add_metric(labels, watches.lists)
            behind.add_metric(labels, watches.fallen_behind)
            cut.add_metric(labels, watches.cut)
            versioned = (kind.group, kind.version, kind.plural)
            events.add_metric(versioned, sum(sent.sizes.counts))
            sizes.add_metric(versioned, sent.sizes.buckets(), sent.sizes.total)
            for scope, count in watches.by_scope().items():
                running.add_metric(("WATCH", *versioned, "", scope, "apiserver"), count)
        yield from (stored, objects, revision, capacity, received, lists, behind, cut, events, sizes, running)
