"""What is in manifests/ is complete, is rendered by kubectl, and is taken by kube-apiserver."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from apiserver.__main__ import main
from tests.apiserver.process import ROOT
from tests.e2e.installed import Cluster
from tests.tools import path

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.usefixtures("programs")]

MANIFESTS = ROOT / "manifests"
OVERLAYS = sorted(file.name for file in (MANIFESTS / "overlays").iterdir())
COMPONENTS = sorted(file.name for file in (MANIFESTS / "components").iterdir())
OF_OTHERS = (
    ("cert-manager.io", "v1", "Issuer"),
    ("cert-manager.io", "v1", "Certificate"),
    ("monitoring.coreos.com", "v1", "ServiceMonitor"),
)
"""Kinds of operators that the production overlay needs."""


def rendered(overlay: str) -> str:
    command = [str(path("kubectl")), "kustomize", str(MANIFESTS / "overlays" / overlay)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def objects(overlay: str) -> dict[str, Any]:
    return {f"{value['kind']}/{value['metadata']['name']}": value for value in yaml.safe_load_all(rendered(overlay))}


def definition(group: str, version: str, kind: str) -> dict[str, Any]:
    """The least that makes kube-apiserver take objects of another operator's kind."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}],
        },
    }


@pytest.fixture(scope="module")
def operators(cluster: Cluster) -> Iterator[None]:
    definitions = json.dumps({"apiVersion": "v1", "kind": "List", "items": [definition(*one) for one in OF_OTHERS]})
    cluster.kubectl("create", "-f", "-", stdin=definitions)
    names = [f"crd/{kind.lower()}s.{group}" for group, _, kind in OF_OTHERS]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    yield
    cluster.kubectl("delete", "-f", "-", stdin=definitions)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_taken_as_it_is_rendered(cluster: Cluster, operators: None, overlay: str) -> None:
    # Really there are the namespace and what our server lives by: a dry run finds them, and changes nothing.
    apply = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
    taken = cluster.kubectl(*apply, stdin=rendered(overlay))
    assert len(taken.splitlines()) == len(objects(overlay))


def test_each_component_is_part_of_an_overlay() -> None:
    used = {
        component.rpartition("/")[2]
        for overlay in OVERLAYS
        for component in yaml.safe_load((MANIFESTS / "overlays" / overlay / "kustomization.yaml").read_text())["components"]
    }
    assert used == set(COMPONENTS)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_pod_may_do_little_and_its_flags_are_the_servers(overlay: str) -> None:
    pod = objects(overlay)["Deployment/clrk-apiserver"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    known = {flag for option in main.commands["serve"].params for flag in option.opts}
    flags = container["args"][1:]
    assert {re.split("=", flag)[0] for flag in flags} <= known


def test_the_pod_security_of_the_namespace_admits_the_pod(cluster: Cluster) -> None:
    template = objects("production")["Deployment/clrk-apiserver"]["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "try", "namespace": "clrk-system"}, "spec": template["spec"]}
    pod["spec"].pop("serviceAccountName")
    cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))


def test_production_has_replicas_that_are_never_all_away() -> None:
    production = objects("production")
    assert production["Deployment/clrk-apiserver"]["spec"]["replicas"] == 2
    assert production["PodDisruptionBudget/clrk-apiserver"]["spec"]["minAvailable"] == 1
    for name, value in production.items():
        if name.startswith("APIService/"):
            assert value["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "clrk-system/clrk-apiserver"}
