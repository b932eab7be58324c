"""Our server behind a real kube-apiserver: in this process, with a kind of its own, registered as an APIService."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from apiserver.access import make_access
from apiserver.app import build_app
from apiserver.certificates import KeyPair, make_client, prepare_certificates
from apiserver.config import AuthConfig, Config
from storage.memory import MemoryStore
from tests.apiserver.running import Listening, listening
from tests.connector import Connector
from tests.controlplane.control_plane import ControlPlane

API = "/apis/example.dev/v1"
SERVER_USER = "clrk-apiserver"


@dataclass(frozen=True, slots=True)
class Aggregated:
    """Both servers."""

    plane: ControlPlane
    listening: Listening
    folder: Path

    def tls(self, url: str, identity: KeyPair | None) -> ssl.SSLContext:
        """What it takes to reach one of them with this identity."""
        authority = self.listening.pki if url == self.listening.url else self.plane.pki
        context = ssl.create_default_context(cafile=str(authority.authority.certificate_file))
        if identity is not None:
            context.load_cert_chain(identity.certificate_file, identity.key_file)
        return context

    async def ask(
        self, method: str, path: str, identity: KeyPair | None = None, *, through: bool = True, value: Any = None, headers: Any = None
    ) -> tuple[int, Any]:
        """Ask through kube-apiserver, or directly; return code and answer (text when it is no JSON)."""
        url = self.plane.url if through else self.listening.url
        connector = Connector(ssl=self.tls(url, identity))
        async with (
            aiohttp.ClientSession(url, connector=connector) as session,
            session.request(method, path, json=value, headers=headers) as response,
        ):
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" else text

    async def kubectl(self, *arguments: str, value: Any = None) -> str:
        """Run kubectl as the administrator."""
        stdin = b"" if value is None else json.dumps(value).encode()
        return (await asyncio.to_thread(self.plane.kubectl, *arguments, stdin=stdin)).decode()

    def user(self, name: str, *groups: str) -> KeyPair:
        """A user of the cluster."""
        return self.plane.client(name, *groups)

    def proxy(self, name: str = "front-proxy-client") -> KeyPair:
        """A certificate that the front proxies' authority has signed."""
        (self.folder / "proxies").mkdir(exist_ok=True)
        return make_client(self.folder / "proxies", self.plane.front_proxy.authority, name)


async def until(holds: Callable[[], Awaitable[bool]], *, seconds: float = 60.0) -> None:
    """Return when something holds at last. Nobody tells us of another process's state: it is asked for again and again."""
    async with asyncio.timeout(seconds):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.1)


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """A control plane with the permissions that our server needs in one."""
    plane = ControlPlane(folder)
    plane.start()
    try:
        plane.kubectl("create", "clusterrolebinding", "ours-delegator", "--clusterrole=system:auth-delegator", f"--user={SERVER_USER}")
        plane.kubectl("create", "clusterrole", "ours-namespaces", "--verb=get,list,watch", "--resource=namespaces")
        plane.kubectl("create", "clusterrolebinding", "ours-namespaces", "--clusterrole=ours-namespaces", f"--user={SERVER_USER}")
        reader = "--role=extension-apiserver-authentication-reader"
        # Its controllers share one identity here, which a real cluster splits into one for each with its own permissions.
        plane.kubectl("create", "clusterrolebinding", "controllers", "--clusterrole=cluster-admin", "--user=system:kube-controller-manager")
        plane.kubectl("create", "rolebinding", "ours-reader", "-n", "kube-system", reader, f"--user={SERVER_USER}")
        yield plane
    finally:
        plane.stop()


@asynccontextmanager
async def serving(
    plane: ControlPlane,
    folder: Path,
    auth: AuthConfig | None = None,
    *,
    user: str = SERVER_USER,
    base: Config | None = None,
    store: MemoryStore | None = None,
) -> AsyncIterator[Aggregated]:
    """Our server, ready, which asks kube-apiserver as this user. `base` and `store` are for other settings, kinds and limits."""
    base = base or Config(kinds=("tests.apiserver.gadgets",))
    pki = prepare_certificates(folder / "pki", ["localhost", "127.0.0.1", *base.tls.names])
    kubeconfig = plane.kubeconfig_of(plane.client(user))
    config = replace(base, data_dir=folder, auth=replace(auth or AuthConfig(), kubeconfig=kubeconfig))
    store = store or MemoryStore()
    access = make_access(config, pki.authority.certificate)
    app = build_app(config, store, access)
    async with app.running():
        await app.wait_ready()
        async with listening(pki, app.handle, app=app, trust=access.trust) as running:
            yield Aggregated(plane, running, folder)
    await store.close()


@asynccontextmanager
async def registered(server: Aggregated) -> AsyncIterator[None]:
    """Reachable through kube-apiserver until the end of the block."""
    port = server.listening.port
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "gadgets", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }  # fmt: skip
    api_service = {
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.example.dev"},
        "spec": {
            "group": "example.dev", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": True,
            "service": {"name": "gadgets", "namespace": "default", "port": port},
        },
    }  # fmt: skip
    for value in (service, api_service):
        await server.kubectl("apply", "-f", "-", value=value)
    await server.kubectl("wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1.example.dev")
    try:
        yield
    finally:
        await server.kubectl("delete", "apiservice/v1.example.dev", "service/gadgets")
