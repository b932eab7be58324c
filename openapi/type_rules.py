"""Rules about what a value is: its type, and the values that an enum allows.

Source: https://github.com/kubernetes/kube-openapi/blob/master/pkg/validation/validate/type.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from openapi import formats, gotext
from openapi.problems import Check, Problem
from openapi.structural import JSON, Schema

_TYPE_NAMES: Final = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_GO_FORMATS: Final = {int: "int64", float: "float64"}
CLASSES: Final = {"object": dict, "array": list, "string": str, "integer": int, "number": float, "boolean": bool}
_EXACT_FLOAT: Final = 2.0**53 - 1


def good_classes(schema: Schema) -> Iterable[type]:
    """Return the classes whose values have the right type without a closer look."""
    if schema.int_or_string:
        return (int, str)
    if not schema.type:
        return (str, int, float, bool, list, dict)
    return (int, float) if schema.type == "number" else (CLASSES[schema.type],)


def effective_format(schema: Schema) -> str:
    """Return the format if Kubernetes checks it at this type, else nothing."""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(schema.type)
    if known is not None:
        return schema.format if schema.format in known else ""
    return schema.format if schema.type in ("string", "") and schema.format and formats.check_of(schema.format) else ""


def type_rule(schema: Schema) -> Callable[[JSON], list[Problem]]:
    """What is told of a value that is not of one of `good_classes`; nothing when it has the right type all the same."""
    wanted = "integer,string" if schema.int_or_string else schema.type
    takes_integers = schema.int_or_string or schema.type == "integer"
    format_ = effective_format(schema)

    def problems(value: JSON) -> list[Problem]:
        class_ = value.__class__
        if not wanted or (class_ is float and takes_integers and value.is_integer() and abs(value) <= _EXACT_FLOAT):
            return []
        if format_ and class_ not in (str, list) and value is not None:
            return [_type_problem(format_, _GO_FORMATS.get(class_, ""))]
        problem = _type_problem(wanted, _TYPE_NAMES[class_])
        if not schema.int_or_string or value is None:
            return [problem]
        # Such a field is written with `anyOf: [integer, string]` as well, which is judged besides.
        neither = Problem("invalid", "", '"{}" must validate at least one schema (anyOf)', pathless=True)
        no_int64 = class_ is float and not _is_int64(value)
        return [problem, neither, _type_problem("integer", _TYPE_NAMES[class_]), *([out_of_range("")] if no_int64 else ())]

    return problems


def _is_int64(value: float) -> bool:
    return -(2**63) <= value < 2**63 and value.is_integer()


def out_of_range(format_: str) -> Problem:
    """What is told of a number that is no integer of this format."""
    said = f"with format {format_}" if format_ else "(default format)"
    return Problem("invalid", "", f"Checked value must be of type integer {said} in {{}}", pathless=True)


def _type_problem(wanted: str, got: str) -> Problem:
    """What is told of a value of another type or format."""
    return Problem("type_invalid", got, f"{{}} in body must be of type {wanted}: {gotext.quote(got)}")


def enum_rule(schema: Schema) -> Check:
    """The value is one of those that the schema lists."""
    allowed = frozenset((value.__class__, value) for value in schema.enum)
    supported = tuple(value if isinstance(value, str) else str(value).lower() for value in schema.enum)

    def check(value: JSON, old: JSON) -> list[Problem] | None:
        if value.__class__ not in (dict, list) and (value.__class__, value) in allowed:
            return None
        return [Problem("not_supported", value, supported=supported)]

    return check
