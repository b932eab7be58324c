"""What is measured: one set of figures for one scenario on one server, and the whole of a run as it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

TITLES: Final = {
    "crd": "kube-apiserver, CRD",
    "sample": "sample-apiserver",
    "sqlite": "ours, SQLite",
    "etcd": "ours, etcd",
    "workers": "ours, etcd, 2 workers",
    "sqlite-compiled": "ours, SQLite, compiled",
    "etcd-compiled": "ours, etcd, compiled",
}
"""The servers that are compared, by their keys."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one server did in one scenario. A figure that a scenario does not give is None."""

    per_second: float | None = None
    cpu_us: float | None = None
    """The server's own CPU time per operation, in microseconds."""
    p50_ms: float | None = None
    p99_ms: float | None = None
    megabytes: float | None = None
    """What one operation brought."""
    etcd_us: float | None = None
    """etcd's CPU time per operation."""
    resident_mb: float | None = None
    """The most memory that the server held during the scenario."""
    kilobytes_each: float | None = None
    seconds: float | None = None
    longest_wait_ms: float | None = None
    """The slowest answer to a probe that ran beside it."""
    longest_hold_ms: float | None = None
    """The most CPU time for which the event loop was held; None for servers without one."""
    handshakes: float | None = None
    """TLS handshakes with the server, for a thousand operations; None where it does not count them."""
    operations: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    missing: str = ""
    """Why there are no figures."""


@dataclass(slots=True)
class Measured:
    """All figures of one run, by scenario and server."""

    machine: Mapping[str, str]
    figures: dict[str, dict[str, Figures]] = field(default_factory=dict)

    def save(self, file: Path) -> None:
        """Write it as JSON."""
        rows = {name: {key: _brief(one) for key, one in row.items()} for name, row in self.figures.items()}
        file.write_text(json.dumps({"machine": self.machine, "figures": rows}, indent=1) + "\n")

    @staticmethod
    def load(file: Path) -> Measured | None:
        """Read what `save` has written; None when nothing has."""
        if not file.exists():
            return None
        saved = json.loads(file.read_text())
        rows = {name: {key: Figures(**one) for key, one in row.items()} for name, row in saved["figures"].items()}
        return Measured(saved["machine"], rows)


def _brief(figures: Figures) -> dict[str, Any]:
    return {name: value for name, value in asdict(figures).items() if value not in (None, "", {})}
