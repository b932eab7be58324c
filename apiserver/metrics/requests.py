"""Requests: how many, how long, how large the answer.

A series exists for each kind of request that the server knows, so their number is bounded by what it serves; the codes are its own.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/metrics/metrics.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING

from aiohttp import web

from apiserver.metrics.histogram import DURATION_SECONDS, Histogram

if TYPE_CHECKING:
    from prometheus_client import Metric

    from apiserver.request import Call, RequestInfo

_SLI_SECONDS = DURATION_SECONDS[2:]
_SIZES_BYTES = tuple(1000.0 * 10**power for power in range(7))
_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE"))
_READS = frozenset(("GET", "LIST"))
_APPLY = "application/apply-patch+"
_COMPONENT = "apiserver"
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope")
_SHORTCUTS = 4096


class _Series:
    """The requests that share their labels."""

    __slots__ = ("codes", "dry_run", "durations", "labels", "sizes")

    def __init__(self, labels: tuple[str, ...], dry_run: str) -> None:
        self.labels = labels
        self.dry_run = dry_run
        self.codes: dict[int, int] = {}
        self.durations = Histogram(DURATION_SECONDS)
        self.sizes = Histogram(_SIZES_BYTES) if labels[0] in _READS else None


class RequestMetrics:
    """Counts every request that was answered, or given up by its client."""

    def __init__(self, resources: Mapping[tuple[str, str, str], Set[str]], paths: Iterable[str]) -> None:
        """`resources`: the subresources of each (group, version, plural) that is served; `paths`: what else is."""
        self._resources = resources
        self._paths = frozenset(paths)
        self._series: dict[tuple[str, ...], _Series] = {}
        self._known: dict[int, tuple[RequestInfo, _Series]] = {}

    def record(self, call: Call, code: int, seconds: float, response: web.StreamResponse | None = None) -> None:
        """Count a request. `response` is what was, or will be, sent."""
        info = call.info
        # Requests for the same address share their info, so most series are found without looking at one label.
        known = self._known.get(id(info))
        series = known[1] if known is not None and known[0] is info else self._find(call)
        codes = series.codes
        codes[code] = codes.get(code, 0) + 1
        series.durations.observe(seconds)
        if series.sizes is not None and response is not None:
            series.sizes.observe(_size_of(response))

    def _find(self, call: Call) -> _Series:
        info = call.info
        labels = self._labels(call)
        dry_run = _dry_run(info)
        key = (*labels, dry_run)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series(labels, dry_run)
        if info.method != "PATCH":
            if len(self._known) >= _SHORTCUTS:
                self._known.clear()
            self._known[id(info)] = (info, series)
        return series

    def _labels(self, call: Call) -> tuple[str, ...]:
        info = call.info
        scope = "resource" if info.name or info.verb == "create" else "namespace" if info.namespace else "cluster"
        if not info.is_resource_request:
            path = info.path if info.path in self._paths else info.path.removesuffix("/")
            return (_verb(call, ""), "", "", "", path if path in self._paths else "other", "")
        subresources = self._resources.get((info.group, info.version, info.resource))
        if subresources is None:
            return (_verb(call, scope), "", "", "other", "", scope)
        subresource = info.subresource if not info.subresource or info.subresource in subresources else "other"
        return (_verb(call, scope), info.group, info.version, info.resource, subresource, scope)

    def collect(self) -> Iterator[Metric]:
        """Everything that has been counted."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        verb, *others = _LABELS
        with_dry_run = (verb, "dry_run", *others, "component")
        total = CounterMetricFamily(
            "apiserver_request",
            "Requests by verb, dry run, resource, scope, component and HTTP response code.",
            labels=(*with_dry_run, "code"),
        )
        durations = HistogramMetricFamily("apiserver_request_duration_seconds", "How long requests took; watches too.", labels=with_dry_run)
        indicators = HistogramMetricFamily(
            "apiserver_request_sli_duration_seconds", "How long requests took that were no dry run.", labels=(*_LABELS, "component")
        )
        sizes = HistogramMetricFamily("apiserver_response_sizes", "Bytes of the answers to reads.", labels=(*_LABELS, "component"))
        for series in self._series.values():
            labels = (*series.labels, _COMPONENT)
            full = (labels[0], series.dry_run, *labels[1:])
            for code, count in series.codes.items():
                total.add_metric((*full, str(code)), count)
            durations.add_metric(full, series.durations.buckets(), series.durations.total)
            if not series.dry_run:
                indicators.add_metric(labels, series.durations.buckets(_SLI_SECONDS), series.durations.total)
            if series.sizes is not None:
                sizes.add_metric(labels, series.sizes.buckets(), series.sizes.total)
        yield from (total, durations, indicators, sizes)


def _verb(call: Call, scope: str) -> str:
    """The verb as metrics have it: the method in capitals, but for lists, watches and applies."""
    info = call.info
    if info.verb == "watch":
        return "WATCH"
    if info.method in ("GET", "HEAD"):
        return "GET" if scope in ("", "resource") else "LIST"
    if info.method == "PATCH" and call.http.headers.get("Content-Type", "").startswith(_APPLY):
        return "APPLY"
    return info.method if info.method in _METHODS else "other"


def _dry_run(info: RequestInfo) -> str:
    asked = info.query.get("dryRun")
    return "" if not asked else "All" if set(asked) == {"All"} else "invalid"


def _size_of(response: web.StreamResponse) -> int:
    if not isinstance(response, web.Response):
        return response.body_length
    body = response.body
    return len(body) if isinstance(body, bytes) else 0
