"""What differs between two states of an object, as sets of fields.

Identical parts (the same Python object on both sides) are not looked into.
Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/compare.go
"""

from __future__ import annotations

from typing import NamedTuple

from apiserver.apply import field_set
from apiserver.apply.field_set import LEAF, FieldSet
from apiserver.apply.shape import Shape
from apiserver.apply.typed import same
from openapi.structural import ABSENT, JSON


class Comparison(NamedTuple):
    """Three sets that have nothing in common; all empty for equal objects."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet


def compare(old: dict[str, JSON], new: dict[str, JSON], shape: Shape) -> Comparison:
    """What `new` lacks, has otherwise, and has beyond `old`.

    Raises:
        TypedError: an item of a granular list cannot be told from others.
    """
    return Comparison(*_compare_maps(old, new, shape))


_Sets = tuple[FieldSet, FieldSet, FieldSet]
"""What is removed, modified and added."""


def _compare_maps(old: dict[str, JSON], new: dict[str, JSON], shape: Shape) -> _Sets:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    both = 0
    for name, after in new.items():
        before = old.get(name, ABSENT)
        if before is ABSENT:
            added["f:" + name] = shape.member(name).everything(after)
            continue
        both += 1
        if before is not after and not (after.__class__ is str and before == after):
            _compare_values("f:" + name, before, after, shape.member(name), removed, modified, added)
    if both != len(old):
        for name, before in old.items():
            if name not in new:
                removed["f:" + name] = shape.member(name).everything(before)
    return removed, modified, added


def _compare_values(
    element: str, before: JSON, after: JSON, shape: Shape, removed: FieldSet, modified: FieldSet, added: FieldSet
) -> None:
    """Enter into the sets what differs between two values."""
    kind = before.__class__
    if kind is dict and after.__class__ is dict and shape.is_map:
        gone, changed, new = _compare_maps(before, after, shape)
    elif same(before, after):
        return
    elif kind is list and after.__class__ is list and shape.is_list:
        gone, changed, new = _compare_lists(before, after, shape)
    else:
        gone, changed, new = _parts(before, shape), LEAF, _parts(after, shape)
        if not (before is None and new) and not (after is None and gone):
            modified[element] = LEAF
    if gone:
        removed[element] = gone
    if changed:
        modified[element] = changed
    if new:
        added[element] = new


def _parts(value: JSON, shape: Shape) -> FieldSet:
    """What is in a value that has taken the place of another one, or has had to give it up."""
    return field_set.below_self(shape.everything(value))


def _compare_lists(old: list[JSON], new: list[JSON], shape: Shape) -> _Sets:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    items = shape.items
    before, after = _by_element(old, shape), _by_element(new, shape)
    for element, theirs in after.items():
        mine = before.get(element)
        if mine is None:
            added[element] = items.everything(theirs[0]) if len(theirs) == 1 else LEAF
        elif len(mine) == len(theirs) == 1:
            if mine[0] is not theirs[0]:
                _compare_values(element, mine[0], theirs[0], items, removed, modified, added)
        elif len(mine) > 1 and len(theirs) > 1:
            if not same(mine, theirs):
                modified[element] = LEAF
        elif len(mine) > 1:
            # What was there several times had no parts; now it has.
            removed[element] = LEAF
            added[element] = items.everything(theirs[0])
        else:
            removed[element] = items.everything(mine[0])
            added[element] = LEAF
    for element, mine in before.items():
        if element not in after:
            removed[element] = items.everything(mine[0]) if len(mine) == 1 else LEAF
    return removed, modified, added


def _by_element(values: list[JSON], shape: Shape) -> dict[str, list[JSON]]:
    grouped: dict[str, list[JSON]] = {}
    for element, item in zip(shape.elements(values), values, strict=True):
        grouped.setdefault(element, []).append(item)
    return grouped
