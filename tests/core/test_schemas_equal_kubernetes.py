"""Our core/v1 types have the structure of Kubernetes 1.37's, field by field.

reference.json holds the facts of Kubernetes' own OpenAPI document. Two differences are on purpose, as CustomResourceDefinitions with these
types have them: a default that is the type's empty value says nothing and is left out, and a Quantity has a pattern.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apiserver import core
from openapi.from_model import schema_of
from openapi.structural import ABSENT, Schema

REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("reference.json").read_text())


def facts_of(schema: Schema) -> dict[str, Any]:
    """The same facts, in the same form, of one of our schemas."""
    facts: dict[str, Any] = {
        "type": schema.type,
        "format": schema.format,
        "enum": list(schema.enum),
        "required": sorted(schema.required),
        "default": None if schema.default is ABSENT else schema.default,
        "x-kubernetes-list-type": schema.list_type if schema.list_type_declared else "",
        "x-kubernetes-list-map-keys": list(schema.list_map_keys),
        "x-kubernetes-map-type": schema.map_type if schema.map_type_declared else "",
        "x-kubernetes-int-or-string": schema.int_or_string,
        "items": schema.items and facts_of(schema.items),
        "additionalProperties": schema.additional_properties and facts_of(schema.additional_properties),
        "properties": {name: facts_of(value) for name, value in schema.properties.items()},
    }
    return {key: value for key, value in facts.items() if value}


def expected(reference: dict[str, Any]) -> dict[str, Any]:
    """The reference without defaults that are empty values."""
    facts: dict[str, Any] = {key: value for key, value in reference.items() if value}
    if "required" in facts:
        facts["required"] = sorted(facts["required"])
    for key in ("items", "additionalProperties"):
        if key in facts:
            facts[key] = expected(facts[key])
    if "properties" in facts:
        facts["properties"] = {name: expected(value) for name, value in facts["properties"].items()}
    return facts


def paths(facts: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Every fact under its path, so that a difference names its field."""
    found: dict[str, Any] = {}
    for key, value in facts.items():
        if isinstance(value, dict):
            found |= paths(value, f"{path}/{key}")
        else:
            found[f"{path}/{key}"] = value
    return found


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_every_field_has_the_facts_that_kubernetes_states(name: str) -> None:
    assert paths(facts_of(schema_of(getattr(core, name)))) == paths(expected(REFERENCE[name]))


def test_every_type_that_kinds_embed_is_compared() -> None:
    assert sorted(REFERENCE) == sorted(core.__all__)


def undescribed(schema: Schema, path: str) -> list[str]:
    found = [] if schema.description else [path]
    for name, value in schema.properties.items():
        found += undescribed(value, f"{path}.{name}")
    if schema.items and schema.items.type == "object" and schema.items.properties:
        found += undescribed(schema.items, f"{path}[]")
    return found


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_every_field_is_described_for_kubectl_explain(name: str) -> None:
    assert undescribed(schema_of(getattr(core, name)), name) == []
