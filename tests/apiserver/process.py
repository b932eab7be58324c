"""The server as its users start it: a process of its own, with the command line's flags."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
_READY = re.compile(r"Serving on (https://\S+); use it with: export KUBECONFIG=(\S+)\n")
_END_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that has said that it is ready."""

    url: str
    kubeconfig: Path
    pid: int
    tls: ssl.SSLContext
    """What the kubeconfig's user has to reach it."""

    def request(self, method: str, path: str, value: Any = None, *, media_type: str = "application/json") -> tuple[int, Any]:
        """Ask it something in JSON, and return the status code and the answer."""
        return self.requests([(method, path, value)], media_type=media_type)[0]

    def requests(self, calls: Iterable[tuple[str, str, Any]], *, media_type: str = "application/json") -> list[tuple[int, Any]]:
        """Ask one thing after the other over one connection."""
        answers = []
        with closing(HTTPSConnection(self.url.removeprefix("https://"), context=self.tls)) as connection:
            for method, path, value in calls:
                connection.request(method, path, None if value is None else json.dumps(value), {"Content-Type": media_type})
                with connection.getresponse() as response:
                    answers.append((response.status, json.load(response)))
        return answers


@dataclass(frozen=True, slots=True)
class Started:
    """A server's process, which whoever started it ends or kills."""

    serving: Serving
    process: subprocess.Popen[str]
    errors: Path

    def end(self, *, quiet: bool = True) -> None:
        """Tell it to end, and `wait`."""
        self.process.terminate()
        self.wait(quiet=quiet)

    def wait(self, *, quiet: bool = True) -> None:
        """Return when it has ended, as it must, well; it must have complained of nothing when it is to be `quiet`."""
        code = self.process.wait(_END_SECONDS)
        self.gone()
        complaints = self.errors.read_text() if quiet else ""
        assert (code, complaints) == (0, ""), f"the server ended with {code}: {complaints}"

    def kill(self) -> None:
        """End it as a crash does. May be called twice."""
        self.process.kill()
        self.process.wait()
        self.gone()

    def gone(self) -> None:
        """Let go of what belonged to a process that has ended."""
        assert self.process.stdout is not None
        self.process.stdout.close()


def start(data_dir: Path, *flags: str, cwd: Path = ROOT) -> Started:
    """Serve, on a free port unless `flags` say otherwise, and return when the server has said that it is ready.

    Raises:
        RuntimeError: it did not become ready; with what it wrote to standard error.
    """
    command = [sys.executable, "-m", "apiserver", "serve", f"--data-dir={data_dir}", "--secure-port=0", *flags]
    errors = data_dir.parent / f"{data_dir.name}.stderr"
    with errors.open("wb") as stderr:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "KUBERNETES_SERVICE_HOST": ""}
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert process.stdout is not None
    ready = None
    try:
        ready = _READY.fullmatch(process.stdout.readline())
    finally:
        if ready is None:
            process.kill()
            process.communicate()
    if ready is None:
        raise RuntimeError(f"the server did not start: {errors.read_text()}")
    kubeconfig = (cwd / ready[2]).resolve()
    return Started(Serving(ready[1], kubeconfig, process.pid, _client_tls(kubeconfig)), process, errors)


@contextmanager
def serving(data_dir: Path, *flags: str, cwd: Path = ROOT, quiet: bool = True) -> Iterator[Serving]:
    """Do the same until the end of the block; the process must then end well when it is told to, and have complained of nothing.

    Raises:
        RuntimeError: it did not become ready; with what it wrote to standard error.
    """
    started = start(data_dir, *flags, cwd=cwd)
    try:
        yield started.serving
    finally:
        started.end(quiet=quiet)


def _client_tls(kubeconfig: Path) -> ssl.SSLContext:
    config = yaml.safe_load(kubeconfig.read_bytes())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with TemporaryDirectory() as folder:  # OpenSSL reads a client's certificate from files only
        certificate, key = Path(folder) / "cert", Path(folder) / "key"
        certificate.write_bytes(b64decode(user["client-certificate-data"]))
        key.write_bytes(b64decode(user["client-key-data"]))
        context.load_cert_chain(certificate, key)
    return context
