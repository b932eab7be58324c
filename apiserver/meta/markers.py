"""The markers and field types that authors of kinds need, under one name. What each of them means stands in `openapi/markers.py`."""

from openapi.markers import (
    AtomicList,
    AtomicMap,
    EmbeddedResource,
    Extension,
    Format,
    GranularMap,
    Immutable,
    Int32,
    Int64,
    IntOrString,
    ListMap,
    ListSet,
    Nullable,
    PreserveUnknownFields,
    Time,
)

__all__ = [
    "AtomicList",
    "AtomicMap",
    "EmbeddedResource",
    "Extension",
    "Format",
    "GranularMap",
    "Immutable",
    "Int32",
    "Int64",
    "IntOrString",
    "ListMap",
    "ListSet",
    "Nullable",
    "PreserveUnknownFields",
    "Time",
]
