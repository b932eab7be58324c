"""The fields that a value mentions: what somebody owns who applies it.

Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/tofieldset.go
"""

from __future__ import annotations

from apiserver.apply.field_set import LEAF, SELF, FieldSet
from apiserver.apply.shape import Shape
from openapi.structural import JSON


def applied_fields(value: JSON, shape: Shape) -> FieldSet:
    """The set of an object's leaves, of the items of its granular lists, and of the members of its maps with free keys.

    Objects with fixed properties are not in it, unless they are empty; an empty granular list is not in it at all.

    Raises:
        TypedError: an item of a list cannot be told from others.
    """
    return _fields_of(value, shape) or LEAF


def _fields_of(value: JSON, shape: Shape) -> FieldSet | None:
    """What is in the set below this value; None for a leaf."""
    kind = value.__class__
    if kind is dict and shape.is_map:
        return _fields_of_map(value, shape)
    if kind is list and shape.is_list:
        return _fields_of_list(value, shape)
    return None


def _fields_of_map(value: dict[str, JSON], shape: Shape) -> FieldSet:
    fields: FieldSet = {}
    members = shape.members
    for name, item in value.items():
        kind = item.__class__
        is_container = kind is dict or kind is list
        inner = _fields_of(item, members.get(name, shape.others)) if is_container else None
        if inner is None:
            fields[f"f:{name}"] = LEAF
        elif item == {} or name not in members:
            fields[f"f:{name}"] = {SELF: LEAF, **inner} if inner else LEAF
        elif inner:
            fields[f"f:{name}"] = inner
    return fields


def _fields_of_list(value: list[JSON], shape: Shape) -> FieldSet:
    fields: FieldSet = {}
    items = shape.items
    for element, item in zip(shape.elements(value), value, strict=True):
        if element in fields:
            fields[element] = LEAF  # of duplicates, only that they are there
        else:
            inner = _fields_of(item, items)
            fields[element] = {SELF: LEAF, **inner} if inner else LEAF
    return fields
