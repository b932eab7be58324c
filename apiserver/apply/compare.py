"""What differs between two states of an object, as sets of fields.

Identical parts (the same Python object on both sides) are not looked into.
Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/compare.go
"""

from __future__ import annotations

from typing import NamedTuple

from apiserver.apply.field_set import LEAF, SELF, FieldSet
from apiserver.apply.typed import is_granular, is_granular_list, is_granular_map, item_elements, item_schema, known_schema, same
from openapi.structural import ABSENT, JSON, Schema


class Comparison(NamedTuple):
    """Three sets that have nothing in common; all empty for equal objects."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet


def compare(old: dict[str, JSON], new: dict[str, JSON], schema: Schema) -> Comparison:
    """What `new` lacks, has otherwise, and has beyond `old`.

    Raises:
        TypedError: an item of a granular list cannot be told from others.
    """
    result = Comparison({}, {}, {})
    _compare_maps(old, new, schema, result)
    return result


def everything(value: JSON, schema: Schema) -> FieldSet:
    """A value that was not there before: itself and all that is below it.

    Raises:
        TypedError: an item of a granular list cannot be told from others.
    """
    kind = value.__class__
    if kind is dict:
        if not value or not is_granular_map(schema):
            return LEAF
        fields: FieldSet = {SELF: LEAF}
        properties = schema.properties
        for name, item in value.items():
            kind = item.__class__
            if kind is dict or kind is list:
                fields["f:" + name] = everything(item, properties.get(name) or known_schema(schema, name))
            else:
                fields["f:" + name] = LEAF
        return fields
    if kind is not list or not value or not is_granular_list(schema):
        return LEAF
    fields = {SELF: LEAF}
    items = item_schema(schema)
    for element, item in zip(item_elements(value, schema), value, strict=True):
        fields[element] = LEAF if element in fields else everything(item, items)
    return fields


def _compare_maps(old: dict[str, JSON], new: dict[str, JSON], schema: Schema, result: Comparison) -> None:
    properties = schema.properties
    both = 0
    for name, after in new.items():
        before = old.get(name, ABSENT)
        if before is ABSENT:
            result.added["f:" + name] = everything(after, known_schema(schema, name))
            continue
        both += 1
        if before is not after and not same(before, after):
            _compare_values("f:" + name, before, after, properties.get(name) or known_schema(schema, name), result)
    if both != len(old):
        for name, before in old.items():
            if name not in new:
                result.removed["f:" + name] = everything(before, known_schema(schema, name))


def _compare_values(element: str, before: JSON, after: JSON, schema: Schema, result: Comparison) -> None:
    """Enter into `result` what differs between two values that are not the same."""
    below = Comparison({}, {}, {})
    kind = before.__class__
    if kind is dict and after.__class__ is dict and is_granular_map(schema):
        _compare_maps(before, after, schema, below)
    elif kind is list and after.__class__ is list and is_granular_list(schema):
        _compare_lists(before, after, schema, below)
    else:
        old_parts, new_parts = is_granular(before, schema), is_granular(after, schema)
        if old_parts:
            below.removed.update(everything(before, schema))
            del below.removed[SELF]
        if new_parts:
            below.added.update(everything(after, schema))
            del below.added[SELF]
        if not (before is None and new_parts) and not (after is None and old_parts):
            result.modified[element] = LEAF
    for mine, theirs in zip(result, below, strict=True):
        if theirs:
            mine[element] = theirs


def _compare_lists(old: list[JSON], new: list[JSON], schema: Schema, result: Comparison) -> None:
    items = item_schema(schema)
    before, after = _by_element(old, schema), _by_element(new, schema)
    for element, theirs in after.items():
        mine = before.get(element)
        if mine is None:
            result.added[element] = everything(theirs[0], items) if len(theirs) == 1 else LEAF
        elif len(mine) == len(theirs) == 1:
            if mine[0] is not theirs[0] and not same(mine[0], theirs[0]):
                _compare_values(element, mine[0], theirs[0], items, result)
        elif len(mine) > 1 and len(theirs) > 1:
            if not same(mine, theirs):
                result.modified[element] = LEAF
        elif len(mine) > 1:
            # What was there several times had no parts; now it has.
            result.removed[element] = LEAF
            result.added[element] = everything(theirs[0], items)
        else:
            result.removed[element] = everything(mine[0], items)
            result.added[element] = LEAF
    for element, mine in before.items():
        if element not in after:
            result.removed[element] = everything(mine[0], items) if len(mine) == 1 else LEAF


def _by_element(values: list[JSON], schema: Schema) -> dict[str, list[JSON]]:
    grouped: dict[str, list[JSON]] = {}
    for element, item in zip(item_elements(values, schema), values, strict=True):
        grouped.setdefault(element, []).append(item)
    return grouped
