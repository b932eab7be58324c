"""Markers: what a kind's author writes into `Annotated[...]` beside a type, to say how Kubernetes treats the value.

A marker sets fields of `Schema` and nothing else, so every marker is an `Extension`; whoever needs another makes it from that class. A
model says something about itself with the class variable `markers`. Names follow the `x-kubernetes-` extension that they stand for.
Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from openapi.structural import Schema


@dataclass(frozen=True, slots=True)
class Extension:
    """Facts about a type, as names of fields of `Schema` with their values."""

    facts: tuple[tuple[str, Any], ...]

    def apply(self, schema: Schema) -> Schema:
        """Return the schema with these facts in place of what it had."""
        return replace(schema, **dict(self.facts))


def _extension(**facts: Any) -> Extension:
    return Extension(tuple(facts.items()))


def ListMap(*keys: str) -> Extension:  # noqa: N802 - reads as the type that it marks
    """Say that a list of objects is a map: `keys` (wire names) together name an element, and no two elements share them."""
    if not keys:
        raise TypeError("ListMap needs the names of its keys")
    return _extension(list_type="map", list_map_keys=keys, list_type_declared=True)


def Format(name: str) -> Extension:  # noqa: N802 - as above
    """Give a string or a number its OpenAPI format, as in `date-time` or `int32`."""
    return _extension(format=name)


ListSet: Final = _extension(list_type="set", list_type_declared=True)
"""No two elements of the list are equal; appliers own single elements."""

AtomicList: Final = _extension(list_type="atomic", list_type_declared=True)
"""The list has one owner and is replaced as a whole."""

AtomicMap: Final = _extension(map_type="atomic", map_type_declared=True)
"""The map or object has one owner and is replaced as a whole."""

GranularMap: Final = _extension(map_type="granular", map_type_declared=True)
"""Each member has its own owner: what an unmarked map does as well, but written into the documents."""

Immutable: Final = _extension(immutable=True)
"""The value may not change once it is set."""

Nullable: Final = _extension(nullable=True)
"""An explicit null is a value. Without this marker `X | None` only means that the field may be left out."""

PreserveUnknownFields: Final = _extension(preserve_unknown_fields=True)
"""What the schema does not name is kept instead of pruned."""

EmbeddedResource: Final = _extension(embedded_resource=True)
"""The value is a whole object with apiVersion, kind and metadata of its own."""


def _whole(value: Any) -> Any:
    """In JSON, 3.0 is a whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Int32 = Annotated[int, Format("int32"), BeforeValidator(_whole)]
"""A whole number of 32 bits."""

Int64 = Annotated[int, Format("int64"), BeforeValidator(_whole)]
"""A whole number of 64 bits."""

IntOrString = Annotated[int | str, _extension(type="", int_or_string=True)]
"""A whole number or a string, as ports and percentages are."""

Time = Annotated[str, Format("date-time")]
"""An RFC 3339 time, kept as it was written."""
