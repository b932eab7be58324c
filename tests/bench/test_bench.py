"""The bench itself, with small sizes: every scenario gives its figures, no operation fails. Times mean nothing here."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.bench import Bench
from tests.bench.figures import Figures, Measured
from tests.bench.growth import on_paper
from tests.bench.report import BEGIN, END, changes, figures_before, write_report
from tests.bench.scenarios import QUICK, Scenario, Work, scenarios
from tests.bench.servers import Servers

SIZES = replace(QUICK, seconds=0.1)
ALL = scenarios(SIZES)


def measure(folder: Path, keys: tuple[str, ...], wanted: list[Scenario]) -> Measured:
    measured = Measured({"machine": "of a test"})
    servers = Servers(folder, keys)
    with servers.running() as running:
        Bench(servers, running, SIZES, tell=lambda line: None).measure(wanted, measured)
    return measured


def check(figures: Figures) -> None:
    assert not figures.errors
    given = (figures.per_second, figures.seconds, figures.kilobytes_each, figures.resident_mb)
    assert figures.missing or (figures.operations and any(given))


def test_every_scenario_gives_figures_and_no_operation_fails(tmp_path: Path) -> None:
    wanted = [one for one in ALL if "sqlite" in one.servers]
    measured = measure(tmp_path, ("sqlite",), wanted)
    assert measured.figures.keys() == {one.name for one in wanted}
    for row in measured.figures.values():
        check(row["sqlite"])


def test_a_scenario_that_fails_and_a_server_that_dies_cost_their_own_row_only(tmp_path: Path) -> None:
    def fatal(work: Work) -> Figures:
        os.kill(work.server.pid, signal.SIGKILL)
        os.waitid(os.P_PID, work.server.pid, os.WEXITED | os.WNOWAIT)
        raise RuntimeError("it is dead")

    get = next(one for one in ALL if one.name == "get-1")
    rows: list[set[str]] = []
    measured = Measured({"machine": "of a test"})
    servers = Servers(tmp_path, ("sqlite",))
    with servers.running() as running:
        bench = Bench(servers, running, SIZES, tell=lambda line: None)
        bench.measure([replace(get, name="fatal", run=fatal), get], measured, after_each=lambda: rows.append(set(measured.figures)))
    assert measured.figures["fatal"]["sqlite"].errors == {"it is dead": 1}
    check(measured.figures["get-1"]["sqlite"])
    assert rows == [{"fatal"}, {"fatal", "get-1"}]


@pytest.mark.slow
def test_all_servers_do_the_same_work(tmp_path: Path) -> None:
    names = ["create-etcd", "get", "list-gzip", "patch-etcd", "watch", "aggregated-16", "start", "processes-get", "processes-memory"]
    names += ["compiled-get", "compiled-start"]
    keys = ("crd", "sample", "sqlite", "etcd", "workers", "sqlite-compiled")
    measured = measure(tmp_path, keys, [one for one in ALL if one.name in names])
    compared = {"processes": {"etcd", "workers"}, "compiled": {"sqlite", "sqlite-compiled"}}
    for name, row in measured.figures.items():
        assert row.keys() >= compared.get(name.partition("-")[0], {"sample", "etcd"}), name
        for figures in row.values():
            check(figures)


def figures_of(cpu_us: float) -> dict[str, Figures]:
    return {
        "crd": Figures(per_second=100, cpu_us=10 * cpu_us, p99_ms=3, operations=9),
        "sqlite": Figures(per_second=1_000, cpu_us=cpu_us, p99_ms=0.5, operations=9),
    }


def test_the_report_keeps_what_people_wrote_and_says_what_has_become_slower(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# Performance\n\nBefore.\n\n{BEGIN}\nold\n{END}\n\nAfter.\n")
    write_report(tmp_path, Measured({"processor": "one"}, {"get": figures_of(50), "get-1": figures_of(60)}), None, ALL)
    text = page.read_text()
    assert text.startswith("# Performance\n\nBefore.\n")
    assert text.endswith("\nAfter.\n")
    assert "\nold\n" not in text
    assert "| work | kube-apiserver, CRD | ours, SQLite | CPU, CRD ÷ ours |" in text
    assert "| 1,000/s<br>50 µs<br>p99 0.5 ms |" in text
    assert "| 10.0 |" in text
    assert (tmp_path / "performance" / "cost.svg").read_text().startswith("<svg ")
    before, now = figures_before(tmp_path), Measured({"processor": "one"}, {"get": figures_of(75)})
    assert before is not None
    write_report(tmp_path, now, before, ALL)
    assert changes(before, now) == ["get, ours, SQLite: 50 µs -> 75 µs (+50%)"]
    kept = Measured.load(tmp_path / "performance" / "figures.json")
    assert kept is not None
    assert kept.figures["get-1"] == figures_of(60)


def test_what_nobody_measures_follows_from_the_measured_slopes() -> None:
    rows = {
        "memory": Figures(resident_mb=200),
        "big-memory": Figures(resident_mb=900),
        "start": Figures(cpu_us=1e6),
        "big-start": Figures(cpu_us=5e6),
        "big-list": Figures(cpu_us=200_000),
        "idle": Figures(kilobytes_each=50),
        "watch-10000": Figures(cpu_us=6),
    }
    (said,) = on_paper(Measured({}, {name: {"etcd": one} for name, one in rows.items()}))
    assert said == (
        "- ours, etcd: each further object takes 7.0 kB with its share of kept lists, a million 7.0 GB; "
        "and 40 µs of a start, a million 40 s; a LIST of a million takes 2.0 s of CPU; "
        "a hundred thousand idle watchers hold 5.0 GB; an event for each of them takes 0.6 s of CPU."
    )
