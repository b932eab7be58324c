"""How long a server keeps one client waiting while it does something for others.

A process of its own asks for `/livez` again and again on one connection. What the clock says of the slowest answer includes all that the
machine did meanwhile. How long an event loop was held tells `tests/bench/beat.py`.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

_ROOT = Path(__file__).parents[2]

_PAUSE_SECONDS = 0.005
_REQUEST = b"GET /livez HTTP/1.1\r\nHost: probe\r\n\r\n"
_ANSWER = b"\r\n\r\nok"
_RECEIVED_BYTES = 4096


@dataclass(slots=True)
class Probed:
    """What a probe has seen."""

    longest_wait_ms: float = 0.0
    """The slowest answer."""
    answers: int = 0


@contextmanager
def probing(url: str, client: tuple[Path, Path]) -> Iterator[Probed]:
    """Ask a server beside what the block does; what came of it is there behind the block. `client` is a certificate and its key.

    Raises:
        RuntimeError: behind the block, the probe has failed.
    """
    probed = Probed()
    command = [sys.executable, "-m", "tests.bench.probe", url, *map(str, client)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()  # it has had its first answer
            yield probed
        except BaseException:
            process.kill()
            raise
        stdout, stderr = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the probe has failed: {stderr[-500:]}")
    for name, value in json.loads(stdout).items():
        setattr(probed, name, value)


def _connect(url: str, certificate: str, key: str) -> ssl.SSLSocket:
    # Whom we talk to is known: it has been started for this.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(certificate, key)
    address = urlsplit(url)
    return context.wrap_socket(socket.create_connection((address.hostname, address.port)))


def _ask(connection: ssl.SSLSocket) -> None:
    """Raises: ConnectionError: there was no answer."""
    connection.sendall(_REQUEST)
    answer = b""
    while not answer.endswith(_ANSWER):
        received = connection.recv(_RECEIVED_BYTES)
        if not received:
            raise ConnectionError(f"the connection has ended behind {answer!r}")
        answer += received


def _probe(url: str, certificate: str, key: str, ended: threading.Event) -> Probed:
    probed = Probed()
    with _connect(url, certificate, key) as connection:
        _ask(connection)
        sys.stdout.write("\n")
        sys.stdout.flush()
        while True:
            began = time.perf_counter()
            _ask(connection)
            probed.longest_wait_ms = max(probed.longest_wait_ms, (time.perf_counter() - began) * 1e3)
            probed.answers += 1
            if ended.wait(_PAUSE_SECONDS):
                return probed


def main(url: str, certificate: str, key: str) -> None:
    """Ask until the standard input ends, and print what came of it."""
    ended = threading.Event()

    def wait() -> None:
        while os.read(0, _RECEIVED_BYTES):
            pass
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    probed = _probe(url, certificate, key, ended)
    sys.stdout.write(json.dumps(asdict(probed)))


if __name__ == "__main__":
    main(*sys.argv[1:])
