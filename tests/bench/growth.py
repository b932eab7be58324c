"""How cost grows with objects, watchers, clients and sizes: what is drawn, its slopes, and what follows for more than is measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Final

from tests.bench.chart import slope
from tests.bench.figures import TITLES, Figures, Measured

_NOTHING: Final = Figures()
_OURS: Final = ("sqlite", "etcd")
_BIG: Final = 100_000


def growing(measured: Measured) -> dict[str, tuple[str, str, dict[str, dict[float, float]]]]:
    """What is shown over a number: by name, the title, the horizontal axis, and the points of each server."""
    lists = {1_000: "list-2400", 10_000: "list", 100_000: "big-list"}
    watchers = {count: f"watch-{count}" for count in (10, 100, 1_000, 10_000)}
    clients = {count: f"get-{count}" if count != 64 else "get" for count in (1, 16, 64, 256)}
    sizes = {size: f"get-{size}" for size in (1_024, 2_400, 10_240, 102_400)}
    return {
        "objects": ("CPU time of a LIST over the number of objects", "objects", _points(measured, lists)),
        "watchers": ("CPU time of a delivery over the number of watchers", "watchers", _points(measured, watchers)),
        "clients": ("CPU time of a GET over the number of clients", "clients", _points(measured, clients)),
        "sizes": ("CPU time of a GET over the size of the object", "bytes", _points(measured, sizes)),
    }


def _points(measured: Measured, names: Mapping[int, str]) -> dict[str, dict[float, float]]:
    return {
        key: {x: cpu for x, name in names.items() if (cpu := measured.figures.get(name, {}).get(key, _NOTHING).cpu_us)} for key in TITLES
    }


def growth(measured: Measured) -> list[str]:
    said: list[str] = []
    for text, across, points in growing(measured).values():
        slopes = {TITLES[key]: exponent for key, one in points.items() if (exponent := slope(one)) is not None}
        if slopes:
            each = ", ".join(f"{title} {across}^{exponent:.2f}" for title, exponent in slopes.items())
            said.append(f"- {text}: {each}.")
    ours = [one for row in measured.figures.values() for key, one in row.items() if key in _OURS]
    for what, found in (
        ("Longest wait of a probe of ours", [one.longest_wait_ms for one in ours if one.longest_wait_ms]),
        ("Longest hold of our event loop, in its CPU time", [one.longest_hold_ms for one in ours if one.longest_hold_ms]),
    ):
        if found:
            said.append(f"- {what}: {max(found):.0f} ms in the worst scenario, {statistics.median(found):.0f} ms in the median one.")
    return said


def on_paper(measured: Measured) -> list[str]:
    """What a million objects and a hundred thousand watchers would take, by the measured slopes."""
    said: list[str] = []
    for key in _OURS:
        row = {name: figures[key] for name, figures in measured.figures.items() if key in figures}
        parts = [*_of_objects(row), *_of_watchers(row)]
        if parts:
            said.append(f"- {TITLES[key]}: {'; '.join(parts)}.")
    return said


def _of_objects(row: Mapping[str, Figures]) -> list[str]:
    parts: list[str] = []
    memory, more_memory = (row.get(name, _NOTHING).resident_mb for name in ("memory", "big-memory"))
    if memory and more_memory:
        each = (more_memory - memory) / _BIG
        parts.append(f"each further object takes {each * 1e3:.1f} kB with its share of kept lists, a million {each * 1e6 / 1e3:.1f} GB")
    start, later_start = (row.get(name, _NOTHING).cpu_us for name in ("start", "big-start"))
    if start and later_start:
        each_us = (later_start - start) / _BIG
        parts.append(f"and {each_us:.0f} µs of a start, a million {each_us:.0f} s")
    listed = row.get("big-list", _NOTHING).cpu_us
    if listed:
        parts.append(f"a LIST of a million takes {listed * 1e6 / _BIG / 1e6:.1f} s of CPU")
    return parts


def _of_watchers(row: Mapping[str, Figures]) -> list[str]:
    parts: list[str] = []
    each = row.get("idle", _NOTHING).kilobytes_each
    if each:
        parts.append(f"a hundred thousand idle watchers hold {each * 1e5 / 1e6:.1f} GB")
    delivery = row.get("watch-10000", _NOTHING).cpu_us
    if delivery:
        parts.append(f"an event for each of them takes {delivery * 1e5 / 1e6:.1f} s of CPU")
    return parts
