"""The servers that are compared, each a real process on loopback with TLS, driven with a `system:masters` client certificate.

kube-apiserver serves the CustomResourceDefinition of our kind; sample-apiserver is Kubernetes' own example of an aggregated server; ours
runs over SQLite and over the same etcd as the others; both sync their writes to disk. All of them are up during the whole run, so that a
scenario is done by one after the other within seconds, on a machine in the same state; one that is idle costs some percent of a core.
"""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver import kinds
from apiserver.certificates import Certificates, make_client, prepare_certificates, write_kubeconfig
from tests.bench.beat import Beat
from tests.bench.figures import TITLES
from tests.differential.twin import definition
from tests.tools import path
from tests.tools.etcd import Etcd, free_ports

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent
_START_SECONDS: Final = 180.0
_STOP_SECONDS: Final = 60.0
POOLS: Final = "/apis/clrk.apoxy.dev/v1alpha1"
FLUNDERS: Final = "/apis/wardle.example.com/v1alpha1"


@dataclass(slots=True, eq=False)
class Server:
    """One server that is compared."""

    key: str
    title: str
    command: tuple[str, ...]
    port: int
    log: Path
    client: tuple[Path, Path]
    """Certificate and key of an administrator."""
    api: str = POOLS
    plural: str = "workerpools"
    template: Path = HERE / "pool.json"
    patch: str = '{"spec":{"replicas":{i}}}'
    big_patch: str = '{"spec":{"template":{"env":[{"name":"N","value":"{i}"},{"name":"PAD","value":"{pad}"}]}}}'
    others: Mapping[str, int] = field(default_factory=dict)
    """Processes that work for it, by name, and their ids."""
    environment: Mapping[str, str] | None = None
    beat: Beat | None = None
    """How long its event loop is held, where it has one."""
    _process: subprocess.Popen[bytes] | None = None
    _context: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def applied(self) -> str:
        """The manifest of an object of the stock, without what differs from one to the other."""
        value = json.loads(self.template.read_text())
        return json.dumps({"apiVersion": value["apiVersion"], "kind": value["kind"], "spec": value["spec"]}).replace("{pad}", "")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def collection(self, namespace: str) -> str:
        """The address of the objects of a namespace."""
        return f"{self.url}{self.api}/namespaces/{namespace}/{self.plural}"

    def start(self) -> float:
        """Start it and return after how many seconds `/readyz` said yes.

        Raises:
            RuntimeError: it does not become ready.
        """
        began = time.monotonic()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self.command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
        while True:
            with suppress(OSError, HTTPException, urllib.error.URLError):
                self.ask("/readyz", timeout_seconds=5)
                return time.monotonic() - began
            if self._process.poll() is not None or time.monotonic() - began > _START_SECONDS:
                raise RuntimeError(f"{self.title} does not start:\n{self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.02)

    def wait_served(self, namespace: str) -> None:
        """Return when it answers for the objects of a namespace.

        Raises:
            urllib.error.HTTPError: it still refuses after a long time.
        """
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.ask(f"{self.collection(namespace)}?limit=1")
            except urllib.error.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop it. May be called twice."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def ask(
        self, address: str, value: Any = None, *, method: str = "", accept: str = "application/json", timeout_seconds: float = 120
    ) -> bytes:
        """Send one request, to a path or a whole address, and return the body of the answer.

        Raises:
            urllib.error.HTTPError: it was refused.
        """
        url = address if "://" in address else self.url + address
        content = None if value is None else json.dumps(value).encode()
        headers = {"Accept": accept, "Content-Type": "application/json"}
        request = urllib.request.Request(url, content, headers, method=method or None)
        with urllib.request.urlopen(request, context=self._tls(), timeout=timeout_seconds) as response:
            body: bytes = response.read()
            return body

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            # Whom we talk to is known: we have started it.
            self._context = ssl.create_default_context()
            self._context.check_hostname = False
            self._context.verify_mode = ssl.CERT_NONE
            self._context.load_cert_chain(*self.client)
        return self._context

    @property
    def pids(self) -> list[int]:
        """Its process, and those that it has started."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]

    def resident_mb(self, *, peak: bool = False) -> float:
        """The memory that it holds, or the most that it has held since `forget_peak`; what processes share counts for each of them."""
        pattern = re.compile(r"VmHWM:\s+(\d+)" if peak else r"VmRSS:\s+(\d+)")
        found = [pattern.search(Path(f"/proc/{pid}/status").read_text()) for pid in self.pids]
        return sum(int(one[1]) for one in found if one is not None) * 1024 / 1e6

    def cpu_seconds(self) -> float:
        """The CPU time that it has taken so far."""
        _, _, rest = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")
        user, system = rest.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def revive(self) -> None:
        """Start it again when it has died: what it did to one scenario, others need not suffer from."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def sockets(self) -> int:
        """How many sockets it has open."""
        folder = Path(f"/proc/{self.pid}/fd")
        return sum(str(link.readlink()).startswith("socket:") for link in folder.iterdir())

    def handshakes(self) -> float | None:
        """How many TLS handshakes it has done, when it counts them."""
        found = re.search(rb"(?m)^clrk_tls_handshakes_total (\S+)", self.ask("/metrics"))
        return float(found[1]) if found is not None else None

    def forget_peak(self) -> None:
        """Let the peak of the memory begin anew."""
        for pid in self.pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")


class Servers:
    """All servers of one run, below one folder."""

    def __init__(self, folder: Path, keys: tuple[str, ...]) -> None:
        self.folder = folder
        self.keys = keys
        self._etcd = Etcd(folder, flags=("--unsafe-no-fsync=false", "--quota-backend-bytes=8589934592", "--log-level=error"))
        self._pki: Certificates = prepare_certificates(folder / "pki", ["localhost", "127.0.0.1", "kubernetes.default.svc"])
        self._front_proxy: Certificates = prepare_certificates(folder / "front-proxy", ["localhost"])
        self.namespaces: set[str] = set()
        self._kube: Server | None = None

    @contextmanager
    def running(self) -> Iterator[dict[str, Server]]:
        """Start the servers that were asked for, and what they need; stop everything at the end of the block."""
        servers: dict[str, Server] = {}
        with ExitStack() as stack:
            if not {*self.keys} <= {"sqlite", "sqlite-compiled"}:
                self._etcd.launch()
                stack.callback(self._etcd.stop)
                _wait_healthy(self._etcd)
            ours = dict.fromkeys(("sqlite", "etcd", "workers", "sqlite-compiled", "etcd-compiled"), self._ours)
            makers = {**ours, "crd": self._kube_apiserver, "sample": self._sample_apiserver}
            # sample-apiserver asks kube-apiserver for namespaces and identities.
            needed = {*self.keys, *(("crd",) if "sample" in self.keys else ())}
            for key in [key for key in makers if key in needed]:
                server = servers[key] = makers[key](key)
                stack.callback(server.stop)
                server.start()
                if key == "crd":
                    self._define(server)
            yield {key: servers[key] for key in self.keys}

    def _ours(self, key: str) -> Server:
        (port,) = free_ports(1)
        data_dir = self.folder / f"clrk-{key}"
        client = self._client()
        beat = None if key == "workers" else self.folder / f"clrk-{key}.beat"
        command = [sys.executable, *(("-m", "apiserver") if beat is None else (str(HERE / "beat.py"), str(beat)))]
        command += ["serve", f"--data-dir={data_dir}", f"--secure-port={port}"]
        command.append(f"--client-ca-file={self._pki.authority.certificate_file}")
        command += [f"--requestheader-client-ca-file={self._front_proxy.authority.certificate_file}"]
        others: dict[str, int] = {}
        if not key.startswith("sqlite"):
            others = {"etcd": self._etcd.pid}
            command += [f"--etcd-servers={self._etcd.url}", f"--etcd-prefix=/clrk-{key}"]
        if key == "workers":
            command.append("--workers=2")
        log = self.folder / f"clrk-{key}.log"
        environment = self._installed(compiled=key.endswith("-compiled"))
        server = Server(key, TITLES[key], tuple(command), port, log, client, others=others, environment=environment)
        server.beat = None if beat is None else Beat(beat)
        return server

    def _installed(self, *, compiled: bool) -> dict[str, str]:
        """An environment in which our modules are compiled once, as an installed package's are, and not for each start from a checkout.

        `compiled`: it holds the package whose arithmetic is compiled to machine code.
        """
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        modules = path("compiled") if compiled else ROOT
        return kept | {"PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"), "PYTHONSAFEPATH": "1", "PYTHONPATH": str(modules)}

    def _kube_apiserver(self, key: str) -> Server:
        (port,) = free_ports(1)
        pki = self._pki
        proxy_client = make_client(self.folder / "front-proxy", self._front_proxy.authority, "front-proxy-client")
        service_account_key = self._service_account_key()
        command = (
            str(path("kube-apiserver")),
            f"--etcd-servers={self._etcd.url}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--cert-dir={self.folder / 'pki'}",
            f"--client-ca-file={pki.authority.certificate_file}",
            f"--tls-cert-file={pki.serving.certificate_file}",
            f"--tls-private-key-file={pki.serving.key_file}",
            f"--service-account-key-file={service_account_key}",
            f"--service-account-signing-key-file={service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--requestheader-client-ca-file={self._front_proxy.authority.certificate_file}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={proxy_client.certificate_file}",
            f"--proxy-client-key-file={proxy_client.key_file}",
        )
        log = self.folder / "kube-apiserver.log"
        self._kube = Server(key, "kube-apiserver, CRD", command, port, log, self._client(), others={"etcd": self._etcd.pid})
        return self._kube

    def _sample_apiserver(self, key: str) -> Server:
        (port,) = free_ports(1)
        kubeconfig = self.folder / "admin.kubeconfig"
        authority = self._pki.authority.certificate_file.read_bytes()
        assert self._kube is not None
        write_kubeconfig(kubeconfig, server=self._kube.url, authority_pem=authority, client=self._pki.admin)
        command = (
            str(path("sample-apiserver")),
            f"--etcd-servers={self._etcd.url}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--tls-cert-file={self._pki.serving.certificate_file}",
            f"--tls-private-key-file={self._pki.serving.key_file}",
        )
        return Server(
            key,
            "sample-apiserver",
            command,
            port,
            self.folder / "sample-apiserver.log",
            self._client(),
            api=FLUNDERS,
            plural="flunders",
            template=HERE / "flunder.json",
            patch='{"spec":{"reference":"x{i}"}}',
            big_patch='{"spec":{"reference":"x{i}{pad}"}}',
            others={"etcd": self._etcd.pid},
        )

    def _define(self, kube: Server) -> None:
        """Have kube-apiserver serve our kind."""
        (kind,) = (kind for kind in kinds.load("apiserver.kinds") if kind.plural == kube.plural)
        kube.ask("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(kind))
        kube.wait_served("default")

    @property
    def kube(self) -> Server | None:
        """kube-apiserver, when it is up."""
        return self._kube

    def make_namespace(self, name: str) -> None:
        """Make a namespace where namespaces are objects; ours knows none."""
        if self._kube is not None and name not in self.namespaces and name != "default":
            self._kube.ask("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.namespaces.add(name)

    def _client(self) -> tuple[Path, Path]:
        return self._pki.admin.certificate_file, self._pki.admin.key_file

    def _service_account_key(self) -> Path:
        file = self.folder / "service-account.key"
        pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        file.touch(mode=0o600)
        file.write_bytes(pem)
        return file


def _wait_healthy(etcd: Etcd) -> None:
    # Without the log line at level info that the tests' own wait looks for.
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with suppress(OSError), urllib.request.urlopen(f"{etcd.url}/health"):
            return
        if time.monotonic() > deadline:
            raise RuntimeError("etcd does not start")
        time.sleep(0.02)
