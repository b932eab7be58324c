"""Whether what a client applies fits its schema, told in upstream's words: in full, each problem with its path.

Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/validate.go
"""

from __future__ import annotations

from typing import Any, Final

from apiserver.apply import path_element
from apiserver.apply.typed import ANY, TypedError, is_granular_list, item_elements, item_schema, member_schema
from openapi import gotext
from openapi.structural import ABSENT, JSON, Schema


def checked(value: JSON, schema: Schema) -> JSON:
    """Return a copy of an applied object that fits its schema; the copy may be changed and taken apart freely.

    A null where none can be stored is left out (outside of metadata, where it is the empty value): it says nothing about the field.
    Integral floats become integers.

    Raises:
        TypedError: fields that nobody knows, values of the wrong type, items that are there twice or lack their keys.
    """
    problems: list[str] = []
    copy = _checked(value, schema, None, problems)
    if problems:
        raise TypedError(problems)
    return copy


_Path = tuple[Any, str] | None
"""Where a value stands, written out only when something is wrong there: the parent's path, and `.name`, `[0]` or an item's path element."""


def _text(path: _Path) -> str:
    if path is None:
        return ""
    parent, step = path
    return _text(parent) + (step if step[0] in ".[" else path_element.element_text(step))


def _checked(value: JSON, schema: Schema, path: _Path, problems: list[str]) -> JSON:
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


def _checked_map(value: dict[str, JSON], schema: Schema, path: _Path, problems: list[str]) -> dict[str, JSON]:
    copy = {}
    properties = schema.properties
    for name, item in sorted(value.items()):
        member = properties.get(name) or member_schema(schema, name)
        if member is None:
            problems.append(f"{_text(path)}.{name}: field not declared in schema")
            break  # upstream looks no further either
        if item.__class__ is str and member.type == "string":
            copy[name] = item
        elif item is not None or _takes_null(member) or f"{_text(path)}.".startswith(".metadata."):
            copy[name] = _checked(item, member, (path, "." + name), problems)
    return copy


def _takes_null(schema: Schema) -> bool:
    """Whether a null can be stored, or means the default."""
    return schema.nullable or schema is ANY or (schema.default is not ABSENT and schema.default is not None)


def _checked_list(value: list[JSON], schema: Schema, path: _Path, problems: list[str]) -> list[JSON]:
    items = item_schema(schema)
    if not is_granular_list(schema):
        return [_checked(item, items, (path, f"[{index}]"), problems) for index, item in enumerate(value)]
    try:
        elements = item_elements(value, schema)
    except TypedError as error:
        problems.append(f"{_text(path)}: {error}")
        return []
    seen: set[str] = set()
    copy = []
    for element, item in zip(elements, value, strict=True):
        if element in seen:
            problems.append(f"{_text(path)}: duplicate entries for key {path_element.element_text(element)}")
        seen.add(element)
        copy.append(_checked(item, items, (path, element), problems))
    return copy


def _fits(value: JSON, schema: Schema) -> bool:
    """Whether a scalar may stand here; what the format says about it is for the validator."""
    wanted, kind = schema.type, value.__class__
    if wanted == "string":
        return kind is str or bool(schema.format and schema.format != "byte")
    if wanted in ("integer", "number"):
        return kind is int or kind is float
    return kind is bool if wanted == "boolean" else wanted == ""


def _mismatch(value: JSON, schema: Schema, path: _Path, problems: list[str]) -> None:
    wanted = schema.type
    if wanted == "object":
        problem = f"expected map, got &{{{gotext.text(value)}}}"
    elif wanted == "array":
        problem = f"expected list, got &{{{gotext.text(value)}}}"
    elif wanted == "boolean":
        problem = f"expected boolean, got &{{{gotext.text(value)}}}"
    elif wanted != "string":
        problem = f"expected numeric (int or float), got {_GO_TYPES[value.__class__]}"
    elif schema.format and schema.format != "byte":
        problem = f"expected any scalar, got &{{{gotext.text(value)}}}"
    else:
        problem = f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    problems.append(f"{_text(path)}: {problem}" if path else problem)


def _go_syntax(value: JSON) -> str:
    """A value as Go's %#v prints it."""
    if isinstance(value, dict):
        inner = ", ".join(f"{gotext.quote(name)}:{_go_syntax(item)}" for name, item in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    if isinstance(value, str):
        return gotext.quote(value)
    return "interface {}(nil)" if value is None else gotext.text(value)


_EXACT_FLOAT: Final = 2.0**53
_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
}
