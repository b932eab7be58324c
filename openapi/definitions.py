"""The definitions of a document: shared types under Kubernetes' own names, with references among them, and each kind with its list.

A kind's definition is named as for a CustomResourceDefinition: the group's domain reversed, version, kind; everything below it is inlined.
Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/controller/openapi/builder/builder.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from openapi import meta_v1
from openapi.from_model import description_of, schema_of, wire_name
from openapi.published import PublishedResource
from openapi.structural import ABSENT, Schema
from openapi.writer import META, Dialect, written

TIME: Final = f"{META}Time"
_SCALE: Final = "io.k8s.api.autoscaling.v1."

SHARED: Final[Mapping[str, type[BaseModel]]] = MappingProxyType(
    {
        f"{META}APIGroup": meta_v1.APIGroup,
        f"{META}APIGroupList": meta_v1.APIGroupList,
        f"{META}DeleteOptions": meta_v1.DeleteOptions,
        f"{META}FieldsV1": meta_v1.FieldsV1,
        f"{META}GroupVersionForDiscovery": meta_v1.GroupVersionForDiscovery,
        f"{META}ListMeta": meta_v1.ListMeta,
        f"{META}ManagedFieldsEntry": meta_v1.ManagedFieldsEntry,
        f"{META}ObjectMeta": meta_v1.ObjectMeta,
        f"{META}OwnerReference": meta_v1.OwnerReference,
        f"{META}Patch": meta_v1.Patch,
        f"{META}Preconditions": meta_v1.Preconditions,
        f"{META}ServerAddressByClientCIDR": meta_v1.ServerAddressByClientCIDR,
        f"{META}ShardInfo": meta_v1.ShardInfo,
        f"{META}Status": meta_v1.Status,
        f"{META}StatusCause": meta_v1.StatusCause,
        f"{META}StatusDetails": meta_v1.StatusDetails,
        f"{META}WatchEvent": meta_v1.WatchEvent,
        f"{_SCALE}Scale": meta_v1.Scale,
        f"{_SCALE}ScaleSpec": meta_v1.ScaleSpec,
        f"{_SCALE}ScaleStatus": meta_v1.ScaleStatus,
        "io.k8s.apimachinery.pkg.runtime.RawExtension": meta_v1.RawExtension,
        "io.k8s.apimachinery.pkg.version.Info": meta_v1.VersionInfo,
    }
)
"""The shared types by the names of their definitions; Time is one more."""

_NAMES: Final[Mapping[type[BaseModel], str]] = MappingProxyType({model: name for name, model in SHARED.items()})
_CORE_KINDS: Final = ("APIGroup", "APIGroupList", "DeleteOptions", "Status", "WatchEvent")
_KINDS_OF_EVERY_GROUP: Final = ("DeleteOptions", "WatchEvent")


def kind_name(group: str, version: str, kind: str) -> str:
    """Return the name of a kind's definition, as in `dev.apoxy.clrk.v1alpha1.WorkerPool`."""
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def definitions(roots: Any, resources: Iterable[PublishedResource], dialect: Dialect) -> dict[str, Any]:
    """Return the definitions that `roots` refer to, directly or through others; those of kinds are taken from `resources`."""
    builders = _builders(list(resources), dialect)
    found: dict[str, Any] = {}
    waiting = [roots]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference.startswith(dialect.prefix):
                name = reference.removeprefix(dialect.prefix)
                if name not in found:
                    found[name] = builders[name]()
                    waiting.append(found[name])
            waiting += node.values()
    return found


def _builders(resources: list[PublishedResource], dialect: Dialect) -> dict[str, Callable[[], dict[str, Any]]]:
    """What makes each definition: shared ones, and two for each resource."""
    group_versions = sorted({(resource.group, resource.version) for resource in resources})
    found: dict[str, Callable[[], dict[str, Any]]] = {
        name: partial(_shared, name, model, group_versions, dialect) for name, model in SHARED.items()
    }
    found[TIME] = lambda: {"description": "A time as RFC 3339 writes it, in whole seconds.", "type": "string", "format": "date-time"}
    for resource in resources:
        found[kind_name(resource.group, resource.version, resource.kind)] = partial(_kind, resource, dialect)
        found[kind_name(resource.group, resource.version, resource.list_kind)] = partial(_list_kind, resource, dialect)
    return found


def _shared(name: str, model: type[BaseModel], group_versions: Iterable[tuple[str, str]], dialect: Dialect) -> dict[str, Any]:
    schema = schema_of(model)
    node: dict[str, Any] = {"description": description_of(model), "type": "object"}
    if schema.properties:
        models = {wire_name(field, info): _model_in(info.annotation) for field, info in model.model_fields.items()}
        node["properties"] = {
            field: _field(value, models[field], required=field in schema.required, dialect=dialect)
            for field, value in schema.properties.items()
        }
    if schema.required:
        node["required"] = list(schema.required)
    if schema.map_type_declared:
        node["x-kubernetes-map-type"] = schema.map_type
    kinds = _group_version_kinds(name.rpartition(".")[2], group_versions)
    return node | ({"x-kubernetes-group-version-kind": kinds} if kinds else {})


def _group_version_kinds(kind: str, group_versions: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    if kind == "Scale":
        return [_group_version_kind("autoscaling", "v1", kind)]
    if kind not in _CORE_KINDS:
        return []
    served = group_versions if kind in _KINDS_OF_EVERY_GROUP else ()
    return [_group_version_kind(group, version, kind) for group, version in (("", "v1"), *served)]


def _group_version_kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "kind": kind, "version": version}


def _field(schema: Schema, model: type[BaseModel] | None, *, required: bool, dialect: Dialect) -> dict[str, Any]:
    """A field of a shared type: other shared types are referred to, and v3 names the empty value that Go fills in."""
    if schema.format == "date-time":
        return dialect.described_reference(TIME, schema.description)
    if model is not None and schema.type == "array":
        node = written(replace(schema, items=None), dialect) | {"items": dialect.reference(_NAMES[model])}
    elif model is not None:
        node = dialect.described_reference(_NAMES[model], schema.description)
        if schema.default is not ABSENT and not dialect.is_v2:
            node["default"] = {}
    else:
        node = written(schema, dialect)
        if required and not dialect.is_v2 and schema.type in ("string", "integer"):
            node["default"] = "" if schema.type == "string" else 0
    return node | _patch_strategy(schema)


def _patch_strategy(schema: Schema) -> dict[str, Any]:
    if schema.list_type == "atomic":
        return {}
    node = {"x-kubernetes-patch-strategy": "merge"}
    if schema.list_map_keys:
        node["x-kubernetes-patch-merge-key"] = schema.list_map_keys[0]
    return node


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, alone, in a list or as an option."""
    if isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel):
        return annotation
    return next((model for model in map(_model_in, get_args(annotation)) if model), None)


def _kind(resource: PublishedResource, dialect: Dialect) -> dict[str, Any]:
    node = written(resource.schema, dialect)
    metadata = resource.schema.properties["metadata"].description
    node["properties"]["metadata"] = dialect.described_reference(f"{META}ObjectMeta", metadata)
    return node | _identity(resource, resource.kind)


def _list_kind(resource: PublishedResource, dialect: Dialect) -> dict[str, Any]:
    own = resource.schema.properties
    item = dialect.reference(kind_name(resource.group, resource.version, resource.kind))
    return {
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": written(own["apiVersion"], dialect),
            "items": {"description": f"The {resource.plural}.", "type": "array", "items": item},
            "kind": written(own["kind"], dialect),
            "metadata": dialect.described_reference(f"{META}ListMeta", "What the list says about itself."),
        },
    } | _identity(resource, resource.list_kind)


def _identity(resource: PublishedResource, kind: str) -> dict[str, Any]:
    node: dict[str, Any] = {"x-kubernetes-group-version-kind": [_group_version_kind(resource.group, resource.version, kind)]}
    if resource.selectable_fields:
        node["x-kubernetes-selectable-fields"] = [{"fieldPath": path.removeprefix(".")} for path in resource.selectable_fields]
    return node
