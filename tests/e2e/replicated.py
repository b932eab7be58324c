"""Our server as it runs in production: replicas over one etcd behind a Service, in a cluster with controllers.

Each part can be taken away and brought back. The authorities that kube-apiserver knows, its proxy's certificate and the replicas' serving
certificate are in files of their own, to be replaced.
"""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from apiserver.certificates import Certificates, KeyPair, prepare_certificates
from tests.apiserver.process import Started, start
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.balancer import Balancer
from tests.e2e.installed import OURS, SERVER_USER, Cluster, registration, until
from tests.e2e.traffic import Tolerance, Traffic
from tests.tools.etcd import Etcd, free_ports

SERVICE_NAME = "clrk-apiserver.clrk-system.svc"
DELAY_SECONDS = 2
"""For how long a replica that ends serves on; the balancer takes a tenth of that to notice."""


class Replica:
    """One of our servers, at one port for ever, started again and again."""

    def __init__(self, data_dir: Path, port: int, *flags: str) -> None:
        self.port = port
        self._data_dir = data_dir
        self._flags = (f"--secure-port={port}", *flags)
        self._started: Started | None = None

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def running(self) -> Started:
        assert self._started is not None
        return self._started

    def start(self, *flags: str) -> None:
        """Start it and return when it is ready."""
        self._started = start(self._data_dir, *self._flags, *flags)

    def tell(self) -> None:
        """Tell it to end, and return at once."""
        self.running.process.terminate()

    def wait(self) -> None:
        """Return when it has ended, as it must, well."""
        self.running.wait(quiet=False)
        self._started = None

    def end(self) -> None:
        """Tell it to end, and return when it has. May be called when it does not run."""
        if self._started is not None:
            self.tell()
            self.wait()

    def kill(self) -> None:
        """End it as a crash does."""
        self.running.kill()
        self._started = None


@dataclass(frozen=True, slots=True)
class Files:
    """What is read again when it changes."""

    client_authorities: Path
    front_proxy_authorities: Path
    proxy_certificate: Path
    proxy_key: Path
    serving_certificate: Path
    serving_key: Path


@dataclass(frozen=True, slots=True)
class Replicated:
    """All of it."""

    cluster: Cluster
    etcd: Etcd
    replicas: tuple[Replica, ...]
    balancer: Balancer
    files: Files
    pki: Certificates
    """Of the serving certificate."""

    @property
    def plane(self) -> ControlPlane:
        return self.cluster.plane

    def tls(self, client: KeyPair | None = None) -> ssl.SSLContext:
        """A context that reaches a replica with this identity, the administrator's when none is given."""
        client = client or self.plane.pki.admin
        context = ssl.create_default_context(cafile=str(self.pki.authority.certificate_file))
        context.load_cert_chain(client.certificate_file, client.key_file)
        return context

    def clients(self, namespace: str, tolerance: Tolerance) -> Traffic:
        """Clients of kube-apiserver, in a namespace of their own."""
        self.cluster.namespace(namespace)
        return Traffic(self.plane.url, self.plane.tls(self.plane.pki.admin), namespace, tolerance)

    def direct_clients(self, namespace: str, replica: Replica, tolerance: Tolerance) -> Traffic:
        """Clients of one replica, in a namespace of their own."""
        self.cluster.namespace(namespace)
        return Traffic(replica.url, self.tls(), namespace, tolerance)

    def wait_ready(self, *replicas: Replica) -> None:
        """Return when the Service leads to these replicas (all when none are named)."""
        self.balancer.wait(ready={replica.port for replica in replicas or self.replicas})

    def wait_available(self) -> None:
        """Return when kube-apiserver sends requests to us."""
        self.cluster.kubectl("wait", "--for=condition=Available", "--timeout=50s", *OURS)


@asynccontextmanager
async def without(away: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Be without a part during the block, while clients in this loop work on: taking it away and bringing it back takes seconds."""
    await asyncio.to_thread(away.__enter__)
    try:
        yield
    finally:
        await asyncio.to_thread(away.__exit__, None, None, None)


def put(pair: KeyPair, certificate: Path, key: Path) -> None:
    """Have both files hold this pair."""
    shutil.copyfile(pair.key_file, key)
    shutil.copyfile(pair.certificate_file, certificate)


@contextmanager
def replicated(folder: Path) -> Iterator[Replicated]:
    """Two replicas that are available, and controllers that have known them from their start."""
    pki = prepare_certificates(folder / "serving", [SERVICE_NAME, "localhost"])
    files = Files(*(folder / name for name in ("client-ca", "proxy-ca", "proxy.crt", "proxy.key", "serving.crt", "serving.key")))
    plane = ControlPlane(
        folder,
        flags=(
            f"--client-ca-file={files.client_authorities}",
            f"--requestheader-client-ca-file={files.front_proxy_authorities}",
            f"--proxy-client-cert-file={files.proxy_certificate}",
            f"--proxy-client-key-file={files.proxy_key}",
            # Has it say when it has read the proxy's certificate anew.
            "--vmodule=dynamic_serving_content=2",
        ),
    )
    shutil.copyfile(plane.pki.authority.certificate_file, files.client_authorities)
    shutil.copyfile(plane.front_proxy.authority.certificate_file, files.front_proxy_authorities)
    put(plane.proxy_client, files.proxy_certificate, files.proxy_key)
    put(pki.serving, files.serving_certificate, files.serving_key)
    (folder / "ours").mkdir()
    etcd = Etcd(folder / "ours")
    flags = (
        f"--etcd-servers={etcd.url}",
        f"--kubeconfig={plane.kubeconfig_of(plane.client(SERVER_USER))}",
        f"--tls-cert-file={files.serving_certificate}",
        f"--tls-private-key-file={files.serving_key}",
        f"--shutdown-delay-duration={DELAY_SECONDS}s",
    )
    replicas = tuple(Replica(folder / f"replica-{number}", port, *flags) for number, port in enumerate(free_ports(2)))
    balancer = Balancer([replica.port for replica in replicas])
    with ExitStack() as stack:
        stack.callback(plane.stop)
        plane.start()
        stack.callback(etcd.stop)
        etcd.start()
        stack.callback(balancer.stop)
        balancer.start()
        # Its controllers share one identity here, which a real cluster splits into one for each with its own permissions.
        plane.kubectl("create", "clusterrolebinding", "controllers", "--clusterrole=cluster-admin", "--user=system:kube-controller-manager")
        authority = f"--ca-file={pki.authority.certificate_file}"
        registered = registration(authority, "--external-name=localhost", f"--port={balancer.port}", f"--user={SERVER_USER}")
        permissions, _, _ = registered.partition("apiVersion: apiregistration.k8s.io/v1\n")
        plane.kubectl("apply", "--server-side", "-f", "-", stdin=permissions.encode())
        for replica in replicas:
            stack.callback(replica.end)
            replica.start()
        cluster = Cluster(plane, replicas[0].running.serving, registered)
        everything = Replicated(cluster, etcd, replicas, balancer, files, pki)
        everything.wait_ready()
        cluster.register()
        plane.start_controller_manager()
        until(lambda: "workerpools" in cluster.kubectl("get", "clusterrole", "view", "-o", "yaml"))
        yield everything
        cluster.kubectl("delete", *OURS)
