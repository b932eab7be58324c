"""The operations on a resource, as kube-apiserver publishes them for a CustomResourceDefinition, before they are written in a dialect.

Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/controller/openapi/builder/builder.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from openapi import parameters
from openapi.definitions import kind_name
from openapi.parameters import NAMESPACE, PRETTY, Parameter, name_of
from openapi.published import PublishedResource
from openapi.writer import META

JSON_AND_YAML: Final = ("application/json", "application/yaml")
_DISCOVERY: Final = (*JSON_AND_YAML, "application/vnd.kubernetes.protobuf")
PATCHES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
STATUS: Final = f"{META}Status"

_NOTHING: Final[Mapping[str, Parameter]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Operation:
    """One method at one address."""

    path: str
    method: str
    tag: str
    operation_id: str
    description: str
    returned: str
    """Name of the definition of what is answered."""
    codes: tuple[tuple[str, str], ...] = (("200", "OK"),)
    """Codes with which it is answered, and their names. 401 comes on top."""
    parameters: tuple[Parameter, ...] = ()
    """Sorted by name."""
    body: str = ""
    """Name of the definition of the body; empty for no body."""
    body_required: bool = True
    consumes: tuple[str, ...] = JSON_AND_YAML
    produces: tuple[str, ...] = JSON_AND_YAML
    action: str = ""
    group_version_kind: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Verb:
    method: str
    verb: str
    """As it stands in operationIds and descriptions."""
    action: str
    options: Mapping[str, Parameter]
    codes: tuple[str, ...] = ("200",)


_CODES: Final = {"200": "OK", "201": "Created", "202": "Accepted"}
_LIST = _Verb("get", "list", "list", parameters.LIST)
_CREATE = _Verb("post", "create", "post", parameters.WRITE, ("200", "201", "202"))
_DELETE_COLLECTION = _Verb("delete", "deletecollection", "deletecollection", parameters.LIST)
_READ = _Verb("get", "read", "get", parameters.GET)
_REPLACE = _Verb("put", "replace", "put", parameters.WRITE, ("200", "201"))
_DELETE = _Verb("delete", "delete", "delete", parameters.DELETE, ("200", "202"))
_PATCH = _Verb("patch", "patch", "patch", parameters.PATCH)


def operations_of(resource: PublishedResource) -> Iterator[Operation]:
    """Yield every operation on a resource and its subresources."""
    base = f"/apis/{resource.group}/{resource.version}/"
    own = kind_name(resource.group, resource.version, resource.kind)
    listed = kind_name(resource.group, resource.version, resource.list_kind)
    collection = f"{base}{resource.plural}"
    if resource.namespaced:
        yield _operation(resource, _LIST, collection, listed, name=f"{resource.kind}ForAllNamespaces")
        collection = f"{base}namespaces/{{namespace}}/{resource.plural}"
    yield _operation(resource, _LIST, collection, listed)
    yield _operation(resource, _CREATE, collection, own)
    yield _operation(resource, _DELETE_COLLECTION, collection, STATUS)
    item = f"{collection}/{{name}}"
    yield _operation(resource, _READ, item, own)
    yield _operation(resource, _REPLACE, item, own)
    yield _operation(resource, _DELETE, item, STATUS)
    yield _operation(resource, _PATCH, item, own)
    subresources = [("status", own)] * resource.has_status + [("scale", SCALE)] * resource.has_scale
    for subresource, returned in subresources:
        for verb in (_READ, _REPLACE, _PATCH):
            yield _operation(resource, verb, f"{item}/{subresource}", returned, subresource=subresource)


def _operation(resource: PublishedResource, verb: _Verb, path: str, returned: str, *, name: str = "", subresource: str = "") -> Operation:
    group_version = f"{_identifier(resource.group.removesuffix('.k8s.io'))}{_identifier(resource.version)}"
    scoped = f"{'Namespaced' if resource.namespaced else ''}{resource.kind}{subresource.capitalize()}"
    collection = "Collection" if verb is _DELETE_COLLECTION else ""
    taken = {**verb.options, PRETTY.name: PRETTY}
    if "{namespace}" in path:
        taken[NAMESPACE.name] = NAMESPACE
    if "{name}" in path:
        taken["name"] = name_of(resource.kind)
    body = {"post": returned, "put": returned, "patch": f"{META}Patch"}.get(verb.method, "")
    if verb is _DELETE:
        body = f"{META}DeleteOptions"
    return Operation(
        path=path,
        method=verb.method,
        tag=group_tag(resource.group, resource.version),
        operation_id=f"{verb.verb.removesuffix('collection')}{group_version}{collection}{name or scoped}",
        description=_description(verb, resource.kind, subresource),
        returned=returned,
        codes=tuple((code, _CODES[code]) for code in verb.codes),
        parameters=tuple(taken[key] for key in sorted(taken)),
        body=body,
        body_required=verb is not _DELETE,
        consumes=PATCHES if verb is _PATCH else JSON_AND_YAML,
        action=verb.action,
        group_version_kind=(resource.group, resource.version, resource.kind),
    )


def group_tag(group: str, version: str = "") -> str:
    """Return the tag of a group, or of one of its versions, as in `clrkApoxyDev_v1alpha1`."""
    tag = _identifier(group.removesuffix(".k8s.io"), capitalized=False)
    return f"{tag}_{_identifier(version, capitalized=False)}" if version else tag


def discovery_operations(groups: Mapping[str, object]) -> Iterator[Operation]:
    """Yield the operations by which clients find out what there is; `groups` are the groups' names, in order."""
    yield _discovery("/apis/", "apis", "getAPIVersions", "get available API versions", f"{META}APIGroupList")
    for group in groups:
        identifier = _identifier(group.removesuffix(".k8s.io"))
        yield _discovery(f"/apis/{group}/", group_tag(group), f"get{identifier}APIGroup", "get information of a group", f"{META}APIGroup")
    yield _discovery(
        "/version/",
        "version",
        "getCodeVersion",
        "get the version information for this server",
        "io.k8s.apimachinery.pkg.version.Info",
        produces=("application/json",),
    )


def _discovery(
    path: str, tag: str, operation_id: str, description: str, returned: str, *, produces: tuple[str, ...] = _DISCOVERY
) -> Operation:
    return Operation(
        path=path,
        method="get",
        tag=tag,
        operation_id=operation_id,
        description=description,
        returned=returned,
        consumes=produces,
        produces=produces,
    )


def _identifier(text: str, *, capitalized: bool = True) -> str:
    """Letters and digits of the text, with a capital where something else was left out."""
    joined = ""
    capital = capitalized
    for position, character in enumerate(text):
        if character.isalpha() or character == "_" or (position and character.isdigit()):
            joined += character.upper() if capital else character
            capital = False
        else:
            capital = True
    return joined


def _description(verb: _Verb, kind: str, subresource: str) -> str:
    of = f" {subresource} of" if subresource else ""
    if verb is _PATCH:
        return f"partially update{of} the specified {kind}"
    if verb is _DELETE_COLLECTION:
        return f"delete collection of {kind}"
    if verb is _LIST:
        return f"list objects of kind {kind}"
    if verb in (_CREATE, _DELETE):
        return f"{verb.verb}{_article(kind)}{kind}"
    return f"{verb.verb}{of} the specified {kind}"


def _article(noun: str) -> str:
    if noun.endswith("s") and not noun.endswith("ss"):
        return " "
    return " an " if noun[0].lower() in "aeiou" else " a "
