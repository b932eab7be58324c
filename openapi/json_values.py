"""JSON values as Go sees them: what is equal, and copies that share nothing."""

from __future__ import annotations

from typing import Any


def identical(one: Any, other: Any) -> bool:
    """Whether two values are written alike, as Go's DeepEqual compares: neither `1` and `true` nor `1` and `1.0` are."""
    if one.__class__ is not other.__class__:
        return False
    if one.__class__ is dict:
        return len(one) == len(other) and all(key in other and identical(member, other[key]) for key, member in one.items())
    if one.__class__ is list:
        return len(one) == len(other) and all(map(identical, one, other))
    return bool(one == other)


def copy(value: Any) -> Any:
    """Return a value with containers of its own."""
    if value.__class__ is dict:
        return {key: copy(member) for key, member in value.items()}
    if value.__class__ is list:
        return [copy(member) for member in value]
    return value
