"""What a schema says to those who take values apart, worked out once per schema: `typed.py` says the same of one schema at a time.

Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/helpers.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from apiserver.apply.field_set import LEAF, SELF, FieldSet
from apiserver.apply.path_element import is_plain
from apiserver.apply.typed import ANY, is_granular_list, is_granular_map, item_elements
from openapi.structural import JSON, Schema

Everything = Callable[[JSON], FieldSet]
"""The fields of a value that was not there before: itself and all that is below it.

Raises TypedError: an item of a granular list cannot be told from others.
"""
Elements = Callable[[list[JSON]], list[str]]
"""The path elements of the items of a granular list, in order; those of duplicates are equal.

Raises TypedError: an item has none.
"""

_Plan = tuple[FieldSet, list[tuple[str, str, Everything]]]
"""What objects with certain members have in common, and for each member that may be taken apart its name, its element and what walks it."""
_MOST_PLANS: Final = 16
_MOST_NAMES: Final = 32
"""Beyond these nothing is kept: names of free keys are up to clients."""


class Shape:
    """How the values at one place of a schema are taken apart; made by `compile`."""

    __slots__ = ("elements", "everything", "is_list", "is_map", "items", "members", "others")

    def __init__(self, schema: Schema) -> None:
        self.is_map: Final = is_granular_map(schema)
        """Whether an object here is taken apart."""
        self.is_list: Final = is_granular_list(schema)
        """Whether a list here is taken apart."""
        self.members: Final[Mapping[str, Shape]] = {name: compile(child) for name, child in schema.properties.items()}
        """The shapes of the members that the schema names."""
        self.others: Final = self if schema is ANY else compile(schema.additional_properties or ANY)
        """The shape of all other members that are there."""
        self.items: Final = self if schema is ANY else compile(schema.items or ANY)
        """The shape of a list's items."""
        self.elements: Final = _elements(schema)
        self.everything: Final = _everything(self)

    def member(self, name: str) -> Shape:
        """The shape of a member that is known to be there."""
        return self.members.get(name, self.others)

    def takes_apart(self, value: JSON) -> bool:
        """Whether this value is taken apart: empty containers are not, so that empty and absent differ."""
        return bool(value) and ((value.__class__ is dict and self.is_map) or (value.__class__ is list and self.is_list))


def compile(schema: Schema) -> Shape:
    """Compile a schema."""
    if schema is ANY:
        return _ANYTHING
    return Shape(schema) if is_granular_map(schema) or is_granular_list(schema) else _WHOLE


# Path elements


def _elements(schema: Schema) -> Elements:
    """Items whose keys are plain texts or integers are quickly named; the others by what `typed` says about each."""
    keys = [(key, f'"{key}":') for key in sorted(set(schema.list_map_keys))]
    if len(keys) != len(schema.list_map_keys) or not keys:
        return lambda items: item_elements(items, schema)

    def elements(items: list[JSON]) -> list[str]:
        named = []
        for item in items:
            if item.__class__ is not dict:
                return item_elements(items, schema)
            text = ""
            for key, start in keys:
                value = item.get(key)
                if value.__class__ is str and is_plain(value):
                    text += f',{start}"{value}"'
                elif value.__class__ is int:
                    text += f",{start}{value}"
                else:
                    return item_elements(items, schema)
            named.append(f"k:{{{text[1:]}}}")
        return named

    return elements


# All fields


def _everything(shape: Shape) -> Everything:
    if not shape.is_list:
        return _everything_in_map(shape) if shape.is_map else _only_itself
    in_list = _everything_in_list(shape)
    if not shape.is_map:
        return in_list
    in_map = _everything_in_map(shape)
    return lambda value: in_list(value) if value.__class__ is list else in_map(value)


def _everything_in_map(shape: Shape) -> Everything:
    """Objects with the same members differ only in what is below these: the rest is made once, and shared."""
    plans: dict[tuple[str, ...], _Plan] = {}

    def plan_of(names: tuple[str, ...]) -> _Plan:
        fields: FieldSet = {SELF: LEAF, **{"f:" + name: LEAF for name in names}}
        plan = fields, [(name, "f:" + name, child.everything) for name in names if (child := shape.member(name)) is not _WHOLE]
        if len(names) <= _MOST_NAMES:
            if len(plans) >= _MOST_PLANS:
                plans.clear()
            plans[names] = plan
        return plan

    def everything(value: JSON) -> FieldSet:
        if value.__class__ is not dict or not value:
            return LEAF
        names = tuple(value)
        fields, containers = plans.get(names) or plan_of(names)
        if containers:
            fields = fields.copy()
            for name, element, below in containers:
                fields[element] = below(value[name])
        return fields

    return everything


def _everything_in_list(shape: Shape) -> Everything:
    elements = shape.elements
    below = shape.items.everything

    def everything(value: JSON) -> FieldSet:
        if value.__class__ is not list or not value:
            return LEAF
        fields: FieldSet = {SELF: LEAF}
        for element, item in zip(elements(value), value, strict=True):
            fields[element] = LEAF if element in fields else below(item)  # of duplicates, only that they are there
        return fields

    return everything


def _only_itself(_: JSON) -> FieldSet:
    return LEAF


_ANYTHING: Final = Shape(ANY)
_WHOLE: Final = Shape(Schema(type="string"))
"""The shape of what is never taken apart."""
