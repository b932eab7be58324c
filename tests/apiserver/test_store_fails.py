"""An embedded store that has failed for good ends its server, so that whoever started it starts it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from tests.apiserver.process import start

POOLS = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/default/workerpools"


def test_a_server_whose_file_was_taken_by_another_program_ends(tmp_path: Path) -> None:
    started = start(tmp_path / "data")
    try:
        assert started.serving.request("POST", POOLS, _pool("before"))[0] == 201
        (file,) = (tmp_path / "data").glob("*.db")
        taker = apsw.Connection(str(file))
        taker.execute("UPDATE meta SET number = number + 1 WHERE name = 'epoch'")
        taker.close()
        code, status = started.serving.request("POST", POOLS, _pool("after"))
        assert (code, status["reason"]) == (503, "ServiceUnavailable")
        assert started.process.wait(20) == 1
        assert "clrk-apiserver: another process has opened" in started.errors.read_text()
    finally:
        started.kill()
    again = start(tmp_path / "data")
    names = [item["metadata"]["name"] for item in again.serving.request("GET", POOLS)[1]["items"]]
    again.end()
    assert names == ["before"]


def _pool(name: str) -> dict[str, Any]:
    spec = {"template": {"image": "registry.example/worker:1"}}
    return {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": name}, "spec": spec}
