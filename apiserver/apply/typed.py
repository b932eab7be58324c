"""What a schema says to those who merge and compare: which values are taken apart, and by what their parts are known.

A value is granular when its members have owners of their own, atomic when it changes as a whole. A value that the schema does not describe
(unknown fields that are kept, an object without properties) is taken apart by what it is: objects are granular, lists atomic.
Source: https://github.com/kubernetes/kube-openapi/blob/d427ff9ee9ad/pkg/schemaconv/openapi.go and
https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/validate.go
"""

from __future__ import annotations

from typing import Final

from apiserver.apply import field_set
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
        return field_set.value_element(item)
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
    return field_set.key_element(found)


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


# Checking what a client applies


def checked(value: JSON, schema: Schema) -> JSON:
    """Return a copy of an applied object that fits its schema; the copy may be changed and taken apart freely.

    A null where none can be stored is left out (outside of metadata, where it is the empty value): it says nothing about the field.
    Integral floats become integers.

    Raises:
        TypedError: fields that nobody knows, values of the wrong type, items that are there twice or lack their keys.
    """
    problems: list[str] = []
    copy = _checked(value, schema, "", problems)
    if problems:
        raise TypedError(problems)
    return copy


def _checked(value: JSON, schema: Schema, path: str, problems: list[str]) -> JSON:
    kind = value.__class__
    if value is None:
        return None
    if kind is dict:
        return _checked_map(value, schema, path, problems) if schema.type in ("object", "") else _mismatch(value, schema, path, problems)
    if kind is list:
        return _checked_list(value, schema, path, problems) if schema.type in ("array", "") else _mismatch(value, schema, path, problems)
    if not _fits(value, schema):
        return _mismatch(value, schema, path, problems)
    return int(value) if kind is float and value.is_integer() and abs(value) < _EXACT_FLOAT else value


def _checked_map(value: dict[str, JSON], schema: Schema, path: str, problems: list[str]) -> dict[str, JSON]:
    copy = {}
    properties = schema.properties
    for name, item in sorted(value.items()):
        member = properties.get(name) or member_schema(schema, name)
        if member is None:
            problems.append(f"{path}.{name}: field not declared in schema")
            break  # upstream looks no further either
        if item is None and not _takes_null(member) and not f"{path}.".startswith(".metadata."):
            continue
        copy[name] = _checked(item, member, f"{path}.{name}", problems)
    return copy


def _takes_null(schema: Schema) -> bool:
    """Whether a null can be stored, or means the default."""
    return schema.nullable or schema is ANY or (schema.default is not ABSENT and schema.default is not None)


def _checked_list(value: list[JSON], schema: Schema, path: str, problems: list[str]) -> list[JSON]:
    items = item_schema(schema)
    if not is_granular_list(schema):
        return [_checked(item, items, f"{path}[{index}]", problems) for index, item in enumerate(value)]
    try:
        elements = item_elements(value, schema)
    except TypedError as error:
        problems.append(f"{path}: {error}")
        return []
    seen: set[str] = set()
    copy = []
    for element, item in zip(elements, value, strict=True):
        text = field_set.element_text(element)
        if element in seen:
            problems.append(f"{path}: duplicate entries for key {text}")
        seen.add(element)
        copy.append(_checked(item, items, path + text, problems))
    return copy


def _fits(value: JSON, schema: Schema) -> bool:
    """Whether a scalar may stand here; what the format says about it is for the validator."""
    wanted, kind = schema.type, value.__class__
    if wanted == "string":
        return kind is str or bool(schema.format and schema.format != "byte")
    if wanted in ("integer", "number"):
        return kind is int or kind is float
    return kind is bool if wanted == "boolean" else wanted == ""


def _mismatch(value: JSON, schema: Schema, path: str, problems: list[str]) -> None:
    wanted = schema.type
    if wanted == "object":
        problem = f"expected map, got &{{{_go(value)}}}"
    elif wanted == "array":
        problem = f"expected list, got &{{{_go(value)}}}"
    elif wanted == "boolean":
        problem = f"expected boolean, got &{{{_go(value)}}}"
    elif wanted != "string":
        problem = f"expected numeric (int or float), got {_GO_TYPES[value.__class__]}"
    elif schema.format and schema.format != "byte":
        problem = f"expected any scalar, got &{{{_go(value)}}}"
    else:
        problem = f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    problems.append(f"{path}: {problem}" if path else problem)


def _go(value: JSON) -> str:
    """A value as Go's %v prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go(item)}' for name, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return gotext.number(value)
    return "<nil>" if value is None else str(value)


def _go_syntax(value: JSON) -> str:
    """A value as Go's %#v prints it."""
    if isinstance(value, dict):
        inner = ", ".join(f"{gotext.quote(name)}:{_go_syntax(item)}" for name, item in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    if isinstance(value, str):
        return gotext.quote(value)
    return "interface {}(nil)" if value is None else _go(value)


_EXACT_FLOAT: Final = 2.0**53
_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
}
