"""The structural schema: what is known about a JSON value, in the shape in which Kubernetes thinks of it.

One immutable tree per kind feeds pruning, defaulting, validation, server-side apply and the OpenAPI documents. It is made from a pydantic
model (`from_model.py`); nobody writes one by hand. Field names follow the vocabulary of a CustomResourceDefinition.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

JSON = Any
"""A value as orjson gives it: dict, list, str, int, float, bool, None."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Absent:
    """The type of ABSENT: no default, which differs from a default of null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class Schema:
    """One node of the tree. Compared by identity of content; shared freely, never changed."""

    type: Literal["object", "array", "string", "integer", "number", "boolean", ""] = ""
    """Empty for int-or-string and for a value of any type (`preserve_unknown_fields`)."""
    description: str = ""
    format: str = ""
    default: JSON = ABSENT
    nullable: bool = False
    enum: tuple[JSON, ...] = ()
    pattern: str = ""
    min_length: int | None = None
    max_length: int | None = None
    minimum: float | int | None = None
    maximum: float | int | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    properties: Mapping[str, Schema] = field(default_factory=lambda: _NOTHING)
    required: tuple[str, ...] = ()
    additional_properties: Schema | None = None
    """The schema of every value of a map with free keys; None for an object with fixed properties."""
    items: Schema | None = None
    list_type: Literal["atomic", "set", "map"] = "atomic"
    list_map_keys: tuple[str, ...] = ()
    map_type: Literal["granular", "atomic"] = "granular"
    int_or_string: bool = False
    preserve_unknown_fields: bool = False
    embedded_resource: bool = False
    immutable: bool = False
    """The value may not change once it is set (its own rule, as `self == oldSelf` would be)."""
    list_type_declared: bool = False
    """Whether `x-kubernetes-list-type` is written into documents: an undeclared list behaves as atomic."""
    map_type_declared: bool = False
    """Whether `x-kubernetes-map-type` is written into documents: an undeclared map behaves as granular."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong with one value, in Kubernetes' vocabulary of field errors."""

    kind: Literal[
        "required", "invalid", "type_invalid", "not_supported", "duplicate", "forbidden", "too_long", "too_many", "too_short", "internal"
    ]
    path: str
    """As in `spec.template.env[1].name` or `spec.template.resources.limits[cpu]`."""
    value: JSON = None
    detail: str = ""
    """What follows the kind and the value in the message; for not_supported the tuple of supported values is in `supported`."""
    supported: tuple[str, ...] = ()
