"""A schema is written in both dialects as upstream writes it; Swagger 2 leaves out what old kubectls cannot read."""

from __future__ import annotations

from typing import Any

import pytest

from openapi.structural import Schema
from openapi.writer import V2, V3, written

TEXT = Schema(type="string")


@pytest.mark.parametrize(
    ("schema", "v3", "v2"),
    [
        (
            Schema(type="integer", format="int32", default=0, minimum=0, maximum=5),
            {"type": "integer", "format": "int32", "default": 0, "minimum": 0, "maximum": 5},
            {"type": "integer", "format": "int32", "minimum": 0, "maximum": 5},
        ),
        (
            Schema(int_or_string=True, pattern="^a$"),
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True, "pattern": "^a$"},
            {"x-kubernetes-int-or-string": True, "pattern": "^a$"},
        ),
        (Schema(type="string", nullable=True), {"type": "string", "nullable": True}, {}),
        (
            Schema(type="object", properties={"a": TEXT}, preserve_unknown_fields=True),
            {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            Schema(type="object", properties={"a": Schema(type="string", nullable=True), "b": TEXT}, required=("a", "b")),
            {"type": "object", "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {}, "b": {"type": "string"}}, "required": ["b"]},
        ),
        (
            Schema(type="string", immutable=True, min_length=0, enum=("", "b")),
            {"type": "string", "minLength": 0, "enum": ["", "b"], "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
            {"type": "string", "minLength": 0, "enum": ["", "b"], "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
        ),
        (
            Schema(type="array", items=TEXT, list_type="set", list_type_declared=True, description="d"),
            {"description": "d", "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            {"description": "d", "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        ),
        (
            Schema(type="object", additional_properties=TEXT, map_type="atomic", map_type_declared=True),
            {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
            {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        ),
    ],
    ids=["number", "int_or_string", "nullable", "preserved", "nullable_member", "immutable", "list", "map"],
)
def test_a_schema_in_both_dialects(schema: Schema, v3: dict[str, Any], v2: dict[str, Any]) -> None:
    assert written(schema, V3) == v3
    assert written(schema, V2) == v2


def test_an_embedded_object_has_the_identity_that_every_object_has() -> None:
    node = written(Schema(type="object", embedded_resource=True), V3)
    assert set(node["properties"]) == {"apiVersion", "kind", "metadata"}
    assert node["required"] == ["kind", "apiVersion"]
    assert node["x-kubernetes-embedded-resource"] is True
