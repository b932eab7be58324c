"""Putting an applied object over the live one.

Nothing that is there goes; where both say something about a leaf, the applied object wins. Parts that only one side has are taken over as
they are (the same Python objects), and an object that gains nothing is returned itself.
Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/merge.go
"""

from __future__ import annotations

from typing import Any, Final

from apiserver.apply.shape import Shape
from apiserver.apply.typed import same
from openapi.structural import ABSENT, JSON

_SEVERAL: Final[Any] = object()


def merge(live: dict[str, JSON], applied: dict[str, JSON], shape: Shape) -> dict[str, JSON]:
    """Return the live object with the applied one over it; neither is changed.

    Raises:
        TypedError: an item of a granular list cannot be told from others.
    """
    merged: dict[str, JSON] | None = None
    for name, wanted in applied.items():
        present = live.get(name, ABSENT)
        value = wanted if present is ABSENT else _merge_values(present, wanted, shape.member(name))
        if value is not present:
            if merged is None:
                merged = dict(live)
            merged[name] = value
    return live if merged is None else merged


def _merge_values(present: JSON, wanted: JSON, shape: Shape) -> JSON:
    kind = wanted.__class__
    if kind is dict:
        if present.__class__ is dict and present and shape.is_map:
            return merge(present, wanted, shape)
    elif kind is list:
        if present.__class__ is list and present and shape.is_list and not same(present, wanted):
            return _merge_lists(present, wanted, shape)
    elif wanted is None and shape.takes_apart(present):
        return present  # nothing is said about its parts
    return present if same(present, wanted) else wanted


def _merge_lists(live: list[JSON], applied: list[JSON], shape: Shape) -> list[JSON]:
    """Shared items come in the order in which they are applied; items of one side stay behind those that they followed there."""
    live_elements, wanted_elements = shape.elements(live), shape.elements(applied)
    present: dict[str, JSON] = {}
    for element, item in zip(live_elements, live, strict=True):
        present[element] = _SEVERAL if element in present else item
    wanted = dict(zip(wanted_elements, applied, strict=True))
    items = shape.items

    def taken(element: str) -> JSON:
        mine = present.get(element, _SEVERAL)
        return wanted[element] if mine is _SEVERAL else _merge_values(mine, wanted[element], items)

    shared = (element for element in wanted_elements if element in present)
    next_shared = next(shared, None)
    merged: list[JSON] = []
    done: set[str] = set()
    left, right = 0, 0
    while left < len(live) or right < len(applied):
        if left < len(live):
            element = live_elements[left]
            if element not in wanted:
                merged.append(live[left])
                left += 1
                continue
            if right < len(applied):
                if element == wanted_elements[right]:
                    merged.append(taken(element))
                    done.add(element)
                    next_shared = next(shared, None)
                    left, right = left + 1, right + 1
                    continue
                if next_shared is not None and element != next_shared:
                    left += 1  # its turn comes when it stands in the applied list
                    continue
            if element in done:
                left += 1
        if right < len(applied):
            element = wanted_elements[right]
            merged.append(taken(element))
            done.add(element)
            right += 1
            if element == next_shared:
                next_shared = next(shared, None)
    if len(merged) == len(live) and all(map(_is, merged, live)):
        return live
    return merged


def _is(one: JSON, other: JSON) -> bool:
    return one is other
