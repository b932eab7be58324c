"""Sets of fields, in the form in which `managedFields` carries them: a set *is* its fieldsV1 JSON.

A set is a dict from path elements to what is in the set below them: `f:name` for a field, `k:{"name":"A"}` for an item of a map list,
`v:"a"` for one of a set list, `i:0` for a place. An empty dict means that the field itself is in the set and nothing below it; `"."` says
so of a field that has more below it. The root stands for the whole object, which nobody owns: there an empty dict is the empty set.

Canonical form, which every function here takes and gives: only `{}` for a leaf, `{}` as the value of `"."`, no branch without a member.
Two sets are equal exactly when the dicts are. Sets are never changed once they are made, and share their parts freely.
Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/fieldpath/set.go and serialize.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apiserver.apply import path_element
from apiserver.apply.path_element import PathElementError

FieldSet = dict[str, Any]
Path = tuple[str, ...]

LEAF: Final[FieldSet] = {}
"""A field that is in a set with nothing below it; also the empty set. Shared by all sets, so never to be changed."""
SELF: Final = "."


class FieldSetError(ValueError):
    """JSON that is no set of fields."""


# Algebra


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in either set; `one` itself when that is all of it."""
    if not one:
        return other
    result: FieldSet | None = None
    for element, theirs in other.items():
        mine = one.get(element)
        both = theirs if mine is None else _union_below(mine, theirs)
        if both is not mine:
            if result is None:
                result = dict(one)
            result[element] = both
    return one if result is None else result


def _union_below(one: FieldSet, other: FieldSet) -> FieldSet:
    if not other:
        return one if not one or SELF in one else {SELF: LEAF, **one}
    if not one:
        return other if SELF in other else {SELF: LEAF, **other}
    return union(one, other)


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in `one` and not in `other`; `one` itself when that is all of it.

    What lies below a field of `other` stays: each field counts by itself.
    """
    result: FieldSet | None = None
    for element in other.keys() & one.keys() if other else ():
        mine = one[element]
        rest = _difference_below(mine, other[element])
        if rest is not mine:
            if result is None:
                result = dict(one)
            if rest is None:
                del result[element]
            else:
                result[element] = rest
    return one if result is None else result


def _difference_below(one: FieldSet, other: FieldSet) -> FieldSet | None:
    if not one:
        return one if other and SELF not in other else None
    if not other:
        return below_self(one) or None
    if SELF in other:
        return difference(below_self(one), below_self(other)) or None
    rest = difference(one, other)
    return LEAF if len(rest) == 1 and SELF in rest else rest or None


def below_self(fields: FieldSet) -> FieldSet:
    """What a branch of a set holds besides its own field."""
    return {element: inner for element, inner in fields.items() if element != SELF} if SELF in fields else fields


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in `one` and neither in `other` nor below a field of it."""
    result = {}
    for element, mine in one.items():
        theirs = other.get(element)
        if theirs is None:
            result[element] = mine
        elif theirs and SELF not in theirs:
            rest = recursive_difference(mine, theirs)
            if rest:
                result[element] = LEAF if len(rest) == 1 and SELF in rest else rest
            elif not mine:
                result[element] = LEAF
    return result


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in both sets."""
    result = {}
    for element, mine in one.items():
        theirs = other.get(element)
        if theirs is not None and (common := _intersection_below(mine, theirs)) is not None:
            result[element] = common
    return result


def _intersection_below(one: FieldSet, other: FieldSet) -> FieldSet | None:
    is_member = (not one or SELF in one) and (not other or SELF in other)
    common = intersection(below_self(one), below_self(other))
    if not common:
        return LEAF if is_member else None
    return {SELF: LEAF, **common} if is_member else common


def has(fields: FieldSet, path: Path) -> bool:
    """Whether the field at a path is in the set itself."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
    return node is not None and bool(path) and (not node or SELF in node)


def holds(fields: FieldSet, element: str) -> bool:
    """Whether the field of this one path element is in the set itself."""
    node = fields.get(element)
    return node is not None and (not node or SELF in node)


def of_path(path: Path) -> FieldSet:
    """The set with one field in it."""
    fields = LEAF
    for element in reversed(path):
        fields = {element: fields}
    return fields


def paths(fields: FieldSet) -> Iterator[Path]:
    """The fields of a set, in upstream's order: at each level the fields themselves, then what is below each of them."""
    yield from _paths(fields, ())


def _paths(fields: FieldSet, prefix: Path) -> Iterator[Path]:
    elements = sorted((element for element in fields if element != SELF), key=path_element.order)
    for element in elements:
        if holds(fields, element):
            yield (*prefix, element)
    for element in elements:
        if fields[element]:
            yield from _paths(fields[element], (*prefix, element))


def path_text(path: Path) -> str:
    """A path as messages show it: `.spec.env[name="A"].value`."""
    return "".join(map(path_element.element_text, path))


# Reading what a client sent


def canonical(fields: Any) -> FieldSet:
    """Bring fieldsV1 into canonical form: elements of kinds that nobody knows go, the JSON inside of the others is written our way.

    Raises:
        FieldSetError: it is no set of fields.
    """
    if fields is None:
        return LEAF
    if fields.__class__ is not dict:
        raise FieldSetError("a set of fields must be an object")
    result: FieldSet = {}
    for element, inner in fields.items():
        if element == SELF:
            result[SELF] = LEAF
        elif (known := _element(element)) is not None:
            result[known] = canonical(inner)
    return LEAF if len(result) == 1 and SELF in result else result


def _element(element: str) -> str | None:
    try:
        return path_element.canonical(element)
    except PathElementError as error:
        raise FieldSetError(str(error)) from error
