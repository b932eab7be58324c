"""FieldError: what is wrong with one field, and how Kubernetes says it.

Kinds yield these, the rules of metadata and options return them, and violations of a schema become them; all end as causes of a 422. How a
value is printed is part of the wording; a huge one is cut, which upstream does not do.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/util/validation/field/errors.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from apiserver.meta import json_codec
from apiserver.meta.errors import Cause
from openapi import gotext
from openapi.structural import JSON, Violation

_LONGEST_VALUE: Final = 4096
"""Characters of a value in a message: enough to recognize it, too few to send a megabyte back."""


class Struct(dict[str, Any]):
    """A value that is a struct in Go: its members are printed in their own order, not sorted. So are those of a list of them."""

    __slots__ = ()


class _Omitted:
    """The type of OMITTED."""


OMITTED: Final = _Omitted()
"""The value of an error that says none."""

_WORDS: Final[Mapping[str, str]] = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueNotFound": "Not found",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooShort": "Too short",
    "FieldValueTooMany": "Too many",
    "InternalError": "Internal error",
}
_KINDS: Final[Mapping[str, str]] = {
    "required": "FieldValueRequired",
    "invalid": "FieldValueInvalid",
    "type_invalid": "FieldValueTypeInvalid",
    "not_supported": "FieldValueNotSupported",
    "duplicate": "FieldValueDuplicate",
    "forbidden": "FieldValueForbidden",
    "too_long": "FieldValueTooLong",
    "too_short": "FieldValueTooShort",
    "too_many": "FieldValueTooMany",
    "internal": "InternalError",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field. Make it with one of the functions below, which are named after what is wrong."""

    reason: str
    """The CauseType, as in `FieldValueInvalid`."""
    path: str
    """As in `spec.template.env[1].name` or `metadata.labels[app]`."""
    value: JSON | _Omitted = OMITTED
    detail: str = ""

    @property
    def message(self) -> str:
        """The message without the path, as in `Invalid value: "x": must be lower case`."""
        parts = [_WORDS[self.reason]]
        if not isinstance(self.value, _Omitted):
            parts.append(printed(self.value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def to_cause(self) -> Cause:
        """The error as an entry of `details.causes`."""
        return Cause(self.reason, self.message, self.path)


def printed(value: JSON) -> str:
    """Print a value as messages do: text quoted as in Go, numbers and booleans bare, anything else as JSON."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            text = gotext.quote(value[:_LONGEST_VALUE])
            return text if len(value) <= _LONGEST_VALUE else f"{text}…"
        case int() | float():
            return gotext.number(value)
    ordered = isinstance(value[0] if isinstance(value, list) and value else value, Struct)
    text = json_codec.encode(value, sort_keys=not ordered)[:-1].decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def required(path: str, detail: str = "") -> FieldError:
    """The field must be set."""
    return FieldError("FieldValueRequired", path, detail=detail)


def invalid(path: str, value: JSON, detail: str) -> FieldError:
    """The value breaks a rule."""
    return FieldError("FieldValueInvalid", path, value, detail)


def type_invalid(path: str, value: JSON, detail: str) -> FieldError:
    """The value has the wrong type."""
    return FieldError("FieldValueTypeInvalid", path, value, detail)


def not_supported(path: str, value: JSON, supported: Sequence[str]) -> FieldError:
    """The value is none of those that exist."""
    detail = f"supported values: {', '.join(map(gotext.quote, supported))}" if supported else ""
    return FieldError("FieldValueNotSupported", path, value, detail)


def duplicate(path: str, value: JSON) -> FieldError:
    """The value occurs twice where it may occur once."""
    return FieldError("FieldValueDuplicate", path, value)


def not_found(path: str, value: JSON) -> FieldError:
    """The value names something that is not there."""
    return FieldError("FieldValueNotFound", path, value)


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set, or not now."""
    return FieldError("FieldValueForbidden", path, detail=detail)


def too_long(path: str, value: JSON, limit: int) -> FieldError:
    """The value has more than `limit` bytes; it is not repeated."""
    del value
    return FieldError("FieldValueTooLong", path, detail=f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}")


def too_many(path: str, size: int, limit: int) -> FieldError:
    """The list or map has more than `limit` items."""
    return FieldError("FieldValueTooMany", path, size, f"must have at most {limit} {'item' if limit == 1 else 'items'}")


def of_violation(violation: Violation) -> FieldError:
    """The error that a violation of a schema is."""
    if violation.kind == "not_supported":
        return not_supported(violation.path, violation.value, violation.supported)
    value = OMITTED if violation.kind in ("required", "forbidden", "too_long", "too_short", "internal") else violation.value
    return FieldError(_KINDS[violation.kind], violation.path, value, violation.detail)


def to_cause(violation: Violation) -> Cause:
    """The cause that a violation of a schema is."""
    return of_violation(violation).to_cause()


def to_causes(found: Iterable[FieldError]) -> list[Cause]:
    """The causes of these errors, in their order."""
    return [error.to_cause() for error in found]


def aggregate(found: Sequence[FieldError]) -> str:
    """Several errors as one text, as upstream joins them: `a`, or `[a, b]`, each once."""
    texts = list(dict.fromkeys(map(str, found)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
