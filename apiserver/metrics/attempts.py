"""What was tried to find out who asks and what they may do: how often, how it ended, and how long it took.

The labels are words of the server's own and codes of kube-apiserver, so there are few series.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/filters/metrics.go, pkg/endpoints/filters/impersonation/metrics
and pkg/authentication/authenticatorfactory/metrics.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from apiserver.metrics.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import Metric

_SECONDS = tuple(0.001 * 2**power for power in range(15))
_REVIEW_SECONDS = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
_NAMED = frozenset(("admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"))


class Attempts:
    """Attempts of one sort by some labels."""

    def __init__(self, total: str, durations: str, what: str, *labels: str, bounds: Sequence[float] = _SECONDS) -> None:
        """`total` and `durations` are the metrics' names; `what` describes them."""
        self._total, self._durations, self._what, self._labels, self._bounds = total, durations, what, labels, bounds
        self._by_labels: dict[tuple[str, ...], Histogram] = {}

    def record(self, labels: tuple[str, ...], seconds: float) -> None:
        """Count one."""
        self.of(*labels).observe(seconds)

    def of(self, *labels: str) -> Histogram:
        """Where those with these labels are counted, one by each observation of how many seconds it took."""
        durations = self._by_labels.get(labels)
        if durations is None:
            durations = self._by_labels[labels] = Histogram(self._bounds)
        return durations

    def collect(self) -> Iterator[Metric]:
        """All that have been counted."""
        from prometheus_client.core import HistogramMetricFamily

        durations = HistogramMetricFamily(self._durations, f"How long they took: {self._what}.", labels=self._labels)
        for labels, observed in self._by_labels.items():
            durations.add_metric(labels, observed.buckets(), observed.total)
        counts = {labels: sum(observed.counts) for labels, observed in self._by_labels.items()}
        yield from (_counter(self._total, f"How many there were: {self._what}.", self._labels, counts), durations)


class AccessMetrics:
    """What every request goes through before it is worked on."""

    def __init__(self) -> None:
        self.authentication = Attempts(
            "authentication_attempts", "authentication_duration_seconds", "attempts to find out who asks", "result"
        )
        self.authorization = Attempts(
            "authorization_attempts_total", "authorization_duration_seconds", "attempts to find out whether they may", "result"
        )
        self.impersonation = Attempts(
            "apiserver_impersonation_attempts_total",
            "apiserver_impersonation_attempts_duration_seconds",
            "requests of those who would act as somebody else",
            "mode",
            "decision",
        )
        self.impersonation_checks = Attempts(
            "apiserver_impersonation_authorization_attempts_total",
            "apiserver_impersonation_authorization_attempts_duration_seconds",
            "questions whether somebody may act as somebody else",
            "mode",
            "decision",
        )
        self._users: Counter[str] = Counter()

    def note_user(self, name: str) -> None:
        """Count a request of a user, by the sort of name: names themselves are not told."""
        self._users[name if name in _NAMED else "email_id" if "@" in name else "other"] += 1

    def collect(self) -> Iterator[Metric]:
        """All that has been counted."""
        users: dict[tuple[str, ...], int] = {(name,): count for name, count in self._users.items()}
        yield _counter("authenticated_user_requests", "Requests of users who are known, by the sort of name.", ("username",), users)
        for attempts in (self.authentication, self.authorization, self.impersonation, self.impersonation_checks):
            yield from attempts.collect()


def token_reviews() -> Attempts:
    """The TokenReviews that kube-apiserver was asked for, each attempt by itself, by the code of the answer."""
    return _reviews("apiserver_delegated_authn_request", "TokenReviews that kube-apiserver was asked for")


def subject_access_reviews() -> Attempts:
    """The SubjectAccessReviews, likewise."""
    return _reviews("apiserver_delegated_authz_request", "SubjectAccessReviews that kube-apiserver was asked for")


def _reviews(name: str, what: str) -> Attempts:
    return Attempts(f"{name}_total", f"{name}_duration_seconds", what, "code", bounds=_REVIEW_SECONDS)


def _counter(name: str, description: str, labels: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> Metric:
    from prometheus_client import Metric
    from prometheus_client.core import CounterMetricFamily

    if name.endswith("_total"):
        family: Metric = CounterMetricFamily(name, description, labels=labels)
    else:
        # Some of Kubernetes' counters are not named like counters, and the format knows no such ones.
        family = Metric(name, description, "unknown")
    for values, count in counts.items():
        family.add_sample(name, dict(zip(labels, values, strict=True)), count)
    return family
