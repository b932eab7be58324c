"""`--workers`: several processes over one etcd that serve as one."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.process import Serving, Started, start
from tests.tools.etcd import Etcd

pytestmark = pytest.mark.etcd
POOLS = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/default/workerpools"
POOL = {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "spec": {"template": {"image": "registry.example/worker:v1"}}}


@pytest.fixture
def started(tmp_path: Path, etcd: Etcd) -> Iterator[Started]:
    started = start(tmp_path / "data", f"--etcd-servers={etcd.url}", "--workers=2", "--shutdown-delay-duration=100ms")
    yield started
    started.kill()


def workers(serving: Serving) -> set[int]:
    return {int(pid) for pid in Path(f"/proc/{serving.pid}/task/{serving.pid}/children").read_text().split()}


@contextmanager
def stopped(pids: set[int]) -> Iterator[None]:
    """Have these processes do nothing inside of the block."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def connection_to(serving: Serving, pid: int) -> HTTPSConnection:
    """A connection that this worker has taken, since all others were asleep."""
    connection = HTTPSConnection(serving.url.removeprefix("https://"), context=serving.tls, timeout=20)
    with stopped(workers(serving) - {pid}):
        connection.connect()
    return connection


def ask(connection: HTTPSConnection, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    connection.request(method, path, body, {"Content-Type": "application/json"})
    with connection.getresponse() as response:
        return response.status, response.read()


def pool(name: str) -> dict[str, Any]:
    return POOL | {"metadata": {"name": name}}


def test_what_one_worker_has_written_every_other_shows_at_once(started: Started) -> None:
    serving = started.serving
    one, other = (connection_to(serving, pid) for pid in sorted(workers(serving)))
    with closing(one), closing(other):
        for number in range(50):
            writer, reader = (one, other) if number % 2 else (other, one)
            assert ask(writer, "POST", POOLS, json.dumps(pool(f"p{number}")))[0] == 201
            assert ask(reader, "GET", f"{POOLS}/p{number}")[0] == 200
            assert len(json.loads(ask(reader, "GET", POOLS)[1])["items"]) == number + 1
    started.end()


def test_a_worker_that_is_killed_is_replaced_and_the_others_go_on(started: Started) -> None:
    serving = started.serving
    killed, kept = sorted(workers(serving))
    with closing(connection_to(serving, kept)) as connection:
        os.kill(killed, signal.SIGKILL)
        while len(now := workers(serving)) < 2 or killed in now:
            assert ask(connection, "GET", POOLS)[0] == 200
        (new,) = now - {kept}
        with closing(connection_to(serving, new)) as another:
            assert ask(another, "GET", POOLS)[0] == 200
    started.end(quiet=False)
    assert f"worker {killed} was ended by signal 9; another one is started in 0.5 seconds" in started.errors.read_text()


def test_at_the_end_all_workers_finish_what_they_do(started: Started) -> None:
    serving = started.serving
    with ExitStack() as connections, ThreadPoolExecutor() as threads:
        watches = []
        for pid in workers(serving):
            connection = connections.enter_context(closing(connection_to(serving, pid)))
            connection.request("GET", f"{POOLS}?watch=true&allowWatchBookmarks=true")
            response = connection.getresponse()
            watches.append(threads.submit(response.read))
        started.end()
        # Each has been told how far it has got, and has ended as a stream ends.
        assert all(b'"type":"BOOKMARK"' in watch.result() for watch in watches)
    with pytest.raises(ConnectionRefusedError):
        serving.request("GET", POOLS)


def test_the_embedded_store_has_one_worker(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the embedded store serves one process: for several --workers there must be --etcd-servers"):
        start(tmp_path / "data", "--workers=2")


def test_what_cannot_be_used_ends_all_workers(tmp_path: Path, etcd: Etcd) -> None:
    (tmp_path / "broken.pem").write_text("nothing")
    flags = (f"--etcd-servers={etcd.url}", "--workers=2", f"--client-ca-file={tmp_path}/broken.pem")
    with pytest.raises(RuntimeError, match=r"did not start: clrk-apiserver: [^\n]+broken.pem holds no certificate"):
        start(tmp_path / "data", *flags)
