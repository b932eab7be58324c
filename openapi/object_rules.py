"""Rules about objects: their members, how many there are, which must be there, and which may not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from openapi.json_values import identical
from openapi.problems import MOST_PROBLEMS, Check, Key, Problem, too_many
from openapi.ratcheting import unchanged
from openapi.scalar_rules import plain_class
from openapi.structural import ABSENT, JSON, Schema

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def object_rules(schema: Schema, check_of: Callable[[Schema], Check]) -> Iterable[Check]:
    """The rules of an object; `check_of` compiles the schemas of its members."""
    least, most = schema.min_properties, schema.max_properties
    if least is not None or most is not None:

        def size(value: dict[str, Any], old: JSON) -> list[Problem] | None:
            if least is not None and len(value) < least:
                return [Problem("invalid", len(value), f"{{}} in body should have at least {least} properties")]
            return [too_many(len(value), most)] if most is not None and len(value) > most else None

        yield size
    if schema.additional_properties is not None:
        yield _values_rule(schema, schema.additional_properties, check_of(schema.additional_properties))
    if schema.properties:
        yield _properties_rule(schema, check_of)
    if schema.required:
        yield _required_rule(schema.required)
    immutable = tuple(name for name, child in schema.properties.items() if child.immutable)
    if immutable:
        yield _immutable_rule(immutable)


def _values_rule(schema: Schema, values: Schema, check: Check) -> Check:
    plain, named = plain_class(values), schema.properties

    def rule(value: dict[str, Any], old: JSON) -> list[Problem] | None:
        problems: list[Problem] = []
        before = old if old.__class__ is dict else _NOTHING
        for key, item in value.items():
            if item.__class__ is plain or key in named:
                continue
            previous = before.get(key, ABSENT)
            found = None if item is previous else check(item, previous)
            if found is not None and not (previous is not ABSENT and unchanged(values, item, previous)):
                for problem in found:
                    problem.path.append(Key(key))
                problems.extend(found)
                if len(problems) >= MOST_PROBLEMS:
                    break
        return problems or None

    return rule


def _properties_rule(schema: Schema, check_of: Callable[[Schema], Check]) -> Check:
    plain_of = {name: class_ for name, child in schema.properties.items() if (class_ := plain_class(child)) is not None}.get
    check_at = {name: check_of(child) for name, child in schema.properties.items()}.get
    order = {name: index for index, name in enumerate(schema.properties)}

    def rule(value: dict[str, Any], old: JSON) -> list[Problem] | None:
        wrong: list[tuple[int, list[Problem]]] | None = None
        before = old if old.__class__ is dict else None
        for key, item in value.items():
            if plain_of(key) is item.__class__:
                continue
            check = check_at(key)
            if check is None:
                continue
            previous: JSON = ABSENT
            if before is not None:
                previous = before.get(key, ABSENT)
                if item is previous:
                    continue
            found = check(item, previous)
            if found is not None and not (previous is not ABSENT and unchanged(schema.properties[key], item, previous)):
                for problem in found:
                    problem.path.append(key)
                if wrong is None:
                    wrong = []
                wrong.append((order[key], found))
        if wrong is None:
            return None
        wrong.sort(key=lambda entry: entry[0])
        return [problem for _, found in wrong for problem in found]

    return rule


def _required_rule(required: tuple[str, ...]) -> Check:
    needed = frozenset(required)

    def rule(value: dict[str, Any], old: JSON) -> list[Problem] | None:
        if needed <= value.keys():
            return None
        return [Problem("required", path=[name]) for name in required if name not in value]

    return rule


def _immutable_rule(names: tuple[str, ...]) -> Check:
    def rule(value: dict[str, Any], old: JSON) -> list[Problem] | None:
        if old.__class__ is not dict:
            return None
        changed = [name for name in names if name in old and not (name in value and identical(value[name], old[name]))]
        return [Problem("invalid", value.get(name), "field is immutable", phase=2, path=[name]) for name in changed] or None

    return rule
