"""Charts as SVG, written by hand: bars side by side, and lines over logarithmic axes. Nothing but text comes out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH: Final = 860
_COLOURS: Final = ("#8b949e", "#b58900", "#1f77b4", "#2a9d4a", "#8e44ad")
"""One for each server; readable on white and on black."""
_FRAME: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#777">\n'
    '<text x="10" y="20" font-size="15" font-weight="bold">{title}</text>\n'
)


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one server: by label, or by the number on the horizontal axis."""

    name: str
    points: Mapping[str, float] | Mapping[float, float]


def bars(title: str, labels: Sequence[str], series: Sequence[Series], *, unit: str) -> str:
    """A group of bars for each label, one bar a series, lengths on a logarithmic axis, each with its value."""
    left, thickness = 250, 13
    values = [value for one in series for value in one.points.values() if value > 0]
    low, high = _decades(values)
    height = 50 + sum(thickness * len(series) + 10 for _ in labels) + 10
    parts = [_FRAME.format(width=_WIDTH, height=height, title=escape(title)), _legend(series)]
    y = 50
    for label in labels:
        middle = y + thickness * len(series) / 2 + 4
        parts.append(f'<text x="{left - 8}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>\n')
        for colour, one in zip(_COLOURS, series, strict=False):
            value = one.points.get(label)  # type: ignore[call-overload]
            if value:
                length = max(1.0, (_WIDTH - left - 110) * (math.log10(value) - low) / (high - low))
                parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{thickness - 2}" fill="{colour}"/>\n')
                parts.append(f'<text x="{left + length + 5:.1f}" y="{y + 10}">{_short(value)} {escape(unit)}</text>\n')
            y += thickness
        y += 10
    return "".join(parts) + "</svg>\n"


def lines(title: str, series: Sequence[Series], *, across: str, up: str) -> str:
    """Lines over two logarithmic axes: what grows in proportion is a straight line of slope one."""
    left, right, top, bottom, height = 70, 20, 60, 40, 360
    points = [(float(x), y) for one in series for x, y in one.points.items() if y > 0]
    (x_low, x_high), (y_low, y_high) = _decades([x for x, _ in points]), _decades([y for _, y in points])

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (_WIDTH - left - right) * (math.log10(x) - x_low) / (x_high - x_low),
            height - bottom - (height - bottom - top) * (math.log10(y) - y_low) / (y_high - y_low),
        )

    parts = [_FRAME.format(width=_WIDTH, height=height, title=escape(title)), _legend(series)]
    for exponent in range(y_low, y_high + 1):
        _, y = at(10**x_low, 10.0**exponent)
        parts.append(f'<line x1="{left}" y1="{y:.0f}" x2="{_WIDTH - right}" y2="{y:.0f}" stroke="#777" stroke-opacity="0.25"/>\n')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{_short(10.0**exponent)}</text>\n')
    for exponent in range(x_low, x_high + 1):
        x, y = at(10.0**exponent, 10.0**y_low)
        parts.append(f'<text x="{x:.0f}" y="{y + 16:.0f}" text-anchor="middle">{_short(10.0**exponent)}</text>\n')
    parts.append(f'<text x="{_WIDTH - right}" y="{height - 6}" text-anchor="end">{escape(across)}</text>\n')
    parts.append(f'<text x="10" y="{top - 8}">{escape(up)}</text>\n')
    for colour, one in zip(_COLOURS, series, strict=False):
        places = [at(float(x), y) for x, y in sorted((float(x), y) for x, y in one.points.items()) if y > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>\n')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>\n' for x, y in places]
    return "".join(parts) + "</svg>\n"


def slope(points: Mapping[float, float]) -> float | None:
    """With which power of the number on the horizontal axis the value grows (least squares over logarithms); None for too few points."""
    logs = [(math.log(x), math.log(y)) for x, y in points.items() if x > 0 and y > 0]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    rise, run = sum((x - mean_x) * (y - mean_y) for x, y in logs), sum((x - mean_x) ** 2 for x, _ in logs)
    return float(rise / run)


def _legend(series: Sequence[Series]) -> str:
    parts: list[str] = []
    x = 10.0
    for colour, one in zip(_COLOURS, series, strict=False):
        parts.append(
            f'<rect x="{x:.0f}" y="31" width="10" height="10" fill="{colour}"/><text x="{x + 15:.0f}" y="40">{escape(one.name)}</text>\n'
        )
        x += 45 + 7 * len(one.name)
    return "".join(parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
