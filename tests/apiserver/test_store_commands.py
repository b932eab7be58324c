"""The commands that copy a store, as processes beside real servers: every value is kept, no resourceVersion is given twice, whoever holds
one of before is told to start again, and what goes wrong is told in one line."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import orjson
import pytest

from storage.errors import Compacted
from storage.etcd import EtcdConfig
from storage.open import open_store
from tests.apiserver.process import ROOT, Serving, serving
from tests.tools.etcd import Etcd

POOLS = "/apis/clrk.apoxy.dev/v1alpha1/workerpools"
WORKERS = "/apis/worker.saved.sh/v1alpha1/localworkers"
COMMAND = (sys.executable, "-m", "apiserver", "store")
NAMES = [f"pool-{number:02}" for number in range(30)]

Object = dict[str, Any]


def address(namespace: str, name: str = "") -> str:
    return f"/apis/clrk.apoxy.dev/v1alpha1/namespaces/{namespace}/workerpools{f'/{name}' if name else ''}"


def pool(name: str) -> Object:
    """A pool with what is easily lost: a status of null, an unusual number, a text beyond ASCII."""
    return {
        "apiVersion": "clrk.apoxy.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": name, "labels": {"of": name}, "annotations": {"note": "größer ≥ \U0001f600\n", "round": "0"}},
        "spec": {"template": {"image": f"x/{name}", "resources": {"limits": {"cpu": "0.50", "memory": 1024}}}, "warmPool": 0},
    }


def worker(name: str) -> Object:
    return {"apiVersion": "worker.saved.sh/v1alpha1", "kind": "LocalWorker", "metadata": {"name": name}, "spec": {"image": "w"}}


def store(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False)


def done(*arguments: str | Path) -> str:
    """Run a command that must succeed, and return what it says: one line, and nothing on standard error."""
    result = store(*arguments)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1
    return result.stdout.rstrip("\n")


def failure(*arguments: str | Path, code: int = 1) -> str:
    """Run a command that must fail, and return the one line that it fails with."""
    result = store(*arguments)
    assert (result.returncode, result.stdout) == (code, "")
    assert result.stderr.startswith("clrk-apiserver: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.removeprefix("clrk-apiserver: ").rstrip("\n")


def fill(server: Serving) -> None:
    """Store two kinds in two namespaces, with a history of updates, statuses and deletions."""
    calls: list[tuple[str, str, Object | None]] = [("POST", address(namespace), pool(name)) for namespace in ("a", "b") for name in NAMES]
    calls += [("POST", f"/apis/worker.saved.sh/v1alpha1/namespaces/a/{WORKERS.rpartition('/')[2]}", worker("w"))]
    calls += [("POST", address("a"), pool("gone")), ("DELETE", address("a", "gone"), None)]
    for code, answer in server.requests(calls):
        assert code in (200, 201), answer
    code, _ = server.request(
        "PATCH", f"{address('a', NAMES[0])}/status", {"status": {"readyReplicas": 2}}, media_type="application/merge-patch+json"
    )
    assert code == 200


def objects(server: Serving) -> dict[str, Object]:
    """Everything that is stored, by uid, with the resourceVersions put aside; those are checked to be different."""
    listed = [item for _, answer in server.requests([("GET", POOLS, None), ("GET", WORKERS, None)]) for item in answer["items"]]
    versions = [item["metadata"].pop("resourceVersion") for item in listed]
    assert len(set(versions)) == len(versions)
    return {item["metadata"]["uid"]: item for item in listed}


def without_rounds(found: dict[str, Object]) -> dict[str, Object]:
    """What `Rounds` does not touch."""
    for one in found.values():
        one["metadata"].get("annotations", {}).pop("round", None)
        one["metadata"].pop("managedFields", None)
    return found


def versions(server: Serving) -> list[int]:
    """Every resourceVersion that a client can see: of the lists, and of what is in them."""
    answers = [answer for _, answer in server.requests([("GET", POOLS, None), ("GET", WORKERS, None)])]
    return [int(one["metadata"]["resourceVersion"]) for answer in answers for one in (answer, *answer["items"])]


def first_event(server: Serving, path: str) -> Object:
    """Watch, and return the first event."""
    with closing(HTTPSConnection(server.url.removeprefix("https://"), context=server.tls)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200
        event: Object = orjson.loads(response.readline())
        return event


def assert_starts_again(server: Serving, held: list[int], token: str) -> None:
    """Whoever holds a resourceVersion or a page of before gets 410 at once, or a conflict; what is given now is above all of before."""
    assert min(versions(server)) > max(held)
    for version in (min(held), max(held)):
        code, answer = server.request("GET", f"{POOLS}?resourceVersion={version}&resourceVersionMatch=Exact")
        assert (code, answer["reason"]) == (410, "Expired")
        event = first_event(server, f"{POOLS}?watch=1&resourceVersion={version}")
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    code, answer = server.request("GET", f"{POOLS}?limit=7&continue={token}")
    assert (code, answer["reason"]) == (410, "Expired")
    _, current = server.request("GET", address("a", NAMES[0]))
    stale = current | {"metadata": current["metadata"] | {"resourceVersion": str(max(held)), "labels": {"stale": "yes"}}}
    code, answer = server.request("PUT", address("a", NAMES[0]), stale)
    assert (code, answer["reason"]) == (409, "Conflict")
    # Clients that ask for no more than "not older" are answered, and can go on from there.
    code, listed = server.request("GET", f"{POOLS}?resourceVersion={max(held)}")
    assert code == 200
    before = max(versions(server))
    code, written = server.request("POST", address("after"), pool("new"))
    assert (code, int(written["metadata"]["resourceVersion"]) > before) == (201, True)
    event = first_event(server, f"{POOLS}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")
    assert event == {"type": "ADDED", "object": written}
    code, _ = server.request("DELETE", address("after", "new"))
    assert code == 200


def page_token(server: Serving) -> str:
    """The continue token of a list that has begun."""
    _, page = server.request("GET", f"{POOLS}?limit=7")
    token: str = page["metadata"]["continue"]
    return token


class Rounds:
    """Writes into every pool of a namespace, one after the other, round after round, until it is told to end."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._end = threading.Event()
        self.begun = threading.Event()
        self.highest = 0
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Rounds:
        self._thread.start()
        assert self.begun.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _write(self) -> None:
        for code, answer in self._server.requests(self._patches(), media_type="application/merge-patch+json"):
            assert code == 200, answer
            self.highest = max(self.highest, int(answer["metadata"]["resourceVersion"]))

    def _patches(self) -> Iterator[tuple[str, str, Object]]:
        count = 0
        while not self._end.is_set():
            count += 1
            for name in NAMES:
                yield "PATCH", address("a", name), {"metadata": {"annotations": {"round": str(count)}}}
            self.begun.set()


def test_a_backup_made_while_others_write_restores_one_moment_and_tells_who_holds_an_old_version(tmp_path: Path) -> None:
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "backup.db"
    with serving(old) as server:
        fill(server)
        before, token = objects(server), page_token(server)
        with Rounds(server) as writing:
            said = done("backup", file, "--data-dir", old)
        held = [*versions(server), writing.highest]
        assert said.startswith(f"{file} holds the objects as of revision ")
        assert {path.name for path in tmp_path.iterdir()} == {"old", "old.stderr", "backup.db"}

    said = done("restore", file, "--data-dir", new)
    assert int(said.removeprefix("Restored; the store goes on from revision ").removesuffix(".")) > max(held)
    with serving(new) as server:
        after = objects(server)
        pools = sorted(
            (one["metadata"] for one in after.values() if one["kind"] == "WorkerPool" and one["metadata"]["namespace"] == "a"),
            key=lambda metadata: str(metadata["name"]),
        )
        rounds = [int(metadata["annotations"]["round"]) for metadata in pools]
        assert len(rounds) == len(NAMES)
        assert rounds == sorted(rounds, reverse=True)
        assert rounds[0] - rounds[-1] <= 1
        assert without_rounds(after) == without_rounds(before)
        assert_starts_again(server, held, token)


@pytest.mark.etcd
def test_a_store_moves_to_etcd_and_back_with_every_value(tmp_path: Path, etcd: Etcd) -> None:
    first, last, certificates = tmp_path / "first", tmp_path / "last", tmp_path / "certificates"
    in_etcd = (f"--etcd-servers={etcd.url}", "--etcd-prefix=/mine")
    with serving(first) as server:
        fill(server)
        expected, held, token = objects(server), versions(server), page_token(server)

    assert done("migrate", "--to", "etcd", "--data-dir", first, *in_etcd).startswith("Moved; the store goes on from revision ")
    with serving(certificates, *in_etcd) as server:
        assert objects(server) == expected
        assert_starts_again(server, held, token)
        expected, held, token = objects(server), [*held, *versions(server)], page_token(server)
        assert failure("migrate", "--to", "etcd", "--data-dir", first, *in_etcd) == "the store that would be filled is not empty"

    assert done("migrate", "--to", "sqlite", "--data-dir", last, *in_etcd).startswith("Moved; the store goes on from revision ")
    with serving(last) as server:
        assert objects(server) == expected
        assert_starts_again(server, held, token)


async def list_at(config: EtcdConfig, revision: int) -> None:
    opened = await open_store(config)
    try:
        await opened.list("/", revision=revision)
    finally:
        await opened.close()


@pytest.mark.etcd
def test_etcd_is_backed_up_into_a_file_and_compacted(tmp_path: Path, etcd: Etcd) -> None:
    in_etcd, file = f"--etcd-servers={etcd.url}", tmp_path / "backup.db"
    with serving(tmp_path / "certificates", in_etcd) as server:
        fill(server)
        expected, held, token = objects(server), versions(server), page_token(server)
        assert done("backup", file, in_etcd).startswith(f"{file} holds the objects as of revision ")
        assert done("compact", in_etcd) == f"Nothing older than revision {max(held)} is kept."
        with pytest.raises(Compacted):
            asyncio.run(list_at(EtcdConfig(endpoints=(etcd.url,)), max(held) - 1))
    done("restore", file, "--data-dir", tmp_path / "new")
    with serving(tmp_path / "new") as server:
        assert objects(server) == expected
        assert_starts_again(server, held, token)


def read_all(terminal: int) -> bytes:
    """Read until nobody has the terminal open any more, which Linux reports as an error."""
    written = b""
    with suppress(OSError):
        while piece := os.read(terminal, 4096):
            written += piece
    return written


def test_a_bar_shows_on_a_terminal(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        fill(server)
    terminal, shown = os.openpty()
    command = [*COMMAND, "backup", str(tmp_path / "backup.db"), "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=shown) as process:
        os.close(shown)
        written = read_all(terminal)
        assert process.stdout is not None
        said = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 0
    assert said.startswith(str(tmp_path / "backup.db").encode())
    assert b"Backing up" in written
    assert b"61/61" in written


def test_what_cannot_be_copied_is_told_in_one_line(tmp_path: Path) -> None:
    data, file, nothing, nonsense = tmp_path / "data", tmp_path / "backup.db", tmp_path / "nothing", tmp_path / "nonsense"
    nonsense.write_text("no database at all, but long enough to look at" * 20)
    with serving(data) as server:
        fill(server)
        done("backup", file, "--data-dir", data)
        served = f"{data}/store.db is served by another process (pid {server.pid}); stop it first"
        assert failure("restore", file, "--data-dir", data) == served
        assert failure("compact", "--data-dir", data) == served
        assert failure("migrate", "--to", "etcd", "--data-dir", data, "--etcd-servers", "x:1") == served
    full = "the store that would be filled is not empty"
    assert failure("backup", file, "--data-dir", data) == f"{file} exists"
    assert failure("restore", file, "--data-dir", data) == full
    assert failure("migrate", "--to", "sqlite", "--data-dir", data, code=2) == "--etcd-servers says which etcd is meant"
    assert failure("backup", tmp_path / "new.db", "--data-dir", nothing) == f"there is no store at {nothing}"
    assert failure("restore", nothing, "--data-dir", tmp_path / "new") == f"there is no store at {nothing}"
    assert failure("restore", nonsense, "--data-dir", tmp_path / "new") == "the store's file is damaged: file is not a database"
    assert failure("backup", file / "below.db", "--data-dir", data) == f"{file}: Not a directory"
    assert failure("backup", nothing / "below.db", "--data-dir", data) == f"{nothing}: No such file or directory"
    assert failure("restore", file, "--data-dir", nonsense / "below") == f"{nonsense}/below/store.db cannot be opened: Not a directory"
    assert {path.name for path in tmp_path.iterdir()} == {"data", "data.stderr", "backup.db", "nonsense"}
