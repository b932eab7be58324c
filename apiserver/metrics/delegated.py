"""Reviews that kube-apiserver was asked for: how many, how long they took, and what became of them.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/authentication/authenticatorfactory/metrics.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from apiserver.metrics.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import Metric

AUTHENTICATION = "apiserver_delegated_authn_request"
AUTHORIZATION = "apiserver_delegated_authz_request"
_SECONDS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)


class DelegatedRequests:
    """Counts the reviews of one kind by the code of the answer, each attempt by itself. There are as many series as codes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._by_code: dict[str, Histogram] = {}

    def record(self, code: str, seconds: float) -> None:
        """Count one."""
        durations = self._by_code.get(code)
        if durations is None:
            durations = self._by_code[code] = Histogram(_SECONDS)
        durations.observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """All that have been counted."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        total = CounterMetricFamily(self._name, "Reviews that kube-apiserver was asked for, by the code of its answer.", labels=("code",))
        durations = HistogramMetricFamily(f"{self._name}_duration_seconds", "How long they took.", labels=("code",))
        for code, observed in self._by_code.items():
            total.add_metric((code,), sum(observed.counts))
            durations.add_metric((code,), observed.buckets(), observed.total)
        yield from (total, durations)
