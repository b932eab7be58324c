"""An operator made with kopf, which keeps in an object's annotations what it has handled, and in its finalizers that it has a say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.clients.cuttable import Cuttable
from tests.e2e.clients.running import Program, command_of, kubeconfig_at, running
from tests.e2e.installed import Cluster, until
from tests.kubectl.running import manifest, rows, worker

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

NAMESPACE = "operated"
LAST_HANDLED = "example.dev/last-handled"


@contextmanager
def operator(folder: Path, kubeconfig: Path) -> Iterator[Program]:
    with running(folder, kubeconfig, *command_of("python operator_"), NAMESPACE) as program:
        yield program
        assert "Traceback" not in program.story()


def test_an_operator_handles_workers_whatever_happens_to_it(cluster: Cluster, tmp_path: Path) -> None:
    here = cluster.namespace(NAMESPACE)
    with Cuttable(urlsplit(cluster.plane.url).port or 0) as line:
        reached = kubeconfig_at(cluster.plane.kubeconfig, line.port, tmp_path / "kubeconfig")
        with operator(tmp_path / "first", reached) as first:
            cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("x", image="one")))
            first.until("handled", reason="create", name="x")
            until(lambda: message(cluster, here) == "The image is one")
            assert rows(cluster.kubectl("get", "localworker/x", here))[1][2] == "True"
            metadata = cluster.json("localworker/x", here)["metadata"]
            assert metadata["finalizers"] == ["example.dev/operator"]
            assert metadata["generation"] == 1
            assert json.loads(metadata["annotations"][LAST_HANDLED])["spec"] == {"image": "one"}
            with line.away():
                change(cluster, here, "two")
            assert first.until("handled", reason="update", name="x")["diff"] == [["change", ["spec", "image"]]]
            until(lambda: message(cluster, here) == "The image is two")
        change(cluster, here, "three")
        with operator(tmp_path / "second", reached) as second:
            assert second.until("handled", reason="update", name="x")["diff"] == [["change", ["spec", "image"]]]
            until(lambda: message(cluster, here) == "The image is three")
            cluster.kubectl("delete", "localworker/x", "--timeout=30s", here)
            second.until("handled", reason="delete", name="x")
    assert len(first.all("handled")) == 2
    assert len(second.all("handled")) == 2


def change(cluster: Cluster, here: str, image: str) -> None:
    cluster.kubectl("patch", "localworker/x", "--type=merge", "-p", json.dumps({"spec": {"image": image}}), here)


def message(cluster: Cluster, here: str) -> Any:
    status = cluster.json("localworker/x", here).get("status") or {}
    return (status.get("conditions") or [{}])[0].get("message")
