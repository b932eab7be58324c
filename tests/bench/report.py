"""The tables and charts of a run, put between markers into docs/performance.md; what people wrote around them stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench.chart import Series, bars, lines
from tests.bench.figures import TITLES, Figures, Measured
from tests.bench.growth import growing, growth, on_paper
from tests.bench.scenarios import MAIN, SECTIONS, Scenario

BEGIN: Final = "<!-- begin of what `make bench` writes -->"
END: Final = "<!-- end of what `make bench` writes -->"
_NOTHING: Final = Figures()


def figures_before(folder: Path) -> Measured | None:
    """The figures of the run before this one."""
    return Measured.load(folder / "performance" / "figures.json")


def write_report(folder: Path, now: Measured, before: Measured | None, scenarios: Sequence[Scenario]) -> None:
    """Write the figures, the charts and the generated part of performance.md. May be called again when there is more.

    Figures of scenarios and servers that this run has not measured are those of the run before.
    """
    beside = folder / "performance"
    beside.mkdir(parents=True, exist_ok=True)
    rows = {**(before.figures if before is not None else {})}
    measured = Measured(now.machine, rows | {name: rows.get(name, {}) | row for name, row in now.figures.items()})
    measured.save(beside / "figures.json")
    charts = _charts(measured)
    for name, (_, svg) in charts.items():
        (beside / f"{name}.svg").write_text(svg)
    page = folder / "performance.md"
    text = page.read_text() if page.exists() else f"# Performance\n\n{BEGIN}\n{END}\n"
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n\n{_generated(measured, scenarios, charts)}\n{END}{tail}")


def changes(before: Measured, now: Measured) -> list[str]:
    """Rows of ours whose cost has changed by more than a tenth since the run before."""
    lines_: list[str] = []
    for name, row in now.figures.items():
        for key in ("sqlite", "etcd"):
            old, new = before.figures.get(name, {}).get(key, _NOTHING).cpu_us, row.get(key, _NOTHING).cpu_us
            if old and new and not 0.9 < new / old < 1.1:
                lines_.append(f"{name}, {TITLES[key]}: {_cpu(old)} -> {_cpu(new)} ({new / old - 1:+.0%})")
    return lines_


def _generated(measured: Measured, scenarios: Sequence[Scenario], charts: Mapping[str, tuple[str, str]]) -> str:
    parts = ["Measured on:\n", *(f"- {name}: {value}" for name, value in measured.machine.items()), ""]
    for section in SECTIONS:
        rows = [one for one in scenarios if one.section == section and one.name in measured.figures]
        if rows:
            parts += [f"### {section}\n", *_table(rows, measured, aims=section == MAIN), ""]
    for name, (text, _) in charts.items():
        parts.append(f"![{text}](performance/{name}.svg)\n")
    parts += ["### Growth\n", *growth(measured), "", "### A million objects, a hundred thousand watchers\n", *on_paper(measured), ""]
    return "\n".join(parts)


def _table(rows: Iterable[Scenario], measured: Measured, *, aims: bool) -> list[str]:
    rows = tuple(rows)
    there = [key for key in TITLES if any(key in measured.figures[one.name] for one in rows)]
    head = [
        "work",
        *(TITLES[key] for key in there),
        "CPU, CRD ÷ ours",
        "CPU, sample ÷ ours",
        *(("aim for ours", "met") if aims else ()),
        "longest wait",
        "longest hold",
    ]
    table = [_row(head), _row(["---"] * len(head))]
    for scenario in rows:
        row = measured.figures[scenario.name]
        paired = row
        if scenario.name.endswith("-sqlite"):  # its rivals write to etcd
            paired = measured.figures.get(scenario.name.removesuffix("sqlite") + "etcd", {}) | row
        cells = [scenario.title, *(_cell(row.get(key)) for key in there), _ratio(paired, "crd"), _ratio(paired, "sample")]
        if aims:
            cells += [scenario.aim or "–", _met(scenario, row)]
        ours = [row[key] for key in ("sqlite", "etcd") if key in row]
        cells += [_times(one.longest_wait_ms for one in ours), _times(one.longest_hold_ms for one in ours)]
        table.append(_row(cells))
    return table


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(figures: Figures | None) -> str:
    if figures is None:
        return "–"
    if figures.missing:
        return figures.missing
    parts: list[str] = []
    if figures.per_second is not None:
        parts.append(f"{_short(figures.per_second)}/s")
    if figures.cpu_us:
        parts.append(_cpu(figures.cpu_us) + (f" (+ etcd {_cpu(figures.etcd_us)})" if figures.etcd_us and figures.etcd_us >= 20 else ""))
    if figures.p99_ms:
        parts.append(f"p99 {_short(figures.p99_ms)} ms")
    if figures.handshakes is not None:
        parts.append(f"{_short(figures.handshakes)} handshakes/1,000")
    if figures.seconds is not None:
        parts.append(f"{figures.seconds:.2f} s")
    if figures.kilobytes_each is not None:
        parts.append(f"{_short(figures.kilobytes_each)} kB each")
    if figures.megabytes and figures.megabytes >= 0.1:
        parts.append(f"{_short(figures.megabytes)} MB")
    if figures.resident_mb is not None and (not parts or figures.kilobytes_each is not None):
        parts.append(f"{_short(figures.resident_mb)} MB held")
    if figures.errors:
        parts.append(f"**{sum(figures.errors.values())} failed**: {next(iter(figures.errors))[:60].replace('|', '/')}")
    return "<br>".join(parts)


def _cost(figures: Figures | None) -> float | None:
    if figures is None:
        return None
    return figures.cpu_us or figures.seconds or (figures.resident_mb if figures.per_second is None and not figures.missing else None)


def _ratio(row: Mapping[str, Figures], peer: str) -> str:
    theirs = _cost(row.get(peer))
    ratios = [theirs / ours for key in ("sqlite", "etcd") if theirs and (ours := _cost(row.get(key)))]
    return " / ".join(f"{ratio:.1f}" for ratio in ratios) or "–"


def _met(scenario: Scenario, row: Mapping[str, Figures]) -> str:
    """Whether the CPU time per operation meets the aim, for each of our servers; throughput is left to the reader and the machine."""
    if scenario.aim_cpu_us is None:
        return "–"
    marks: list[str] = []
    for key in ("sqlite", "etcd"):
        cpu = row.get(key, _NOTHING).cpu_us
        if cpu:
            marks.append("yes" if cpu <= scenario.aim_cpu_us else f"no, {cpu / scenario.aim_cpu_us - 1:+.0%}")
    return " / ".join(marks) or "–"


def _times(milliseconds: Iterable[float | None]) -> str:
    return " / ".join(f"{one:.0f} ms" for one in milliseconds if one is not None) or "–"


def _cpu(microseconds: float) -> str:
    return f"{_short(microseconds)} µs" if microseconds < 2_000 else f"{_short(microseconds / 1000)} ms"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# Charts


def _charts(measured: Measured) -> dict[str, tuple[str, str]]:
    charts: dict[str, tuple[str, str]] = {}
    names = {
        "get": "GET",
        "list": "LIST 10,000",
        "list-gzip": "LIST 10,000, gzip",
        "list-page": "LIST, a page of 500",
        "create-etcd": "create, etcd",
        "patch-etcd": "merge patch, etcd",
        "watch": "watch, a delivery",
    }
    series = [
        Series(title, {label: cpu for name, label in names.items() if (cpu := measured.figures.get(name, {}).get(key, _NOTHING).cpu_us)})
        for key, title in TITLES.items()
    ]
    series = [one for one in series if one.points]
    labels = [label for label in names.values() if any(label in one.points for one in series)]
    if labels:
        text = "CPU time of the server per operation (logarithmic; less is better)"
        charts["cost"] = (text, bars(text, labels, series, unit="µs"))
    for name, (text, across, points) in growing(measured).items():
        lines_ = [Series(TITLES[key], one) for key, one in points.items() if len(one) > 1]
        if lines_:
            charts[name] = (text, lines(text, lines_, across=across, up="µs"))
    return charts
