"""The limit of open files: raised as far as it goes, and borne when it is met."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.apiserver.process import start

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are set on Linux only")

PATH = "/apis/clrk.apoxy.dev/v1alpha1/workerpools"


def test_the_limit_is_raised_and_a_server_that_meets_it_serves_on(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        started = start(tmp_path / "data")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        pid = started.serving.pid
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (hard, hard)
        open_files = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_files + 8, hard))
        host, port = started.serving.url.removeprefix("https://").split(":")
        with ExitStack() as stack:
            for _ in range(32):
                stack.enter_context(socket.create_connection((host, int(port))))
            while len(os.listdir(f"/proc/{pid}/fd")) < open_files + 8:
                pass
        assert started.serving.request("GET", PATH)[0] == 200
        started.end(quiet=False)
        complaints = started.errors.read_text().splitlines()
        assert all("cannot accept connections" in line for line in complaints), complaints
    finally:
        started.kill()
