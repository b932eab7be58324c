"""etcd, kube-apiserver and, when it is wanted, kube-controller-manager: real ones on free ports, with certificates made here.

All state is below one folder; what was started is stopped by its process id. The aggregation layer is set up (front-proxy authority and
client, request headers), service account keys are there, and RBAC decides. Nobody else is needed to register an APIService.
"""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.certificates import Certificates, KeyPair, make_client, prepare_certificates, write_kubeconfig
from tests.tools import path
from tests.tools.etcd import Etcd, free_ports

_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 30.0
_CONTROLLERS: Final = (
    "garbage-collector-controller",
    "namespace-controller",
    "horizontal-pod-autoscaler-controller",
    "disruption-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "resourcequota-controller",
)


class ControlPlane:
    """One control plane. `flags` are added to kube-apiserver's command line; `names` to those that its certificate carries."""

    def __init__(self, folder: Path, *, flags: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.pki: Certificates = prepare_certificates(folder / "pki", ["localhost", "127.0.0.1", "kubernetes.default.svc", *names])
        self.front_proxy: Certificates = prepare_certificates(folder / "front-proxy", ["localhost"])
        self.proxy_client: KeyPair = make_client(folder / "front-proxy", self.front_proxy.authority, "front-proxy-client")
        self.flags = flags
        (self._port,) = free_ports(1)
        self._etcd = Etcd(folder)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def etcd_url(self) -> str:
        return self._etcd.url

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.kubeconfig_of(self.pki.admin)

    def client(self, user: str, *groups: str) -> KeyPair:
        """A client certificate for a user in these groups."""
        return make_client(self.folder / "pki", self.pki.authority, user, groups)

    def kubeconfig_of(self, client: KeyPair) -> Path:
        """A kubeconfig with this identity."""
        file = self.folder / f"{client.certificate_file.stem}.kubeconfig"
        authority = self.pki.authority.certificate_file.read_bytes()
        write_kubeconfig(file, server=self.url, authority_pem=authority, client=client)
        return file

    def tls(self, client: KeyPair) -> ssl.SSLContext:
        """A client's context that trusts kube-apiserver and proves this identity."""
        context = ssl.create_default_context(cafile=str(self.pki.authority.certificate_file))
        context.load_cert_chain(client.certificate_file, client.key_file)
        return context

    def kubectl(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run kubectl as the administrator and return what it wrote.

        Raises:
            subprocess.CalledProcessError: it failed.
        """
        command = [str(path("kubectl")), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    def start(self) -> None:
        """Start etcd and kube-apiserver and return when it is ready.

        Raises:
            RuntimeError: one of them does not start; nothing is left running.
        """
        try:
            self._etcd.start()
            self._launch_api_server()
            self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def _launch_api_server(self) -> None:
        pki, key_file = self.folder / "pki", self._service_account_key()
        self._launch(
            "kube-apiserver",
            f"--etcd-servers={self._etcd.url}",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--cert-dir={pki}",
            f"--client-ca-file={self.pki.authority.certificate_file}",
            f"--tls-cert-file={self.pki.serving.certificate_file}",
            f"--tls-private-key-file={self.pki.serving.key_file}",
            f"--service-account-key-file={key_file}",
            f"--service-account-signing-key-file={key_file}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--requestheader-client-ca-file={self.front_proxy.authority.certificate_file}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self.proxy_client.certificate_file}",
            f"--proxy-client-key-file={self.proxy_client.key_file}",
            *self.flags,
        )

    def start_controller_manager(self) -> None:
        """Start the controllers that look after objects of any kind: garbage collection, namespaces, quota, scaling, disruption."""
        # One identity for all controllers: their own roles are those of service accounts.
        kubeconfig = self.kubeconfig_of(self.client("system:kube-controller-manager", "system:masters"))
        self._launch(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={self._service_account_key()}",
            f"--root-ca-file={self.pki.authority.certificate_file}",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_ports(1)[0]}",
            f"--controllers={','.join(_CONTROLLERS)}",
            "--horizontal-pod-autoscaler-sync-period=1s",
        )

    @contextmanager
    def away(self) -> Iterator[None]:
        """Be without kube-apiserver inside of the block: it is killed, and ready again at the end."""
        self._kill("kube-apiserver")
        try:
            yield
        finally:
            self._launch_api_server()
            self._wait_ready()

    @contextmanager
    def etcd_away(self) -> Iterator[None]:
        """Be without kube-apiserver's etcd inside of the block: it is killed, and kube-apiserver ready again at the end."""
        self._etcd.stop()
        try:
            yield
        finally:
            self._etcd.start()
            self._wait_ready()

    @contextmanager
    def controllers_away(self) -> Iterator[None]:
        """Be without controllers inside of the block: they are killed, and started again at the end."""
        self._kill("kube-controller-manager")
        try:
            yield
        finally:
            self.start_controller_manager()

    def stop(self) -> None:
        """Stop what was started, last first. May be called twice."""
        while self._processes:
            _, process = self._processes.popitem()
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._etcd.stop()

    def _launch(self, program: str, *arguments: str) -> None:
        with (self.folder / f"{program}.log").open("ab") as log:
            self._processes[program] = subprocess.Popen([str(path(program)), *arguments], stdout=log, stderr=log)

    def _kill(self, program: str) -> None:
        process = self._processes[program]  # it keeps its place in the order in which all are stopped
        process.kill()
        process.wait()

    def _wait_ready(self) -> None:
        deadline, context = time.monotonic() + _START_SECONDS, self.tls(self.pki.admin)
        while True:
            with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(f"{self.url}/readyz", context=context):
                return
            if self._processes["kube-apiserver"].poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "kube-apiserver.log").read_text(errors="replace")
                raise RuntimeError(f"kube-apiserver does not start:\n{log[-4000:]}")
            time.sleep(0.1)

    def _service_account_key(self) -> Path:
        file = self.folder / "service-account.key"
        if not file.exists():
            pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
                opened.write(pem)
        return file
