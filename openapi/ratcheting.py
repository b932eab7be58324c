"""What counts as unchanged when an object takes the place of another: it is not reported again, whether or not it is still valid.

Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/apiserver/validation/ratcheting.go
"""

from __future__ import annotations

from typing import Any

from openapi.json_values import identical
from openapi.structural import JSON, Schema


def unchanged(schema: Schema, value: JSON, old: JSON) -> bool:
    """Compare as ratcheting does: elements of a list map are matched by their key, in any order; without a key they count as new."""
    if value.__class__ is dict and old.__class__ is dict:
        if len(value) != len(old):
            return False
        for key, item in value.items():
            child = schema.properties.get(key, schema.additional_properties)
            if child is None or key not in old or not unchanged(child, item, old[key]):
                return False
        return True
    if value.__class__ is list and old.__class__ is list and schema.list_type == "map" and schema.items is not None:
        before = by_key(old, schema.list_map_keys)
        for item in value:
            key = key_of(item, schema.list_map_keys)
            if key is None or key not in before or not unchanged(schema.items, item, before[key]):
                return False
        return len(value) == len(old)
    return identical(value, old)


def key_of(item: JSON, keys: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Return what identifies an element of a list map; None if it has no such thing."""
    if item.__class__ is not dict:
        return None
    values = [item.get(key) for key in keys]
    if any(value is None or value.__class__ is dict or value.__class__ is list for value in values):
        return None
    return tuple([(value.__class__, value) for value in values])


def by_key(old: list[Any], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Any]:
    """The elements of a list map by what identifies them; of several for one key the first."""
    found: dict[tuple[Any, ...], Any] = {}
    for item in old:
        key = key_of(item, keys)
        if key is not None:
            found.setdefault(key, item)
    return found
