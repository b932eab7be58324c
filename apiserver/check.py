"""Why kube-apiserver does not reach this server: what `clrk-apiserver check` looks at, and how it puts what it finds.

Looks as an administrator, from where it is started, and changes nothing. It looks at everything, whatever kube-apiserver says of the
APIService: that may be what was true half a minute ago.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from apiserver.cluster.client import ClusterClient, ClusterError, clock_at
from apiserver.cluster.skew import HERE, Clock, of_clocks, of_versions
from apiserver.endpoints.version import KUBERNETES

_CONNECT_SECONDS: Final = 10.0
_NOT_YET_VALID, _EXPIRED, _OTHER_NAME = 9, 10, 62
_NEEDED: Final = (
    ("create", "authentication.k8s.io", "tokenreviews", "", ""),
    ("create", "authorization.k8s.io", "subjectaccessreviews", "", ""),
    ("get", "", "configmaps", "kube-system", "extension-apiserver-authentication"),
    ("watch", "", "configmaps", "kube-system", "extension-apiserver-authentication"),
    ("list", "", "namespaces", "", ""),
    ("watch", "", "namespaces", "", ""),
)
"""What the server asks kube-apiserver for: verb, group, resource, namespace, name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What should be there."""

    api_services: tuple[str, ...]
    """Names of the APIServices."""
    user: str
    groups: tuple[str, ...]
    """As whom the server asks kube-apiserver."""
    address: str = ""
    """HOST:PORT at which the server can be reached from here; empty: where an ExternalName leads, if the Service is one."""


@dataclass(frozen=True, slots=True)
class _Behind:
    """What is expected behind a Service."""

    path: str
    """Where kube-apiserver sends requests on to it."""
    bundle: bytes
    """PEM of the authorities that may have signed its certificate; empty: any."""
    clock: Clock
    """Of kube-apiserver."""


async def faults(client: ClusterClient, installation: Installation) -> AsyncIterator[str]:
    """Everything that is wrong, a sentence each.

    Raises:
        ClusterError: kube-apiserver does not answer, or does not let us look.
    """
    fault = of_versions(await client.get("/version"), KUBERNETES)
    if fault:
        yield fault
    clock = await client.clock("/version")
    fault = of_clocks("this machine", HERE, "kube-apiserver", clock)
    if fault:
        yield fault
    services: dict[tuple[str, str, int], _Behind] = {}
    for name in installation.api_services:
        api_service = await _found(client, f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")
        if api_service is None:
            yield f"There is no APIService {name}: apply what `clrk-apiserver manifests` prints."
            continue
        async for fault in _of_api_service(name, api_service):
            yield fault
        spec = api_service["spec"]
        if service := spec.get("service"):
            address = (service["namespace"], service["name"], service.get("port", 443))
            bundle = b"" if spec.get("insecureSkipTLSVerify") else _bundle(spec)
            services.setdefault(address, _Behind(f"/apis/{spec['group']}/{spec['version']}", bundle, clock))
    for (namespace, service_name, port), behind in services.items():
        async for fault in _of_service(client, installation, namespace, service_name, port, behind):
            yield fault
    async for fault in _of_permissions(client, installation):
        yield fault


async def _found(client: ClusterClient, path: str) -> dict[str, Any] | None:
    try:
        return await client.get(path)
    except ClusterError as error:
        if error.code == 404:
            return None
        raise


def _bundle(spec: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(spec.get("caBundle") or "")
    except binascii.Error:
        return b""


async def _of_api_service(name: str, api_service: dict[str, Any]) -> AsyncIterator[str]:
    spec = api_service["spec"]
    for condition in api_service.get("status", {}).get("conditions") or ():
        if condition["type"] == "Available" and condition["status"] != "True":
            yield f"kube-apiserver says of {name}: {condition.get('message') or condition.get('reason')}"
    if not spec.get("service"):
        yield f"The APIService {name} names no Service: kube-apiserver serves this group itself, as for a CustomResourceDefinition."
    elif spec.get("insecureSkipTLSVerify"):
        yield f"The APIService {name} has insecureSkipTLSVerify: whoever answers in the server's place sees what users send."
    elif not spec.get("caBundle"):
        yield f"The APIService {name} has no caBundle: apply what `clrk-apiserver manifests` prints, or ask cert-manager."


async def _of_service(
    client: ClusterClient, installation: Installation, namespace: str, name: str, port: int, behind: _Behind
) -> AsyncIterator[str]:
    service = await _found(client, f"/api/v1/namespaces/{namespace}/services/{name}")
    if service is None:
        yield f"There is no Service {namespace}/{name}."
        return
    spec = service["spec"]
    if port not in {each["port"] for each in spec.get("ports") or ()}:
        yield f"The Service {namespace}/{name} has no port {port}, to which the APIService leads."
    external = spec.get("type") == "ExternalName"
    if not external and not await _has_endpoint(client, namespace, name):
        yield f"Nothing is ready behind the Service {namespace}/{name}: see `kubectl get pods -n {namespace}` and their logs."
    address = installation.address or (f"{spec['externalName']}:{port}" if external else "")
    if address:
        fault = await _of_connection(address, behind.bundle, f"{name}.{namespace}.svc")
        if fault:
            yield fault
    fault = await _of_clock(client, address, behind)
    if fault:
        yield fault


async def _of_clock(client: ClusterClient, address: str, behind: _Behind) -> str:
    """What is wrong with the server's clock, for which kube-apiserver may not get through to it; that it does not is said elsewhere."""
    try:
        clock = await client.clock(behind.path)
    except ClusterError:
        if not address:
            return ""
        try:
            clock = await clock_at(f"https://{address}/livez")
        except ClusterError:
            return ""
    return of_clocks("the server", clock, "kube-apiserver", behind.clock)


async def _has_endpoint(client: ClusterClient, namespace: str, name: str) -> bool:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{name}"
    slices = await client.get(path)
    endpoints = [endpoint for one in slices.get("items") or () for endpoint in one.get("endpoints") or ()]
    return any(endpoint.get("conditions", {}).get("ready") is not False for endpoint in endpoints)


async def _of_connection(address: str, bundle: bytes, server_name: str) -> str:
    """What is wrong with a connection as kube-apiserver would make it; empty: nothing. Without a bundle, only whether there is one."""
    host, _, port = address.rpartition(":")
    # Not ssl.create_default_context: it is stricter about authorities than kube-apiserver is.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if bundle:
            context.load_verify_locations(cadata=bundle.decode())
        else:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    except (ssl.SSLError, ValueError):
        return "The caBundle of the APIService is no PEM with certificates."
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context, server_hostname=server_name)
    except ssl.SSLCertVerificationError as error:
        return _of_certificate(address, server_name, error)
    except TimeoutError:
        return f"{address} does not answer: is there a firewall, or a NetworkPolicy?"
    except (OSError, ValueError) as error:
        return f"{address} cannot be reached from here: {error}"
    writer.transport.abort()
    return ""


def _of_certificate(address: str, server_name: str, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _OTHER_NAME:
        return f"The certificate at {address} is not one for {server_name}, to which kube-apiserver holds it: see --tls-san."
    if error.verify_code == _EXPIRED:
        return f"The certificate at {address} has expired, or the clocks differ."
    if error.verify_code == _NOT_YET_VALID:
        return f"The certificate at {address} is not valid yet: the clocks differ."
    return (
        f"The certificate at {address} was not signed by an authority of the caBundle ({error.verify_message}): "
        "apply anew what `clrk-apiserver manifests` prints."
    )


async def _of_permissions(client: ClusterClient, installation: Installation) -> AsyncIterator[str]:
    for verb, group, resource, namespace, name in _NEEDED:
        attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": installation.user, "groups": list(installation.groups), "resourceAttributes": attributes},
        }
        answer = await client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        if not answer.get("status", {}).get("allowed"):
            yield f"{installation.user} may not {verb} {resource}{f' {namespace}/{name}' if name else ''}, which the server needs to."
    config = await _found(client, "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
    if config is None or "requestheader-client-ca-file" not in (config.get("data") or {}):
        yield "kube-apiserver has no front proxy: it needs --requestheader-client-ca-file and --proxy-client-cert-file to reach any server."
