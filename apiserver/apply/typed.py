"""What a schema says to those who merge and compare: which values are taken apart, and by what their parts are known.

A value is granular when its members have owners of their own, atomic when it changes as a whole. A value that the schema does not describe
(unknown fields that are kept, an object without properties) is taken apart by what it is: objects are granular, lists atomic.
Source: https://github.com/kubernetes/kube-openapi/blob/d427ff9ee9ad/pkg/schemaconv/openapi.go and
https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/helpers.go
"""

from __future__ import annotations

from typing import Final

from apiserver.apply import path_element
from openapi import gotext
from openapi.structural import ABSENT, JSON, Schema

ANY: Final = Schema(preserve_unknown_fields=True)
"""The schema of a value that no schema describes."""


class TypedError(ValueError):
    """A value that does not fit its schema, in upstream's words: each problem with its path."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems]))


def member_schema(schema: Schema, name: str) -> Schema | None:
    """The schema of an object's member; None when there must be no such member."""
    found = schema.properties.get(name) or schema.additional_properties
    if found is None and (schema.preserve_unknown_fields or not schema.properties or schema.embedded_resource):
        return ANY
    return found


def known_schema(schema: Schema, name: str) -> Schema:
    """The same, for members that are known to be there."""
    return member_schema(schema, name) or ANY


def item_schema(schema: Schema) -> Schema:
    """The schema of a list's items."""
    return schema.items or ANY


def is_granular_map(schema: Schema) -> bool:
    """Whether an object here is taken apart."""
    return schema.map_type != "atomic" and schema.type in ("object", "")


def is_granular_list(schema: Schema) -> bool:
    """Whether a list here is taken apart."""
    return schema.list_type != "atomic"


def is_granular(value: JSON, schema: Schema) -> bool:
    """Whether this value is taken apart: empty containers are not, so that empty and absent differ."""
    if value.__class__ is dict:
        return bool(value) and is_granular_map(schema)
    return value.__class__ is list and bool(value) and is_granular_list(schema)


def item_element(item: JSON, schema: Schema) -> str:
    """The path element by which an item of a granular list (with this schema) is known.

    Raises:
        TypedError: it cannot be told from others.
    """
    keys = schema.list_map_keys
    if not keys:
        if item.__class__ is dict:
            raise TypedError(["associative list without keys has an element that's a map type"])
        if item.__class__ is list:
            raise TypedError(["not supported: associative list with lists as elements"])
        if item is None:
            raise TypedError(["associative list without keys has an element that's an explicit null"])
        return path_element.value_element(item)
    if item.__class__ is not dict:
        kind = "a null element" if item is None else "non-map elements"
        raise TypedError([f"associative list with keys may not have {kind}"])
    found = {}
    for key in keys:
        value = item.get(key, ABSENT)
        if value is ABSENT:
            value = _default(schema, key)
        if value is not ABSENT:
            found[key] = value
    if not found:
        lacking = f"omits all key fields [{' '.join(map(gotext.quote, keys))}] (and doesn't have default values for any key fields)"
        raise TypedError([f"associative list with keys has an element that {lacking}"])
    return path_element.key_element(found)


def _default(schema: Schema, key: str) -> JSON:
    member = item_schema(schema).properties.get(key)
    return member.default if member is not None and member.default is not None else ABSENT


def item_elements(items: list[JSON], schema: Schema) -> list[str]:
    """The path elements of all items, in order; those of duplicates are equal.

    Raises:
        TypedError: an item has none.
    """
    elements = []
    for index, item in enumerate(items):
        try:
            elements.append(item_element(item, schema))
        except TypedError as error:
            raise TypedError([f"element {index}: {error}"]) from None
    return elements


def same(one: JSON, other: JSON) -> bool:
    """Whether two values are equal as JSON: 1 equals 1.0, but not true."""
    return bool(one == other) and _same_kinds(one, other)


def _same_kinds(one: JSON, other: JSON) -> bool:
    """Whether values that Python finds equal are of the same kind throughout."""
    kind = one.__class__
    if kind is dict:
        return all(item.__class__ is str or _same_kinds(item, other[name]) for name, item in one.items())
    if kind is list:
        return all(map(_same_kinds, one, other))
    return kind is other.__class__ or (kind is not bool and other.__class__ is not bool)
