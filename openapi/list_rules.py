"""Rules about lists: their items, their size, and that nothing is in a set or map list twice.

Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/apiserver/schema/listtype/validation.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from openapi.problems import MOST_PROBLEMS, Check, Problem, too_many
from openapi.ratcheting import by_key, key_of, unchanged
from openapi.scalar_rules import plain_class
from openapi.structural import ABSENT, JSON, Schema


def array_rules(schema: Schema, check_of: Callable[[Schema], Check]) -> Iterable[Check]:
    """The rules of a list; `check_of` compiles the schema of its items."""
    if schema.items is not None:
        yield _items_rule(schema, schema.items, check_of(schema.items))
    least, most = schema.min_items, schema.max_items
    if least is not None or most is not None:

        def size(value: list[Any], old: JSON) -> list[Problem] | None:
            if least is not None and len(value) < least:
                return [Problem("invalid", len(value), f"{{}} in body should have at least {least} items")]
            return [too_many(len(value), most)] if most is not None and len(value) > most else None

        yield size
    if schema.list_type == "set":
        yield _set_rule
    elif schema.list_type == "map":
        yield _map_rule(schema.list_map_keys)


def _items_rule(schema: Schema, items: Schema, check: Check) -> Check:
    plain = plain_class(items)
    keys = schema.list_map_keys if schema.list_type == "map" else ()

    def rule(value: list[Any], old: JSON) -> list[Problem] | None:
        problems: list[Problem] | None = None
        before = by_key(old, keys) if keys and old.__class__ is list else None
        for index, item in enumerate(value):
            if item.__class__ is plain:
                continue
            previous: JSON = ABSENT
            if before:
                identity = key_of(item, keys)
                previous = ABSENT if identity is None else before.get(identity, ABSENT)
                if item is previous:
                    continue
            found = check(item, previous)
            if found is not None and not (previous is not ABSENT and unchanged(items, item, previous)):
                for problem in found:
                    problem.path.append(index)
                if problems is None:
                    problems = found
                else:
                    problems.extend(found)
                if len(problems) >= MOST_PROBLEMS:
                    break
        return problems

    return rule


def _set_rule(value: list[Any], old: JSON) -> list[Problem] | None:
    try:
        if len(set(value)) == len(value):
            return None
    except TypeError:
        pass
    return [_duplicate(index, value[index]) for index in _repeated(value)] or None


def _map_rule(keys: tuple[str, ...]) -> Check:
    first, several = keys[0], len(keys) > 1

    def rule(value: list[Any], old: JSON) -> list[Problem] | None:
        if len(value) < 2 and (not value or value[0].__class__ is dict):
            return None
        try:
            distinct = {tuple([item[key] for key in keys]) for item in value} if several else {item[first] for item in value}
            if len(distinct) == len(value):
                return None
        except (KeyError, TypeError):
            pass
        for index, item in enumerate(value):
            if item is not None and item.__class__ is not dict:
                return [Problem("invalid", item, "must be an object for an array of list-type map", phase=1, path=[index])]
        identities = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
        return [_duplicate(index, identities[index]) for index in _repeated(identities)] or None

    return rule


def _duplicate(index: int, value: JSON) -> Problem:
    return Problem("duplicate", value, phase=1, path=[index])


def _repeated(values: list[Any]) -> list[int]:
    """Return where a value stands for the second time; what stands there a third time is not told again."""
    seen: dict[Any, int] = {}
    repeated = []
    for index, value in enumerate(values):
        identity = _identity(value)
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            repeated.append(index)
            if len(repeated) == MOST_PROBLEMS:
                break
    return repeated


def _identity(value: JSON) -> Any:
    """Return something hashable that is equal for equal JSON values only."""
    if value.__class__ is dict:
        return (dict, frozenset((key, _identity(item)) for key, item in value.items()))
    if value.__class__ is list:
        return (list, tuple(map(_identity, value)))
    return (value.__class__, value)
