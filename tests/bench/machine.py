"""On what the figures were measured: without it they mean nothing."""

from __future__ import annotations

import os
import platform
import re
import ssl
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.tools import path


def describe() -> dict[str, str]:
    """Return the machine and the versions, as they are shown."""
    processor = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    packages = ("aiohttp", "uvloop", "orjson", "pydantic", "apsw", "protobuf")
    return {
        "day": datetime.now(UTC).date().isoformat(),
        "processor": f"{os.cpu_count()} × {processor[1] if processor else platform.machine()}",
        "memory": f"{int(memory[1]) / 1e6:.0f} GB" if memory else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_version()}, {ssl.OPENSSL_VERSION}, {', '.join(f'{name} {version(name)}' for name in packages)}",
        "peers": ", ".join(path(name).name.replace("-v", " ") for name in ("kube-apiserver", "sample-apiserver", "etcd")),
        "load before": f"{os.getloadavg()[0]:.1f} processes on average",
    }
