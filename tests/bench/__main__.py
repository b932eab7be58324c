"""`python -m tests.bench`: measure, and write the tables and charts into docs/performance.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.figures import Measured
from tests.bench.machine import describe
from tests.bench.report import changes, figures_before, write_report
from tests.bench.scenarios import FULL, MAIN, QUICK, Scenario, scenarios
from tests.bench.servers import ROOT, Servers

SERVERS = ("crd", "sample", "sqlite", "etcd", "workers", "sqlite-compiled", "etcd-compiled")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes: a minute, to see that everything works; the figures mean nothing"
    )
    parser.add_argument("--scenarios", default="", help="only these, comma separated; a name that ends with * stands for all that begin so")
    parser.add_argument("--aims", action="store_true", help="only the table of aims")
    parser.add_argument("--servers", default=",".join(SERVERS), help="only these of " + ", ".join(SERVERS))
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder of performance.md; with --quick nothing is written")
    parser.add_argument("--list", action="store_true", help="print the scenarios and end")
    chosen = parser.parse_args(arguments)
    sizes = QUICK if chosen.quick else FULL
    all_ = scenarios(sizes)
    wanted = _wanted([one for one in all_ if one.section == MAIN or not chosen.aims], chosen.scenarios)
    if chosen.list:
        sys.stdout.writelines(f"{one.name:18} {one.title}\n" for one in wanted)
        return
    measured, before = Measured(describe()), figures_before(chosen.output)

    def write() -> None:
        if not chosen.quick:
            write_report(chosen.output, measured, before, all_)

    used = {key for one in wanted for key in one.servers}
    with tempfile.TemporaryDirectory(prefix="clrk-bench-") as folder:
        servers = Servers(Path(folder), tuple(key for key in chosen.servers.split(",") if key in used))
        with servers.running() as running:
            Bench(servers, running, sizes, tell=_tell).measure(wanted, measured, after_each=write)
    if before is not None and not chosen.quick:
        for change in changes(before, measured):
            _tell(f"changed since the run before: {change}")


def _wanted(all_: Sequence[Scenario], names: str) -> list[Scenario]:
    patterns = [name for name in names.split(",") if name]

    def matches(scenario: Scenario) -> bool:
        return any(scenario.name == one or (one.endswith("*") and scenario.name.startswith(one[:-1])) for one in patterns)

    return [scenario for scenario in all_ if not patterns or matches(scenario)]


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
