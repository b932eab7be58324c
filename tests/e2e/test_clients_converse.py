"""Clients of many languages and libraries, each doing the same: conflict, apply, list, watch, resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.clients.cuttable import Cuttable
from tests.e2e.clients.running import Program, command_of, kubeconfig_at, running
from tests.e2e.installed import Cluster
from tests.kubectl.running import manifest, worker

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

CLIENTS = {
    "go retrywatcher": True,
    "go informer": True,
    "go listinginformer": True,
    "java": True,
    "javascript": True,
    "python generated kubernetes": True,
    "python generated kubernetes.aio": True,
    "python generated kubernetes_asyncio": True,
    "python dynamic": True,
    "python kr8s_client": False,
}
"""Those that there are, and whether they go on with a watch that broke off. The others list again."""
POLLING = {"type": "Polling", "status": "False", "reason": "New", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_converses_through_kube_apiserver(cluster: Cluster, tmp_path: Path, client: str) -> None:
    """T112: it sees whole objects, whichever way it takes to them."""
    _converse(cluster, tmp_path, client, kubeconfig=cluster.plane.kubeconfig, url=cluster.plane.url)


@pytest.mark.parametrize("client", ["go informer", "java", "python generated kubernetes"])
def test_a_client_converses_directly(cluster: Cluster, tmp_path: Path, client: str) -> None:
    _converse(cluster, tmp_path, client, kubeconfig=cluster.serving.kubeconfig, url=cluster.serving.url)


def _converse(cluster: Cluster, folder: Path, client: str, *, kubeconfig: Path, url: str) -> None:
    namespace = f"{client}-{urlsplit(url).port}".replace(" ", "-").replace(".", "-").replace("_", "-")
    here = cluster.namespace(namespace)
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("given", image="x", configSecretRef="y")))
    status = manifest({"status": {"conditions": [POLLING]}})
    cluster.kubectl("patch", "localworker/given", "--subresource=status", "--type=merge", "-p", status, here)
    port = urlsplit(url).port
    assert port is not None
    with Cuttable(port) as line:
        reached = kubeconfig_at(kubeconfig, line.port, folder / "kubeconfig")
        with running(folder / "home", reached, *command_of(client), namespace) as program:
            _writes(cluster, program, here)
            listed = program.until("listed")
            assert listed["objects"].keys() == {"applied", "given", "written"}
            for name, value in listed["objects"].items():
                assert value == _whole(cluster, name, here)
            _follows(cluster, program, line, here, resumes=CLIENTS[client])
            program.end()
    objects = {item["metadata"]["name"]: item for item in cluster.json("localworkers", here, "--show-managed-fields")["items"]}
    assert program.until("end")["objects"] == objects


def _writes(cluster: Cluster, program: Program, here: str) -> None:
    conflict = program.until("conflict")
    assert (conflict["code"], conflict["reason"]) == (409, "Conflict")
    written = program.until("written")["object"]
    assert (written["spec"], written["metadata"]["generation"]) == ({"image": "three"}, 3)
    refused = program.until("refused")
    assert (refused["code"], refused["reason"]) == (409, "Conflict")
    applied = program.until("applied")["object"]
    assert applied["spec"] == {"image": "two"}
    # The first manager has lost the only field that it had.
    assert _managers(applied) == {"second": "Apply"}
    assert _whole(cluster, "applied", here) == applied


def _follows(cluster: Cluster, program: Program, line: Cuttable, here: str, *, resumes: bool) -> None:
    """What happens while the connection is cut is seen all the same, once."""
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("a")))
    assert program.event("ADDED", "a")["object"] == _whole(cluster, "a", here)
    with line.away():
        cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("b")))
        cluster.kubectl("delete", "localworker/a", here)
    if resumes:
        program.event("DELETED", "a")
    else:
        program.until("listed", times=2)
    cluster.kubectl("patch", "localworker/b", "--type=merge", "-p", '{"spec":{"image":"z"}}', here)
    assert program.event("MODIFIED", "b")["object"] == _whole(cluster, "b", here)
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("last")))
    program.until("end")
    seen = [(event["type"], event["object"]["metadata"]["name"]) for event in program.all("event") if event["type"] != "BOOKMARK"]
    away = [("ADDED", "b"), ("DELETED", "a")] if resumes else []
    assert seen == [("ADDED", "a"), *away, ("MODIFIED", "b"), ("ADDED", "last")]
    assert len(program.all("listed")) == (1 if resumes else 2)


def _whole(cluster: Cluster, name: str, here: str) -> Any:
    return cluster.json(f"localworker/{name}", here, "--show-managed-fields")


def _managers(value: dict[str, Any]) -> dict[str, str]:
    return {entry["manager"]: entry["operation"] for entry in value["metadata"]["managedFields"]}
