"""What a cluster must be told to find this server: the objects that `clrk-apiserver manifests` prints.

Made from the kinds that are served, so that no group version is without its APIService and no kind without its permissions. APIServices
come last: kube-apiserver sends requests as soon as it has them. `manifests/base/registration.yaml` is what this module says by default.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from apiserver.meta.resource import ResourceKind

NAME = "clrk-apiserver"
NAMESPACE = "clrk-system"
SERVICE_PORT = 443

Manifest = dict[str, Any]

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_RBAC = "rbac.authorization.k8s.io"
# Beside each other for all groups: which version kubectl prefers is decided by the versions' names then, alpha after beta after stable.
_GROUP_PRIORITY = 1000
_VERSION_PRIORITY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Where the server is, and who it is."""

    namespace: str = NAMESPACE
    """Where its Service and its ServiceAccount are."""
    external_name: str = ""
    """A host outside of the cluster that the Service leads to; empty: to the pods of the Deployment."""
    port: int = SERVICE_PORT
    """The port of the Service. With an external name it is the server's own port: nothing in between could change it."""
    user: str = ""
    """The user as whom it asks kube-apiserver; empty: the ServiceAccount."""
    ca_bundle: bytes = b""
    """PEM of the authorities that may have signed its serving certificate; empty: left to be filled in by others."""


def manifests(kinds: Iterable[ResourceKind], registration: Registration) -> str:
    """All objects as YAML, in the order in which they are to be applied."""
    served = list(kinds)
    objects = [
        _object("v1", "Namespace", registration.namespace, labels={"pod-security.kubernetes.io/enforce": "restricted"}),
        *_identity(registration),
        *_permissions_of_users(served),
        _service(registration),
        *(_api_service(kind.group, kind.version, registration) for kind in _one_of_each_version(served)),
    ]
    return yaml.safe_dump_all(objects, sort_keys=False, width=140)


def service_account(namespace: str) -> tuple[str, tuple[str, ...]]:
    """The user that the server's ServiceAccount is, and its groups."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return f"system:serviceaccount:{namespace}:{NAME}", groups


def _one_of_each_version(kinds: list[ResourceKind]) -> Iterable[ResourceKind]:
    return {kind.api_version: kind for kind in kinds}.values()


def _object(api_version: str, kind: str, name: str, *, namespace: str = "", labels: dict[str, str] | None = None, **rest: Any) -> Manifest:
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **place, "labels": {"app.kubernetes.io/name": NAME, **(labels or {})}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _identity(registration: Registration) -> Iterable[Manifest]:
    """Who the server is, and the three things that it asks kube-apiserver for."""
    if not registration.user:
        yield _object("v1", "ServiceAccount", NAME, namespace=registration.namespace)
    yield _object(
        f"{_RBAC}/v1", "ClusterRole", f"{NAME}:namespaces", rules=[{"apiGroups": [""], "resources": ["namespaces"], "verbs": _READ}]
    )
    yield _binding("ClusterRoleBinding", f"{NAME}:namespaces", f"ClusterRole/{NAME}:namespaces", registration)
    yield _binding("ClusterRoleBinding", f"{NAME}:auth-delegator", "ClusterRole/system:auth-delegator", registration)
    # The role is there in every cluster, beside the ConfigMap that it opens.
    yield _binding(
        "RoleBinding",
        f"{NAME}:authentication-reader",
        "Role/extension-apiserver-authentication-reader",
        registration,
        namespace="kube-system",
    )


def _binding(kind: str, name: str, role: str, registration: Registration, **rest: Any) -> Manifest:
    role_kind, _, role_name = role.partition("/")
    subject = (
        {"apiGroup": _RBAC, "kind": "User", "name": registration.user}
        if registration.user
        else {"kind": "ServiceAccount", "name": NAME, "namespace": registration.namespace}
    )
    role_ref = {"apiGroup": _RBAC, "kind": role_kind, "name": role_name}
    return _object(f"{_RBAC}/v1", kind, name, roleRef=role_ref, subjects=[subject], **rest)


def _permissions_of_users(kinds: list[ResourceKind]) -> Iterable[Manifest]:
    """What the cluster's own roles view, edit and admin get: all but the status, which belongs to the operators of the kinds."""
    for role, receivers, verbs, scale_verbs in (
        ("view", ("view", "edit", "admin"), _READ, ["get"]),
        ("edit", ("edit", "admin"), _WRITE, ["get", "patch", "update"]),
    ):
        labels = {f"{_RBAC}/aggregate-to-{receiver}": "true" for receiver in receivers}
        rules = [rule for kind in _one_of_each_resource(kinds) for rule in _rules(kind, verbs, scale_verbs)]
        yield _object(f"{_RBAC}/v1", "ClusterRole", f"{NAME}:{role}", labels=labels, rules=rules)


def _one_of_each_resource(kinds: list[ResourceKind]) -> Iterable[ResourceKind]:
    return {kind.group_resource: kind for kind in kinds}.values()


def _rules(kind: ResourceKind, verbs: list[str], scale_verbs: list[str]) -> Iterable[Manifest]:
    yield {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)}
    if kind.scale is not None:
        yield {"apiGroups": [kind.group], "resources": [f"{kind.plural}/scale"], "verbs": list(scale_verbs)}


def _service(registration: Registration) -> Manifest:
    spec: Manifest
    if registration.external_name:
        spec = {"type": "ExternalName", "externalName": registration.external_name, "ports": [{"name": "https", "port": registration.port}]}
    else:
        ports = [{"name": "https", "port": registration.port, "targetPort": "https"}]
        spec = {"selector": {"app.kubernetes.io/name": NAME}, "ports": ports}
    return _object("v1", "Service", NAME, namespace=registration.namespace, spec=spec)


def _api_service(group: str, version: str, registration: Registration) -> Manifest:
    spec: Manifest = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": _GROUP_PRIORITY,
        "versionPriority": _VERSION_PRIORITY,
        "service": {"name": NAME, "namespace": registration.namespace, "port": registration.port},
    }
    if registration.ca_bundle:
        spec["caBundle"] = base64.b64encode(registration.ca_bundle).decode()
    return _object("apiregistration.k8s.io/v1", "APIService", f"{version}.{group}", spec=spec)
