"""Rules about strings and numbers: lengths, patterns, formats, bounds.

Source: https://github.com/kubernetes/kube-openapi/blob/master/pkg/validation/validate/values.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from openapi import formats, gotext
from openapi.go_pattern import go_pattern
from openapi.problems import Check, Problem
from openapi.structural import JSON, Schema
from openapi.type_rules import CLASSES, effective_format, out_of_range

INTEGER_LIMITS: Final = {"int32": 2**31, "int64": 2**63, "": 2**63}
"""By format: an integer is below this, and not below its negative."""


def string_rules(schema: Schema) -> Iterable[Check]:
    """The rules of a string.

    Raises:
        ValueError: a pattern that means something else in Python than in Go.
    """
    least, most, pattern = schema.min_length or 0, schema.max_length, schema.pattern
    matches = go_pattern(pattern) if pattern else None
    if least or most is not None or matches is not None:

        def shape(value: str, old: JSON) -> list[Problem] | None:
            if most is not None and len(value) > most:
                return [Problem("too_long", "", _at_most_bytes(most))]
            if len(value) < least:
                return [Problem("invalid", value, f"{{}} in body should be at least {least} chars long")]
            if matches is not None and matches(value) is None:
                text = f"{{}} in body should match '{pattern}'"
                # A quantity is no JSON Schema pattern to its user; its path is the one of core/v1: limits[cpu].
                return [Problem("invalid", value, text, phase=2 if schema.int_or_string else 0)]
            return None

        yield shape
    format_ = effective_format(schema) if schema.type in ("string", "") else ""
    if format_:
        good = formats.check_of(format_)
        assert good is not None

        def of_format(value: str, old: JSON) -> list[Problem] | None:
            if good(value):
                return None
            return [Problem("type_invalid", value, f"{{}} in body must be of type {format_}: {gotext.quote(value)}")]

        yield of_format


def _at_most_bytes(most: int) -> str:
    return f"may not be more than {most} {'byte' if most == 1 else 'bytes'}"


def number_rules(schema: Schema) -> Iterable[Check]:
    """The rules of an integer or a float."""
    integer = schema.type == "integer"
    format_ = effective_format(schema) if integer else ""
    beyond = INTEGER_LIMITS[format_] if integer else None
    factor, high, low = schema.multiple_of, schema.maximum, schema.minimum
    if beyond is None and factor is None and high is None and low is None:
        return
    simple_low = -beyond if beyond is not None else float("-inf")
    if low is not None:
        simple_low = max(simple_low, low if not schema.exclusive_minimum else float("inf"))
    simple_high = beyond - 1 if beyond is not None else float("inf")
    if high is not None:
        simple_high = min(simple_high, high if not schema.exclusive_maximum else float("-inf"))

    def check(value: int | float, old: JSON) -> list[Problem] | None:
        if factor is None and simple_low <= value <= simple_high and (value.__class__ is int or not integer):
            return None
        problems = []
        if beyond is not None and not (-beyond <= value < beyond and value == int(value)):
            problems.append(out_of_range(format_))
        if factor is not None and (int_factor := int(factor) if value.__class__ is int else factor) and value % int_factor:
            problems.append(Problem("invalid", value, f"{{}} in body should be a multiple of {gotext.number(int_factor)}"))
        for bound, sign, exclusive, words in (
            (low, 1, schema.exclusive_minimum, "greater than"),
            (high, -1, schema.exclusive_maximum, "less than"),
        ):
            if bound is None:
                continue
            limit = int(bound) if value.__class__ is int else float(bound)
            if value * sign < limit * sign or (exclusive and value == limit):
                words = words if exclusive else f"{words} or equal to"
                problems.append(Problem("invalid", value, f"{{}} in body should be {words} {gotext.number(limit)}"))
        return problems or None

    yield check


def plain_class(schema: Schema) -> type | None:
    """Return the class of a scalar that has no rule but its type, so that its parent can check it in passing."""
    if schema.type not in ("string", "boolean", "integer") or schema.enum or schema.immutable:
        return None
    if list(string_rules(schema) if schema.type == "string" else number_rules(schema) if schema.type == "integer" else ()):
        return None
    return CLASSES[schema.type]
