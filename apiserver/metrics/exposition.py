"""All that is counted, as Prometheus reads it.

Numbers are read in one step on the event loop, since they change there; the text is made of them in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import Metric

Collect = Callable[[], Iterable["Metric"]]


def gauge(name: str, description: str, read: Callable[[], float]) -> Collect:
    """A single number that is read when somebody asks."""
    return gauges(name, description, "", lambda: {"": read()})


def gauges(name: str, description: str, label: str, read: Callable[[], Mapping[str, float]]) -> Collect:
    """Numbers by the value of one label."""

    def collect() -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(name, description, labels=(label,) if label else ())
        for value, number in read().items():
            family.add_metric((value,) if label else (), number)
        yield family

    return collect


def counter(name: str, description: str, read: Callable[[], float]) -> Collect:
    """A single number that only grows."""

    def collect() -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        yield CounterMetricFamily(name, description, value=read())

    return collect


async def expose(sources: Iterable[Collect], accept: str) -> tuple[bytes, str]:
    """Return the text and its media type, in the format that the Accept header asks for."""
    # Imported late: only a server that is asked for its metrics needs it.
    from prometheus_client import ProcessCollector
    from prometheus_client.exposition import choose_encoder

    collected = [metric for source in (*sources, ProcessCollector(registry=None).collect) for metric in source()]
    encode, media_type = choose_encoder(accept)
    return await asyncio.to_thread(encode, _Collected(collected)), media_type


class _Collected:
    """Passes for a registry."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics
