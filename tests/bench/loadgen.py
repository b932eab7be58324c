"""Runs `tests/tools/loadgen` against a server, alone or several at once, and reads what it prints."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.bench.figures import Figures
from tests.bench.servers import Server
from tests.tools import path

_SECONDS = 1_300
"""Longer than any load is."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to do to the objects of a namespace: loadgen's flags."""

    mode: str
    namespace: str = "stock"
    flags: dict[str, Any] = field(default_factory=dict)

    def command(self, server: Server) -> list[str]:
        """The command line."""
        certificate, key = server.client
        others = ",".join(f"{name}={pid}" for name, pid in server.others.items())
        flags = {
            "mode": self.mode,
            "url": server.collection(self.namespace),
            "cert": certificate,
            "key": key,
            "pid": ",".join(map(str, server.pids)),
            "also": others,
            **self.flags,
        }
        return [str(path("loadgen")), *(f"-{name}={value}" for name, value in flags.items())]


class LoadError(RuntimeError):
    """The load generator itself failed."""


def run(server: Server, load: Load) -> dict[str, Any]:
    """Run it to its end and return what it printed.

    Raises:
        LoadError: it failed, or has not come to an end.
    """
    try:
        done = subprocess.run(load.command(server), capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise LoadError(f"loadgen -mode={load.mode} has not ended after {_SECONDS} seconds") from error
    return _read(load, done.returncode, done.stdout, done.stderr)


@contextmanager
def beside(server: Server, load: Load, printed: dict[str, Any]) -> Iterator[None]:
    """Run it beside what the block does, which must end first or with it; what it printed is put into `printed`."""
    pipe = subprocess.PIPE
    with subprocess.Popen(load.command(server), stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield
        except BaseException:
            process.kill()
            raise
        stdout, stderr = process.communicate()
    printed.update(_read(load, process.returncode, stdout, stderr))


def _read(load: Load, code: int, stdout: str, stderr: str) -> dict[str, Any]:
    if code:
        raise LoadError(f"loadgen -mode={load.mode} ended with {code}: {stderr[-500:]}")
    printed: dict[str, Any] = json.loads(stdout)
    return printed


def figures(printed: dict[str, Any], **more: Any) -> Figures:
    """The figures that loadgen printed, and those that the caller knows."""
    count = printed["n"]
    values: dict[str, Any] = {
        "per_second": printed["per_s"],
        "cpu_us": printed.get("server_cpu_us_per_op"),
        "p50_ms": printed["p50_ms"],
        "p99_ms": printed["p99_ms"],
        "megabytes": printed["MB_in"] / count if count else None,
        "etcd_us": printed.get("also_cpu_us_per_op", {}).get("etcd"),
        "operations": count,
        "errors": printed.get("errors", {}),
    }
    return Figures(**(values | more))
