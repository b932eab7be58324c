"""The CustomResourceDefinitions that make kube-apiserver serve our kinds natively, written from our own models.

Left out are the rules that no schema says (`validate_object`, `warn`: image references, reserved volumes, mount paths, names of Secrets)
and the selector of `scale`, which we compute: exchanges that would meet a rule avoid it.
"""

from __future__ import annotations

from typing import Any

from apiserver.meta.resource import Column, ResourceKind
from openapi.writer import V3, written


def definition(kind: ResourceKind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": kind.kind,
                "listKind": kind.list_kind,
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": list(kind.short_names),
                "categories": list(kind.categories),
            },
            "versions": [_version(kind)],
        },
    }


def _version(kind: ResourceKind) -> dict[str, Any]:
    schema = written(kind.schema, V3)
    schema["properties"] |= {"metadata": {"type": "object"}}  # a definition may say no more of it
    subresources: dict[str, Any] = {"status": {}} if kind.has_status else {}
    if kind.scale is not None:
        subresources["scale"] = {"specReplicasPath": kind.scale.spec_replicas, "statusReplicasPath": kind.scale.status_replicas}
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "selectableFields": [{"jsonPath": path} for path in kind.selectable_fields],
    }


def _column(column: Column) -> dict[str, Any]:
    written_column = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    optional = {"description": column.description, "priority": column.priority, "format": column.format}
    return written_column | {key: value for key, value in optional.items() if value}
