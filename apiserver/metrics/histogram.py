"""Observations by their size."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

DURATION_SECONDS = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0
)  # fmt: skip
"""The bounds of kube-apiserver's durations, of requests and of its store."""


class Histogram:
    """How many observations were how large."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value, or several that are the same."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def buckets(self, bounds: Sequence[float] = ()) -> list[tuple[str, float]]:
        """Cumulative counts by upper bound, as Prometheus wants them; at these bounds, which must be some of its own, or at all."""
        kept = frozenset(bounds or self.bounds)
        return [(_text(bound), count) for bound, count in self._cumulative() if bound in kept or bound == _INFINITE]

    def _cumulative(self) -> Iterator[tuple[float, int]]:
        return zip((*self.bounds, _INFINITE), accumulate(self.counts), strict=True)


_INFINITE = float("inf")


def _text(bound: float) -> str:
    return "+Inf" if bound == _INFINITE else f"{bound:g}"
