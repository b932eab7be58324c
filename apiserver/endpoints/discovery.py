"""Discovery: which groups, versions and resources there are, in the classic form and in the aggregated one.

Documents are made once from the kinds and depend on nothing else: a server whose store is away still tells what it serves. The words are
those that kube-apiserver has for custom resources. Aggregated documents are JSON and have an ETag, and all answers vary by Accept.
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

from apiserver.endpoints.negotiation import accept_of, negotiate_document, parse_accept, render, response_headers
from apiserver.meta import errors, protobuf

if TYPE_CHECKING:
    from apiserver.meta.resource import ResourceKind
    from apiserver.request import Call, Handler

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
SUBRESOURCE_VERBS = ("get", "patch", "update")
_AGGREGATED_VERSIONS = ("v2", "v2beta1")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def make(kinds: Sequence[ResourceKind]) -> dict[str, Handler]:
    """The handlers of discovery by path, for these kinds."""
    groups = _groups(kinds)
    classic = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, versions) for name, versions in groups.items()]}
    handlers = {"/apis": _root(_Document(classic), {version: _Aggregated(groups, version) for version in _AGGREGATED_VERSIONS})}
    for name, versions in groups.items():
        handlers[f"/apis/{name}"] = _answer(_Document({"kind": "APIGroup", "apiVersion": "v1"} | _group(name, versions)))
        for version, served in versions.items():
            resources = [resource for kind in served for resource in _classic_resources(kind)]
            handlers[f"/apis/{name}/{version}"] = _answer(
                _Document({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{name}/{version}", "resources": resources})
            )
    return handlers


class _Document:
    """A classic document, and its bytes as most clients want them."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        self._json = orjson.dumps(value)
        self._protobuf = protobuf.discovery_document(value)

    def respond(self, call: Call) -> web.Response:
        form = negotiate_document(call)
        headers = response_headers(call, form.media_type)
        headers["Vary"] = "Accept"
        body = self._protobuf if form.is_protobuf else render(form, lambda: self._value, json=self._json)
        return web.Response(body=body, headers=headers)


class _Aggregated:
    """The aggregated document in one version."""

    def __init__(self, groups: dict[str, dict[str, list[ResourceKind]]], version: str) -> None:
        value = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}}
        items = [_aggregated_group(name, versions) for name, versions in groups.items()]
        self._json = orjson.dumps(value | {"items": items}) + b"\n"
        self._etag = f'"{hashlib.sha512(self._json).hexdigest().upper()}"'
        self._content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"

    def respond(self, call: Call) -> web.Response:
        headers = response_headers(call, self._content_type)
        headers["Cache-Control"] = "public"
        headers["ETag"] = self._etag
        headers["Vary"] = "Accept"
        if call.http.headers.get("If-None-Match") == self._etag:
            del headers["Content-Type"]
            return web.Response(status=304, headers=headers)
        return web.Response(body=self._json, headers=headers)


def _answer(document: _Document) -> Handler:
    async def answer(call: Call) -> web.Response:
        _check_method(call)
        return document.respond(call)

    return answer


def _root(classic: _Document, aggregated: dict[str, _Aggregated]) -> Handler:
    async def answer(call: Call) -> web.Response:
        _check_method(call)
        version = aggregated_version(accept_of(call))
        return aggregated[version].respond(call) if version else classic.respond(call)

    return answer


def aggregated_version(accept: str) -> str:
    """The version of the first clause that asks for the aggregated form in a version that there is; empty when none does."""
    if "APIGroupDiscoveryList" in accept:
        for clause in parse_accept(accept):
            parameters = clause.parameters
            if (
                clause.accepts("application/json")
                and parameters.get("as") == "APIGroupDiscoveryList"
                and parameters.get("g") == "apidiscovery.k8s.io"
                and parameters.get("v") in _AGGREGATED_VERSIONS
            ):
                return parameters["v"]
    return ""


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
