"""Moments, ages and durations as Kubernetes prints and reads them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from functools import lru_cache

from openapi import rfc3339

_PIECE = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(f"(?:{_PIECE})+", re.ASCII)
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_CHARACTERS = 64


def timestamp(moment: datetime | None = None) -> str:
    """Return a moment, or now, as metav1.Time prints it: `2026-11-30T12:00:00Z`."""
    return rfc3339.format(moment) if moment is not None else _of_second(int(time.time()))


@lru_cache(maxsize=1)
def _of_second(second: int) -> str:
    # Within a second all moments are printed alike, and each write prints two.
    return rfc3339.format(datetime.fromtimestamp(second, UTC))


def parse_duration(text: str) -> float:
    """Read a duration as Go writes it, and return it in seconds: `1m30s`, `500ms`, `0`.

    Raises:
        ValueError: with Go's words, for anything else.
    """
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0.0
    if len(body) > _DURATION_CHARACTERS or not _DURATION.fullmatch(body):
        raise ValueError(f'time: invalid duration "{text}"')
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(_PIECE, body))
    return -seconds if text.startswith("-") else seconds


def human_duration(seconds: float) -> str:
    """Return an age as the cells of a Table show it: `5s`, `3m20s`, `47h`, `2d3h`, `3y18d`.

    Two seconds into the future are forgiven to clocks that differ; beyond, it is `<invalid>`.
    Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/util/duration/duration.go
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    days, years = hours // 24, hours // 24 // 365
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if years < 8:
        return _two(years, "y", days % 365, "d")
    return f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
