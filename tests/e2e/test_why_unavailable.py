"""`clrk-apiserver check` finds each fault that keeps kube-apiserver from our server, and nothing where nothing is wrong."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from apiserver.__main__ import main
from apiserver.certificates import prepare_certificates
from tests.e2e.installed import SERVER_USER, Cluster

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

API_SERVICE = "apiservice/v1alpha1.clrk.apoxy.dev"
SERVICE = ("service/clrk-apiserver", "-n", "clrk-system")


def checked(cluster: Cluster, *flags: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["check", f"--kubeconfig={cluster.plane.kubeconfig}", f"--user={SERVER_USER}", *flags])
    return done.exit_code, done.output


def spec(**fields: object) -> tuple[str, str, str]:
    return "--type=merge", "-p", json.dumps({"spec": fields})


def test_nothing_is_wrong_where_nothing_is(cluster: Cluster) -> None:
    assert checked(cluster) == (0, "Nothing is wrong.\n")


def another_authority(folder: Path) -> str:
    return base64.b64encode(prepare_certificates(folder, ["localhost"]).authority.certificate_file.read_bytes()).decode()


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        pytest.param([("delete", API_SERVICE)], "There is no APIService v1alpha1.clrk.apoxy.dev", id="no APIService"),
        pytest.param([("delete", *SERVICE)], "There is no Service clrk-system/clrk-apiserver", id="no Service"),
        pytest.param([("patch", *SERVICE, *spec(externalName="nowhere.invalid"))], "nowhere.invalid", id="DNS"),
        pytest.param([("patch", API_SERVICE, *spec(caBundle=None))], "has no caBundle", id="no authority"),
        pytest.param([("patch", API_SERVICE, *spec(caBundle=None, insecureSkipTLSVerify=True))], "insecureSkipTLSVerify", id="insecure"),
        pytest.param([("patch", API_SERVICE, *spec(caBundle="OTHER"))], "was not signed by an authority of the caBundle", id="authority"),
        pytest.param(
            [
                ("create", "service", "externalname", "other", "--external-name=localhost", "--tcp=7443", "-n", "clrk-system"),
                ("patch", API_SERVICE, *spec(service={"name": "other"})),
            ],
            "is not one for other.clrk-system.svc",
            id="TLS name",
        ),
        pytest.param(
            [("delete", "clusterrolebinding", "clrk-apiserver:auth-delegator")],
            f"{SERVER_USER} may not create subjectaccessreviews",
            id="permission to delegate",
        ),
        pytest.param(
            [("delete", "rolebinding", "-n", "kube-system", "clrk-apiserver:authentication-reader")],
            f"{SERVER_USER} may not get configmaps kube-system/extension-apiserver-authentication",
            id="permission to read authorities",
        ),
    ],
)
def test_a_fault_is_found(cluster: Cluster, tmp_path: Path, commands: list[tuple[str, ...]], told: str) -> None:
    address = cluster.serving.url.removeprefix("https://")
    try:
        for command in commands:
            cluster.kubectl(*(part.replace("OTHER", another_authority(tmp_path)) for part in command))
        # The address spares kube-apiserver's port where it is not the fault that is looked for.
        code, output = checked(cluster, *(["--address", address] if "other" in told else []))
    finally:
        cluster.kubectl("delete", "service/other", "-n", "clrk-system", "--ignore-not-found")
        cluster.kubectl("delete", API_SERVICE, "--ignore-not-found")
        cluster.register()
    assert code == 1
    assert told in output


def test_who_may_not_look_is_told_so(cluster: Cluster) -> None:
    kubeconfig = cluster.plane.kubeconfig_of(cluster.plane.client("nobody-much"))
    done = CliRunner().invoke(main, ["check", f"--kubeconfig={kubeconfig}"])
    assert done.exit_code == 1
    assert "is forbidden" in done.stderr
