"""Discovery: which groups, versions and resources there are, in the classic form and in the aggregated one.

Documents are made once from the kinds and depend on nothing else: a server whose store is away still tells what it serves. The words are
those that kube-apiserver has for custom resources. Aggregated documents have an ETag, and all answers vary by Accept.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/discovery/aggregated/wrapper.go
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from apiserver.endpoints.negotiation import Target, negotiate_conversion, negotiate_document, render, response_headers
from apiserver.meta import errors, protobuf

if TYPE_CHECKING:
    from apiserver.meta.resource import ResourceKind
    from apiserver.registry.forms import Form
    from apiserver.request import Call, Handler

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
SUBRESOURCE_VERBS = ("get", "patch", "update")
_AGGREGATED = tuple(("apidiscovery.k8s.io", version, "APIGroupDiscoveryList") for version in ("v2", "v2beta1"))
"""What the root can be converted to. Clients and aggregators from before Kubernetes 1.30 know the beta only."""
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def make(kinds: Sequence[ResourceKind]) -> dict[str, Handler]:
    """The handlers of discovery by path, for these kinds."""
    groups = _groups(kinds)
    classic = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, versions) for name, versions in groups.items()]}
    handlers = {"/apis": _root(_Document(classic), {target: _Aggregated(groups, target) for target in _AGGREGATED})}
    for name, versions in groups.items():
        handlers[f"/apis/{name}"] = _answer(_Document({"kind": "APIGroup", "apiVersion": "v1"} | _group(name, versions)))
        for version, served in versions.items():
            resources = [resource for kind in served for resource in _classic_resources(kind)]
            handlers[f"/apis/{name}/{version}"] = _answer(
                _Document({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{name}/{version}", "resources": resources})
            )
    return handlers


class _Document:
    """A document, and its bytes as most clients want them."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        self._json = orjson.dumps(value)
        self._protobuf = protobuf.discovery_document(value)

    def in_form(self, form: Form) -> bytes:
        return self._protobuf if form.is_protobuf else render(form, lambda: self._value, json=self._json)

    def respond(self, call: Call) -> web.Response:
        form = negotiate_document(call)
        headers = response_headers(call, form.media_type)
        headers["Vary"] = "Accept"
        return web.Response(body=self.in_form(form), headers=headers)


class _Aggregated:
    """The aggregated document in one version."""

    def __init__(self, groups: dict[str, dict[str, list[ResourceKind]]], target: Target) -> None:
        group, version, kind = target
        type_ = {"kind": kind, "apiVersion": f"{group}/{version}"}
        content = {"metadata": {}, "items": [_aggregated_group(name, versions) for name, versions in groups.items()]}
        self._document = _Document(type_ | content)
        # The content's alone: the same in each version and media type.
        self._etag = f'"{hashlib.sha512(orjson.dumps(content)).hexdigest().upper()}"'
        self._parameters = f";g={group};v={version};as={kind}"

    def respond(self, call: Call, form: Form) -> web.Response:
        headers = response_headers(call, form.media_type + self._parameters)
        headers["Cache-Control"] = "public"
        headers["ETag"] = self._etag
        headers["Vary"] = "Accept"
        if call.http.headers.get("If-None-Match") == self._etag:
            del headers["Content-Type"]
            return web.Response(status=304, headers=headers)
        return web.Response(body=self._document.in_form(form), headers=headers)


def _answer(document: _Document) -> Handler:
    async def answer(call: Call) -> web.Response:
        _check_method(call)
        return document.respond(call)

    return answer


def _root(classic: _Document, aggregated: dict[Target, _Aggregated]) -> Handler:
    targets = frozenset(aggregated)

    async def answer(call: Call) -> web.Response:
        _check_method(call)
        chosen = negotiate_conversion(call, targets)
        if chosen is None:
            return classic.respond(call)
        form, target = chosen
        return aggregated[target].respond(call, form)

    return answer


def _check_method(call: Call) -> None:
    if call.info.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed()


def _groups(kinds: Iterable[ResourceKind]) -> dict[str, dict[str, list[ResourceKind]]]:
    """Kinds by group and version: groups and kinds by name, versions with the preferred one first."""
    groups: dict[str, dict[str, list[ResourceKind]]] = {}
    for kind in sorted(kinds, key=lambda kind: (kind.group, _version_rank(kind.version), kind.plural)):
        groups.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
    return groups


def _version_rank(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: stable ones first, then beta, then alpha; higher numbers first.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return 3, 0, 0, version
    major, stage, minor = match.groups()
    return {None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version


def _group(name: str, versions: Iterable[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _classic_resources(kind: ResourceKind) -> list[dict[str, Any]]:
    whole: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": VERBS,
        **_names(kind),
        "storageVersionHash": storage_version_hash(kind),
    }
    resources = [whole]
    common = {"singularName": "", "namespaced": kind.namespaced}
    if kind.has_status:
        resources.append({"name": f"{kind.plural}/status", **common, "kind": kind.kind, "verbs": SUBRESOURCE_VERBS})
    if kind.scale is not None:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": SUBRESOURCE_VERBS}
        resources.append({"name": f"{kind.plural}/scale", **common, **scale})
    return resources


def _aggregated_group(name: str, versions: dict[str, list[ResourceKind]]) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "versions": [
            {"version": version, "resources": [_aggregated_resource(kind) for kind in served], "freshness": "Current"}
            for version, served in versions.items()
        ],
    }


def _aggregated_resource(kind: ResourceKind) -> dict[str, Any]:
    own_kind = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    resource: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": own_kind,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": VERBS,
        **_names(kind),
    }
    subresources = []
    if kind.has_status:
        subresources.append({"subresource": "status", "responseKind": own_kind, "verbs": SUBRESOURCE_VERBS})
    if kind.scale is not None:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        subresources.append({"subresource": "scale", "responseKind": scale, "verbs": SUBRESOURCE_VERBS})
    if subresources:
        resource["subresources"] = subresources
    return resource


def _names(kind: ResourceKind) -> dict[str, Any]:
    names: dict[str, Any] = {}
    if kind.short_names:
        names["shortNames"] = kind.short_names
    if kind.categories:
        names["categories"] = kind.categories
    return names


def storage_version_hash(kind: ResourceKind) -> str:
    """The short name of the form in which objects are stored, by which the storage migrator knows when it has changed.

    Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/discovery/storageversionhash.go
    """
    digest = hashlib.sha256(f"{kind.group}/{kind.version}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()
