"""From a structural schema to its JSON form, in the two dialects that Kubernetes publishes.

OpenAPI v3 has everything. Swagger 2 leaves out defaults, unions and null, and whatever old versions of kubectl stumble over.
Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/controller/openapi/v2/conversion.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from openapi.structural import ABSENT, Schema

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."


@dataclass(frozen=True, slots=True)
class Dialect:
    """One of the two forms of a document."""

    name: str
    prefix: str
    """What stands before a definition's name in a reference."""

    @property
    def is_v2(self) -> bool:
        """Whether this is Swagger 2."""
        return self.name == "v2"

    def reference(self, name: str) -> dict[str, Any]:
        """A reference to a definition, alone."""
        return {"$ref": f"{self.prefix}{name}"}

    def described_reference(self, name: str, description: str) -> dict[str, Any]:
        """A reference with a description of its own, which v3 only allows around the reference."""
        reference = self.reference(name)
        node: dict[str, Any] = {"description": description} if description else {}
        return node | (reference if self.is_v2 else {"allOf": [reference]})


V2: Final = Dialect("v2", "#/definitions/")
V3: Final = Dialect("v3", "#/components/schemas/")

_VALIDATIONS = (
    ("format", "format"),
    ("pattern", "pattern"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("exclusive_minimum", "exclusiveMinimum"),
    ("exclusive_maximum", "exclusiveMaximum"),
    ("multiple_of", "multipleOf"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("min_properties", "minProperties"),
    ("max_properties", "maxProperties"),
)


def written(schema: Schema, dialect: Dialect) -> dict[str, Any]:
    """Return the schema in the given dialect; every nested schema is inlined."""
    node: dict[str, Any] = {"description": schema.description} if schema.description else {}
    node |= _type(schema, dialect)
    for attribute, key in _VALIDATIONS:
        value = getattr(schema, attribute)
        if value is not None and value is not False and value != "":
            node[key] = value
    if schema.enum:
        node["enum"] = list(schema.enum)
    node |= _members(schema, dialect)
    return node | _extensions(schema)


def _type(schema: Schema, dialect: Dialect) -> dict[str, Any]:
    if schema.int_or_string:
        return {} if dialect.is_v2 else {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    if dialect.is_v2:
        untyped = schema.nullable or (schema.preserve_unknown_fields and schema.type in ("object", "array"))
        return {} if untyped or not schema.type else {"type": schema.type}
    node: dict[str, Any] = {"type": schema.type} if schema.type else {}
    if schema.nullable:
        node["nullable"] = True
    if schema.default is not ABSENT:
        node["default"] = schema.default
    return node


def _members(schema: Schema, dialect: Dialect) -> dict[str, Any]:
    node: dict[str, Any] = {}
    opaque = dialect.is_v2 and (schema.nullable or schema.preserve_unknown_fields)
    if schema.items is not None and not opaque:
        node["items"] = written(schema.items, dialect)
    if schema.additional_properties is not None:
        node["additionalProperties"] = written(schema.additional_properties, dialect)
    if schema.properties and not opaque:
        node["properties"] = {name: written(value, dialect) for name, value in schema.properties.items()}
    required = [name for name in schema.required if not (dialect.is_v2 and schema.properties[name].nullable)]
    if schema.embedded_resource:
        if not opaque:
            node["properties"] = node.get("properties", {}) | _embedded(dialect)
        required += [name for name in ("kind", "apiVersion") if name not in required]
    if required:
        node["required"] = required
    return node


def _embedded(dialect: Dialect) -> dict[str, Any]:
    return {
        "apiVersion": {"description": "Group and version of this object.", "type": "string"},
        "kind": {"description": "Kind of this object.", "type": "string"},
        "metadata": dialect.described_reference(f"{META}ObjectMeta", "What the object says about itself."),
    }


def _extensions(schema: Schema) -> dict[str, Any]:
    node: dict[str, Any] = {}
    if schema.preserve_unknown_fields:
        node["x-kubernetes-preserve-unknown-fields"] = True
    if schema.embedded_resource:
        node["x-kubernetes-embedded-resource"] = True
    if schema.int_or_string:
        node["x-kubernetes-int-or-string"] = True
    if schema.list_type_declared:
        node["x-kubernetes-list-type"] = schema.list_type
    if schema.list_map_keys:
        node["x-kubernetes-list-map-keys"] = list(schema.list_map_keys)
    if schema.map_type_declared:
        node["x-kubernetes-map-type"] = schema.map_type
    if schema.immutable:
        node["x-kubernetes-validations"] = [{"rule": "self == oldSelf"}]
    return node
