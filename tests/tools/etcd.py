"""Real etcd members on loopback, for tests: started, stopped hard, started again where they were."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tests.tools import path

_READY = b"ready to serve client requests"
_START_SECONDS = 30.0


class Etcd:
    """One member. `flags` are added to its command line; the data outlives `stop` and `start`."""

    def __init__(
        self, folder: Path, *, name: str = "default", scheme: str = "http", flags: tuple[str, ...] = (), program: str = "etcd"
    ) -> None:
        client_port, peer_port = free_ports(2)
        self.folder = folder
        self.name = name
        self.url = f"{scheme}://127.0.0.1:{client_port}"
        self.peer_url = f"http://127.0.0.1:{peer_port}"
        self.flags = flags
        self.program = program
        self.data = folder / f"{name}.etcd"
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / f"{name}.log"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def launch(self, *, cluster: str = "") -> None:
        """Start it and return at once."""
        self._log.write_bytes(b"")
        command = [
            str(path(self.program)),
            f"--name={self.name}",
            f"--data-dir={self.data}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            f"--initial-cluster={cluster or f'{self.name}={self.peer_url}'}",
            "--unsafe-no-fsync",
            *self.flags,
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait_ready(self) -> None:
        """Return when it serves clients."""
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while _READY not in self._log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"etcd does not start:\n{self._log.read_text()[-4000:]}")
            time.sleep(0.01)

    def start(self) -> None:
        """Start it and return when it serves clients."""
        self.launch()
        self.wait_ready()

    def start_in(self, cluster: str) -> None:
        """Start it as a member of `cluster` and return when it serves clients."""
        self.launch(cluster=cluster)
        self.wait_ready()

    def pause(self) -> None:
        """Have it fall silent: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)  # until all its threads have stopped

    def resume(self) -> None:
        """End `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Kill it, as a crash does. May be called twice."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            self._process = None


def free_ports(count: int) -> list[int]:
    """Return ports on loopback that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
