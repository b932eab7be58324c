"""`clrk-apiserver check` finds each fault that keeps kube-apiserver from our server, and nothing where nothing is wrong."""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from apiserver.__main__ import main
from apiserver.certificates import prepare_certificates
from apiserver.cluster import skew
from tests.apiserver.auth.signing import SERVER, Signed, authority
from tests.e2e.installed import SERVER_USER, Cluster

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

API_SERVICE = "apiservice/v1alpha1.clrk.apoxy.dev"
API_SERVICES = (API_SERVICE, "apiservice/v1alpha1.worker.saved.sh")
DAY = timedelta(days=1)
HOST = "other.clrk-system.svc"
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


@contextmanager
def impostor(folder: Path, certificate: Signed, *, ahead_seconds: float = 0.0, code: int = 200) -> Iterator[int]:
    """A server in our place, with this certificate and a clock that is wrong by so much, which answers with this code; gives its port."""

    class Answer(BaseHTTPRequestHandler):
        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(time.time() + ahead_seconds, usegmt=True)

        def do_HEAD(self) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            pass

    pem = folder / "impostor.pem"
    key = certificate.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(certificate.certificate.public_bytes(Encoding.PEM) + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def led_astray(cluster: Cluster, port: int, signer: Signed) -> Iterator[None]:
    """Our APIServices lead to that port inside of the block."""
    bundle = base64.b64encode(signer.certificate.public_bytes(Encoding.PEM)).decode()
    create = ("create", "service", "externalname", "other", "--external-name=localhost", f"--tcp={port}", "-n", "clrk-system")
    try:
        cluster.kubectl(*create)
        for api_service in API_SERVICES:
            cluster.kubectl("patch", api_service, *spec(service={"name": "other", "port": port}, caBundle=bundle))
        yield
    finally:
        cluster.kubectl("delete", "service/other", "-n", "clrk-system")
        cluster.register()


@pytest.mark.parametrize(
    ("begin", "end", "told"),
    [
        pytest.param(DAY, 2 * DAY, "is not valid yet: the clocks differ", id="not yet"),
        pytest.param(-2 * DAY, -DAY, "has expired, or the clocks differ", id="not any more"),
    ],
)
def test_a_certificate_of_another_time_is_told(cluster: Cluster, tmp_path: Path, begin: timedelta, end: timedelta, told: str) -> None:
    signer = authority("of the impostor")
    names = x509.SubjectAlternativeName([x509.DNSName(HOST)])
    certificate = signer.sign(HOST, purposes=SERVER, begin=begin, end=end, extensions=[names])
    with impostor(tmp_path, certificate) as port, led_astray(cluster, port, signer):
        code, output = checked(cluster)
    assert code == 1
    assert told in output


@pytest.mark.parametrize(
    ("ahead_seconds", "told"),
    [
        pytest.param(3600.0, "seconds ahead of that of kube-apiserver", id="ahead"),
        pytest.param(-3600.0, "of kube-apiserver is 3", id="behind"),
    ],
)
def test_a_clock_of_the_server_that_is_wrong_is_told(cluster: Cluster, tmp_path: Path, ahead_seconds: float, told: str) -> None:
    signer = authority("of the impostor")
    certificate = signer.sign(HOST, purposes=SERVER, extensions=[x509.SubjectAlternativeName([x509.DNSName(HOST)])])
    with impostor(tmp_path, certificate, ahead_seconds=ahead_seconds) as port, led_astray(cluster, port, signer):
        cluster.kubectl("wait", "--for=condition=Available", "--timeout=50s", *API_SERVICES)
        code, output = checked(cluster)
    assert code == 1
    assert output.startswith("The clock of ")
    assert told in output
    assert "the server" in output


def test_a_clock_of_a_server_that_trusts_no_proxy_any_more_is_told(cluster: Cluster, tmp_path: Path) -> None:
    """To a clock that is years behind, no certificate is valid yet, the front proxy's included."""
    signer = authority("of the impostor")
    certificate = signer.sign(HOST, purposes=SERVER, extensions=[x509.SubjectAlternativeName([x509.DNSName(HOST)])])
    with impostor(tmp_path, certificate, ahead_seconds=-1e8, code=401) as port, led_astray(cluster, port, signer):
        cluster.kubectl("wait", "--for=condition=Available=False", "--timeout=50s", *API_SERVICES)
        code, output = checked(cluster)
    assert code == 1
    assert re.search(r"The clock of kube-apiserver is \d{8,9} seconds ahead of that of the server", output)
    assert "kube-apiserver says of v1alpha1.clrk.apoxy.dev:" in output


def test_a_clock_here_that_is_wrong_is_told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 3600)
    code, output = checked(cluster)
    assert code == 1
    assert output.startswith("The clock of this machine is ")
    assert output.count("\n") == 1


def test_a_kube_apiserver_of_another_age_is_told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skew, "OLDEST", (1, 99))
    code, output = checked(cluster)
    assert code == 1
    assert output == "kube-apiserver is v1.37.2, older than 1.99, the oldest that this server is meant to run beside.\n"


def test_who_may_not_look_is_told_so(cluster: Cluster) -> None:
    kubeconfig = cluster.plane.kubeconfig_of(cluster.plane.client("nobody-much"))
    done = CliRunner().invoke(main, ["check", f"--kubeconfig={kubeconfig}"])
    assert done.exit_code == 1
    assert "is forbidden" in done.stderr
