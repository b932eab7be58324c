"""The fields that a value mentions: what somebody owns who applies it.

Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/tofieldset.go
"""

from __future__ import annotations

from apiserver.apply.field_set import LEAF, SELF, FieldSet
from apiserver.apply.typed import is_granular_list, is_granular_map, item_elements, item_schema, known_schema
from openapi.structural import JSON, Schema


def applied_fields(value: JSON, schema: Schema) -> FieldSet:
    """The set of an object's leaves, of the items of its granular lists, and of the members of its maps with free keys.

    Objects with fixed properties are not in it, unless they are empty; an empty granular list is not in it at all.

    Raises:
        TypedError: an item of a list cannot be told from others.
    """
    return _fields_of(value, schema) or LEAF


def _fields_of(value: JSON, schema: Schema) -> FieldSet | None:
    """What is in the set below this value; None for a leaf."""
    kind = value.__class__
    if kind is dict and is_granular_map(schema):
        return _fields_of_map(value, schema)
    if kind is list and is_granular_list(schema):
        return _fields_of_list(value, schema)
    return None


def _fields_of_map(value: dict[str, JSON], schema: Schema) -> FieldSet:
    fields: FieldSet = {}
    properties = schema.properties
    for name, item in value.items():
        kind = item.__class__
        is_container = kind is dict or kind is list
        inner = _fields_of(item, properties.get(name) or known_schema(schema, name)) if is_container else None
        if inner is None:
            fields[f"f:{name}"] = LEAF
        elif item == {} or name not in properties:
            fields[f"f:{name}"] = {SELF: LEAF, **inner} if inner else LEAF
        elif inner:
            fields[f"f:{name}"] = inner
    return fields


def _fields_of_list(value: list[JSON], schema: Schema) -> FieldSet:
    fields: FieldSet = {}
    items = item_schema(schema)
    for element, item in zip(item_elements(value, schema), value, strict=True):
        if element in fields:
            fields[element] = LEAF  # of duplicates, only that they are there
        else:
            inner = _fields_of(item, items)
            fields[element] = {SELF: LEAF, **inner} if inner else LEAF
    return fields
