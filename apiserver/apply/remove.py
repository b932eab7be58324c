"""Taking fields out of an object.

Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/remove.go
"""

from __future__ import annotations

from apiserver.apply import field_set
from apiserver.apply.field_set import LEAF, SELF, FieldSet
from apiserver.apply.typed import is_granular, item_elements, item_schema, known_schema, member_schema
from openapi.structural import JSON, Schema


def remove(value: JSON, fields: FieldSet, schema: Schema, *, empty_is_null: bool = False) -> JSON:
    """Return the value without these fields; it itself is not changed.

    A granular container may lose all its parts and stay: empty, or null, which tells it from one that was empty before.

    Raises:
        TypedError: an item of a granular list cannot be told from others.
    """
    if not is_granular(value, schema):
        return value
    kept: JSON
    if value.__class__ is dict:
        kept = {}
        for name, item in value.items():
            element = f"f:{name}"
            if not field_set.holds(fields, element):
                inner = fields.get(element)
                kept[name] = remove(item, inner, known_schema(schema, name), empty_is_null=empty_is_null) if inner else item
    else:
        kept = []
        items = item_schema(schema)
        for element, item in zip(item_elements(value, schema), value, strict=True):
            if not field_set.holds(fields, element):
                inner = fields.get(element)
                kept.append(remove(item, inner, items, empty_is_null=empty_is_null) if inner else item)
    return kept or (None if empty_is_null else kept)


def with_named_fields(fields: FieldSet, schema: Schema) -> FieldSet:
    """The set and, of what has fields of it below, all that are properties of their object by name (not items, nor keys of maps)."""
    result: FieldSet = {}
    for element, inner in fields.items():
        if not inner:
            result[element] = inner
            continue
        name = element[2:]
        below = with_named_fields(inner, _schema_below(element, schema))
        is_named = element.startswith("f:") and name in schema.properties
        result[element] = {SELF: LEAF, **below} if is_named and SELF not in below else below
    return result


def _schema_below(element: str, schema: Schema) -> Schema:
    if element.startswith("f:") and schema.type in ("object", ""):
        return member_schema(schema, element[2:]) or _NOTHING
    return item_schema(schema) if element.startswith("k:") and schema.type in ("array", "") else _NOTHING


_NOTHING = Schema()
"""The schema of what has neither members nor items."""
