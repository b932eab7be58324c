"""What controllers written in Go are made of: client-go's informers and watchers, managers of controller-runtime."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.clients.cuttable import Cuttable
from tests.e2e.clients.running import Program, command_of, kubeconfig_at, running
from tests.e2e.installed import Cluster, until
from tests.kubectl.running import manifest, worker

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

PROTOBUF = "application/vnd.kubernetes.protobuf"
CUTS = 10


@contextmanager
def started(cluster: Cluster, folder: Path, command: str, namespace: str, kubeconfig: Path | None = None) -> Iterator[Program]:
    with running(folder / command, kubeconfig or cluster.plane.kubeconfig, *command_of(f"go {command}"), namespace) as program:
        yield program


@pytest.mark.parametrize("way", ["through", "directly"])
def test_t110_a_retry_watcher_starts_in_an_empty_namespace_and_survives_cuts(cluster: Cluster, tmp_path: Path, way: str) -> None:
    namespace = f"retried-{way}"
    here = cluster.namespace(namespace)
    url, kubeconfig = {
        "through": (cluster.plane.url, cluster.plane.kubeconfig),
        "directly": (cluster.serving.url, cluster.serving.kubeconfig),
    }[way]
    names = [f"x{number}" for number in range(CUTS)]
    with Cuttable(urlsplit(url).port or 0) as line:
        reached = kubeconfig_at(kubeconfig, line.port, tmp_path / "kubeconfig")
        with started(cluster, tmp_path, "follow", namespace, reached) as program:
            listed = program.until("listed")
            assert listed["objects"] == {}
            assert int(listed["resourceVersion"]) > 0
            for watches, name in enumerate(names, 1):
                # Whoever has asked and got an answer has a watch that can be cut.
                until(lambda: len(watched(program)) >= watches)  # noqa: B023
                assert line.cut() > 0
                cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker(name)))
                program.event("ADDED", name)
            cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("last")))
            program.end()
    events = [(event["type"], event["object"]["metadata"]["name"]) for event in program.all("event")]
    assert events == [("ADDED", name) for name in (*names, "last")]
    assert len(watched(program)) >= CUTS + 1


@pytest.mark.parametrize(("command", "asks_for_initial_events"), [("informer", True), ("listinginformer", False)])
def test_an_informer_starts_with_a_list_or_with_a_watch_alone(
    cluster: Cluster, tmp_path: Path, command: str, asks_for_initial_events: bool
) -> None:
    here = cluster.namespace(f"started-{command}")
    with started(cluster, tmp_path, command, f"started-{command}") as program:
        program.until("listed")
        cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("last")))
        program.end()
    answers = [line for line in program.all("answer") if line["path"].endswith("/localworkers")]
    assert [answer["code"] for answer in answers] == [200] * len(answers)
    queries = [parse_qs(answer["query"]) for answer in answers]
    assert ["sendInitialEvents" in query for query in queries] == ([True] if asks_for_initial_events else [False, False])
    assert ["watch" in query for query in queries] == ([True] if asks_for_initial_events else [False, True])


def test_a_metadata_informer_gets_protobuf(cluster: Cluster, tmp_path: Path) -> None:
    """The garbage and quota collectors have one for each resource."""
    here = cluster.namespace("metadata")
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("given", image="x")))
    with started(cluster, tmp_path, "metadata", "metadata") as program:
        given = program.until("listed")["objects"]["given"]
        whole = cluster.json("localworker/given", here, "--show-managed-fields")
        assert given["metadata"] == whole["metadata"]
        assert "spec" not in given
        cluster.kubectl("label", "localworker/given", "color=blue", here)
        assert program.event("MODIFIED", "given")["object"]["metadata"]["labels"] == {"color": "blue"}
        cluster.kubectl("delete", "localworker/given", here)
        program.event("DELETED", "given")
        cluster.kubectl("create", "-f", "-", here, stdin=manifest(worker("last")))
        program.end()
    forms = {answer["contentType"] for answer in program.all("answer") if answer["path"].endswith("/localworkers")}
    assert {form.partition(";")[0] for form in forms} == {PROTOBUF}, forms


def test_t114_both_forms_of_discovery_tell_of_the_same_verbs_and_others_are_not_supported(cluster: Cluster, tmp_path: Path) -> None:
    cluster.namespace("verbs")
    with started(cluster, tmp_path, "verbs", "verbs") as program:
        program.end()
    aggregated, legacy = (line["verbs"] for line in program.all("verbs"))
    assert aggregated == legacy
    main = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    part = {"get", "patch", "update"}
    assert {name: set(verbs) for name, verbs in legacy.items()} == {
        "clrk.apoxy.dev/v1alpha1/workerpools": main,
        "clrk.apoxy.dev/v1alpha1/workerpools/scale": part,
        "clrk.apoxy.dev/v1alpha1/workerpools/status": part,
        "worker.saved.sh/v1alpha1/localworkers": main,
        "worker.saved.sh/v1alpha1/localworkers/status": part,
    }
    asked = program.all("asked")
    assert len(asked) == 7
    assert [line for line in asked if not line["notSupported"]] == []


def test_one_of_two_managers_leads_and_the_other_takes_over(cluster: Cluster, tmp_path: Path) -> None:
    here = cluster.namespace("managed")
    kubectl = cluster.kubectl
    with started(cluster, tmp_path / "one", "manager", "managed") as one:
        one.until("leads")
        with started(cluster, tmp_path / "two", "manager", "managed") as two:
            two.until("started")
            kubectl("create", "-f", "-", here, stdin=manifest(worker("x", image="one")))
            kubectl("wait", "localworker/x", "--for=condition=Polling", "--timeout=30s", here)
            one.terminate()
            two.until("leads")
            kubectl("patch", "localworker/x", "--type=merge", "-p", '{"spec":{"image":"two"}}', here)
            until(lambda: polling(cluster, here).get("observedGeneration") == 2)
            # What nobody changed is not written again.
            assert [line["generation"] for line in one.all("reconciled")] == [1]
            assert [line["generation"] for line in two.all("reconciled")] == [2]
            assert polling(cluster, here)["message"] == "The image is two"
            assert cluster.json("lease/manager", here)["spec"]["leaseTransitions"] >= 1
            assert cluster.json("localworker/x", here)["metadata"]["finalizers"] == ["example.dev/manager"]
            kubectl("delete", "localworker/x", "--timeout=30s", here)
            two.until("let go")


def test_csaupgrade_makes_an_applier_of_kubectl(cluster: Cluster, tmp_path: Path) -> None:
    """Thereafter what an apply leaves out is given up, as with server-side apply from the beginning."""
    here = cluster.namespace("upgraded")
    cluster.kubectl("apply", "-f", "-", here, stdin=json.dumps(worker("applied", image="one", configSecretRef="y")))
    with started(cluster, tmp_path, "csaupgrade", "upgraded") as program:
        program.end()
    upgraded, end = program.until("upgraded")["object"], program.until("end")["object"]
    assert upgraded["spec"] == {"image": "one", "configSecretRef": "y"}
    assert managers(upgraded) == managers(end) == [("kubectl", "Apply")]
    assert end["spec"] == {"image": "two"}
    assert cluster.json("localworker/applied", here, "--show-managed-fields") == end


def watched(program: Program) -> list[dict[str, Any]]:
    return [line for line in program.all("answer") if "watch=true" in line["query"] and line["code"] == 200]


def polling(cluster: Cluster, here: str) -> dict[str, Any]:
    conditions = cluster.json("localworker/x", here).get("status", {}).get("conditions") or [{}]
    assert len(conditions) == 1
    return dict(conditions[0])


def managers(value: dict[str, Any]) -> list[tuple[str, str]]:
    return [(entry["manager"], entry["operation"]) for entry in value["metadata"]["managedFields"]]
