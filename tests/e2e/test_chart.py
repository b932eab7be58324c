"""The chart says what kustomize says, and Helm installs it, upgrades it, and takes it away without leaving an APIService behind."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.cluster.skew import OLDEST
from apiserver.manifests import NAME, NAMESPACE
from tests.apiserver.process import ROOT, serving
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.installed import OURS, until
from tests.tools import path
from tests.tools.etcd import free_ports

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.usefixtures("programs")]

CHART = ROOT / "manifests"
EVERYTHING = ("etcd", "serving-certificate", "cert-manager", "ha", "network-policy", "service-monitor")
AS_IT_IS = ("--set=image.tag=latest", "--set=sqlite.keep=false")
"""What the chart does beyond the manifests is left out."""


def helm(*arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)} if kubeconfig is not None else {"HOME": "/nonexistent"}
    command = [str(path("helm")), *arguments]
    return subprocess.run(command, env=os.environ | home, cwd=ROOT, capture_output=True, text=True, check=False)


def templated(*values: str) -> dict[str, Any]:
    done = helm("template", "ours", str(CHART), f"--namespace={NAMESPACE}", *values)
    assert done.returncode == 0, done.stderr
    return named(done.stdout)


def named(text: str) -> dict[str, Any]:
    return {f"{value['kind']}/{value['metadata']['name']}": value for value in yaml.safe_load_all(text) if value["kind"] != "Namespace"}


def kustomized(folder: Path, components: tuple[str, ...]) -> dict[str, Any]:
    manifests = os.path.relpath(CHART, folder)
    overlay = {"resources": [f"{manifests}/base"], "components": [f"{manifests}/components/{name}" for name in components]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return named(subprocess.run([str(path("kubectl")), "kustomize", str(folder)], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize(
    ("values", "components"),
    [
        pytest.param((), ("sqlite", "serving-certificate"), id="as it comes"),
        pytest.param(("--set=networkPolicy=true",), ("sqlite", "serving-certificate", "network-policy"), id="closed in"),
        pytest.param(("--set=store=etcd",), ("etcd", "serving-certificate"), id="etcd"),
        pytest.param(
            ("--set=store=etcd,replicas=2,networkPolicy=true,serviceMonitor=true,certificate.from=cert-manager",),
            EVERYTHING,
            id="everything",
        ),
    ],
)
def test_t123_the_chart_is_what_kustomize_makes_of_the_same_components(
    tmp_path: Path, values: tuple[str, ...], components: tuple[str, ...]
) -> None:
    objects = templated(*AS_IT_IS, *values)
    if "cert-manager" not in components:
        secret = objects.pop(f"Secret/{NAME}-serving")
        for name, value in objects.items():
            if name.startswith("APIService/"):
                assert value["spec"].pop("caBundle") == secret["data"]["ca.crt"]
    assert objects == kustomized(tmp_path, components)


def test_values_are_where_they_belong() -> None:
    values = {
        "image": {"repository": "registry.example/ours", "tag": "v1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}],
        "replicas": 3,
        "podDisruptionBudget": {"minAvailable": "50%"},
        "store": "etcd",
        "etcd": {"servers": ["https://a:2379", "https://b:2379"], "secretName": "other"},
        "certificate": {"from": "secret", "secretName": "given", "caBundle": "an authority"},
        "resources": {"limits": {"memory": "2Gi"}},
        "args": ["--access-log=json"],
    }
    objects = templated("--namespace=elsewhere", *(f"--set-json={name}={json.dumps(value)}" for name, value in values.items()))
    assert {value["metadata"].get("namespace", "elsewhere") for value in objects.values()} == {"elsewhere", "kube-system"}
    deployment = objects[f"Deployment/{NAME}"]["spec"]
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    assert deployment["replicas"] == 3
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example/ours:v1", "Always")
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert container["resources"] == {"limits": {"memory": "2Gi"}}
    assert {"--etcd-servers=https://a:2379,https://b:2379", "--access-log=json"} <= set(container["args"])
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
    assert secrets == {"etcd": "other", "serving": "given"}
    assert objects[f"PodDisruptionBudget/{NAME}"]["spec"]["minAvailable"] == "50%"
    bundles = {value["spec"]["caBundle"] for name, value in objects.items() if name.startswith("APIService/")}
    assert {b64decode(bundle) for bundle in bundles} == {b"an authority"}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        pytest.param("replicas=2", "several replicas need etcd", id="a file for two"),
        pytest.param("certificate.from=secret", "needs certificate.caBundle", id="no authority"),
        pytest.param("replica=2", "replica", id="a value that there is not"),
        pytest.param("store=memory", "store", id="a store that there is not"),
        pytest.param("store=etcd,etcd.servers={http://a:2379}", "servers", id="an etcd without TLS"),
    ],
)
def test_values_that_contradict_are_refused(values: str, told: str) -> None:
    done = helm("template", "ours", str(CHART), f"--set={values}")
    assert done.returncode != 0
    assert told in done.stderr


def test_helm_finds_nothing_to_complain_of_and_versions_are_the_packages() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert chart["kubeVersion"] == f">={OLDEST[0]}.{OLDEST[1]}.0-0"


@pytest.fixture(scope="module")
def plane(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own, in which nothing of ours is."""
    plane = ControlPlane(tmp_path_factory.mktemp("plane"))
    plane.start()
    try:
        plane.kubectl("create", "clusterrolebinding", "controllers", "--clusterrole=cluster-admin", "--user=system:kube-controller-manager")
        plane.start_controller_manager()
        yield plane
    finally:
        plane.stop()


def test_t123_installed_upgraded_and_uninstalled(plane: ControlPlane, tmp_path: Path) -> None:
    """No node runs the pod here: our server is a process, with the certificate and the identity that the chart has made."""

    def run(*arguments: str) -> None:
        done = helm(*arguments, f"--namespace={NAMESPACE}", kubeconfig=plane.kubeconfig)
        assert done.returncode == 0, done.stdout + done.stderr

    def got(*arguments: str) -> Any:
        return json.loads(plane.kubectl("get", *arguments, "-o", "json"))

    run("install", "ours", str(CHART), "--create-namespace")
    bundles = [one["spec"]["caBundle"] for one in got(*OURS)["items"]]
    assert len(bundles) == 2
    run("upgrade", "ours", str(CHART), "--set=networkPolicy=true")
    assert [one["spec"]["caBundle"] for one in got(*OURS)["items"]] == bundles, "the certificate stays"
    plane.kubectl("get", "networkpolicy", NAME, "-n", NAMESPACE)

    for key, content in got("secret", f"{NAME}-serving", "-n", NAMESPACE)["data"].items():
        (tmp_path / key).write_bytes(b64decode(content))
    kubeconfig = with_token(plane, plane.kubectl("create", "token", NAME, "-n", NAMESPACE).decode(), tmp_path)
    (port,) = free_ports(1)
    certificate = (f"--tls-cert-file={tmp_path / 'tls.crt'}", f"--tls-private-key-file={tmp_path / 'tls.key'}")
    with serving(tmp_path / "data", f"--secure-port={port}", f"--kubeconfig={kubeconfig}", *certificate):
        lead_to(plane, port)
        plane.kubectl("wait", "--for=condition=Available", "--timeout=60s", *OURS)
        plane.kubectl("create", "-f", str(CHART / "samples" / "workerpool.yaml"), "-n", "default")
        assert b"agents" in plane.kubectl("get", "workerpools", "-n", "default")
        plane.kubectl("delete", "workerpools", "--all", "-n", "default")
    # The server is gone now, the APIServices go next, and nobody waits for either.
    run("uninstall", "ours")
    assert got(*OURS)["items"] == []
    kinds = "clusterroles,clusterrolebindings,rolebindings,serviceaccounts,services,deployments,networkpolicies,secrets,pvc"
    left = plane.kubectl("get", kinds, "-A", "-l", f"app.kubernetes.io/name={NAME}", "-o", "name").decode().split()
    assert left == [f"persistentvolumeclaim/{NAME}"], "the objects stay, since sqlite.keep is set"
    until(lambda: b"workerpools" not in plane.kubectl("api-resources", "--cached=false", "-o", "name"))
    plane.kubectl("create", "namespace", "afterwards")
    plane.kubectl("delete", "namespace", "afterwards", "--timeout=50s")


def with_token(plane: ControlPlane, token: str, folder: Path) -> Path:
    """The administrator's kubeconfig with another identity."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = folder / "token.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def lead_to(plane: ControlPlane, port: int) -> None:
    """Let the Service lead to a port of this machine."""
    ports = [{"name": "https", "port": port}]
    external = {
        "type": "ExternalName",
        "externalName": "localhost",
        "clusterIP": None,
        "clusterIPs": None,
        "selector": None,
        "ports": ports,
    }
    plane.kubectl("patch", f"service/{NAME}", "-n", NAMESPACE, "--type=merge", "-p", json.dumps({"spec": external}))
    for api_service in json.loads(plane.kubectl("get", *OURS, "-o", "json"))["items"]:
        target = json.dumps({"spec": {"service": {"port": port}}})
        plane.kubectl("patch", f"apiservice/{api_service['metadata']['name']}", "--type=merge", "-p", target)
