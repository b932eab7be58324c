"""Validating: what is wrong with a normalized object, in the words in which kube-apiserver says it of a custom resource.

A schema is compiled once into closures that return None for a good value, so that a good object costs one short walk; paths and texts are
made only for what is wrong. On an update what did not change is not reported again (CRD ratcheting), whether or not it is still valid.
Source: https://github.com/kubernetes/kube-openapi/blob/master/pkg/validation/validate/schema.go (rules and texts),
https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/apiserver/validation/ratcheting.go, schema/listtype/validation.go
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

from openapi import formats, gotext
from openapi.json_values import identical
from openapi.structural import ABSENT, JSON, Schema, Violation

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_TYPE_NAMES: Final = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_GO_FORMATS: Final = {int: "int64", float: "float64"}
_CLASSES: Final = {"object": dict, "array": list, "string": str, "integer": int, "number": float, "boolean": bool}
_INT_RANGES: Final = {"int32": 2**31, "int64": 2**63, "": 2**63}
_EXACT_FLOAT: Final = 2.0**53 - 1
_MOST_PROBLEMS: Final = 100
"""What is told of one list or map; a body of 3 MiB could otherwise hold a million mistakes, and each costs as much to tell."""


class _Key(str):
    """A segment that is the key of a map, not the name of a property."""

    __slots__ = ()


@dataclass(slots=True)
class _Problem:
    """A violation under way to the root; every level it passes adds its segment."""

    kind: Any
    value: JSON = ""
    text: str = ""
    """`{}` stands for the path."""
    supported: tuple[str, ...] = ()
    phase: int = 0
    """0: the schema's own rules, 1: rules of list types, 2: rules that a CustomResourceDefinition does not have."""
    pathless: bool = False
    """Upstream does not say the field of this one."""
    path: list[str | int] = field(default_factory=list)
    """From the innermost segment outwards."""

    def violation(self, at: str) -> Violation:
        inner = self._joined(brackets=self.phase > 0)
        path = (at or "<nil>") if self.pathless else f"{at}.{inner}".strip(".") if not inner.startswith("[") else at + inner
        return Violation(self.kind, path, self.value, self.text.replace("{}", inner), self.supported)

    def _joined(self, *, brackets: bool) -> str:
        parts: list[str] = []
        for segment in reversed(self.path):
            indexed = segment.__class__ is int or (brackets and segment.__class__ is _Key)
            parts.append(f"[{segment}]" if indexed else f".{segment}" if parts else str(segment))
        return "".join(parts)


_Check = Callable[[Any, Any], "list[_Problem] | None"]
"""Takes a value and what stood in its place before (ABSENT if nothing); returns what is wrong, None if nothing is."""


class Validate(Protocol):
    """A compiled schema's validator."""

    def __call__(self, value: JSON, old: JSON = ABSENT, *, at: str = "") -> list[Violation]:
        """Return what is wrong with the value: in the schema's order, then duplicates in lists, then rules of our own.

        `old` is the value that it replaces: unchanged parts are not reported. The same object in both (`is`) costs nothing. `at` is
        the path of the value in the whole object (`status`, for the status subresource): upstream's texts do not mention it, its fields do.
        Of one list or map about a hundred mistakes are told. Never raises for any JSON value.
        """


def compile(schema: Schema) -> Validate:
    """Compile a schema.

    Raises:
        ValueError: a pattern that means something else in Python than in Go, or a format that is not supported.
    """
    check = _check_of(schema)

    def validate(value: JSON, old: JSON = ABSENT, *, at: str = "") -> list[Violation]:
        if value is old:
            return []
        problems = check(value, old)
        if problems is None or (old is not ABSENT and _unchanged(schema, value, old)):
            return []
        if old is not ABSENT and any(problem.phase == 1 for problem in problems):
            before = check(old, ABSENT) or []
            if any(problem.phase == 1 for problem in before):  # upstream ratchets the rules of lists as a whole
                problems = [problem for problem in problems if problem.phase != 1]
        problems.sort(key=lambda problem: problem.phase)
        return [problem.violation(at) for problem in problems]

    return validate


def _unchanged(schema: Schema, value: JSON, old: JSON) -> bool:
    """Compare as ratcheting does: elements of a list map are matched by their key, in any order; without a key they count as new."""
    if value.__class__ is dict and old.__class__ is dict:
        if len(value) != len(old):
            return False
        for key, item in value.items():
            child = schema.properties.get(key, schema.additional_properties)
            if child is None or key not in old or not _unchanged(child, item, old[key]):
                return False
        return True
    if value.__class__ is list and old.__class__ is list and schema.list_type == "map" and schema.items is not None:
        before = _by_key(old, schema.list_map_keys)
        for item in value:
            key = _key_of(item, schema.list_map_keys)
            if key is None or key not in before or not _unchanged(schema.items, item, before[key]):
                return False
        return len(value) == len(old)
    return identical(value, old)


def _check_of(schema: Schema) -> _Check:
    rules: list[tuple[type, _Check]] = []
    if schema.int_or_string or schema.type in ("string", ""):
        rules.extend((str, rule) for rule in _string_rules(schema))
    if schema.int_or_string or schema.type in ("integer", "number", ""):
        rules.extend((number, rule) for rule in _number_rules(schema) for number in (int, float))
    if schema.type in ("array", ""):
        rules.extend((list, rule) for rule in _array_rules(schema))
    if schema.type in ("object", ""):
        rules.extend((dict, rule) for rule in _object_rules(schema))
    enum = _enum_rule(schema) if schema.enum else None
    by_class: dict[type, _Check | None] = {}
    for class_ in (str, int, float, bool, list, dict):
        of_class = [rule for for_class, rule in rules if for_class is class_]
        if enum is not None:
            of_class.append(enum)
        by_class[class_] = _all_of(of_class) if of_class else None
    type_problems = _type_rule(schema)
    good = frozenset(_good_classes(schema))

    def check(value: JSON, old: JSON) -> list[_Problem] | None:
        class_ = value.__class__
        if class_ in good:
            rule = by_class[class_]
            return None if rule is None else rule(value, old)
        if value is None and schema.nullable:
            return None if enum is None else enum(value, old)
        problems = type_problems(value)
        rule = enum if value is None else by_class[class_]
        rest = None if rule is None else rule(value, old)
        return [*problems, *(rest or ())] or None

    if good == {dict} or good == {list} or good == {str} or good == {int}:
        (only,) = good
        single = by_class[only]
        if single is not None:
            return _single(only, single, check)
    return check


def _single(class_: type, rule: _Check, otherwise: _Check) -> _Check:
    """The common case without detours: one type, one rule."""

    def check(value: JSON, old: JSON) -> list[_Problem] | None:
        return rule(value, old) if value.__class__ is class_ else otherwise(value, old)

    return check


def _all_of(rules: list[_Check]) -> _Check:
    if len(rules) == 1:
        return rules[0]

    def check(value: JSON, old: JSON) -> list[_Problem] | None:
        problems = None
        for rule in rules:
            found = rule(value, old)
            if found is not None:
                problems = found if problems is None else [*problems, *found]
        return problems

    return check


def _good_classes(schema: Schema) -> Iterable[type]:
    """Return the classes whose values have the right type without a closer look."""
    if schema.int_or_string:
        return (int, str)
    if not schema.type:
        return (str, int, float, bool, list, dict)
    return (int, float) if schema.type == "number" else (_CLASSES[schema.type],)


def _effective_format(schema: Schema) -> str:
    """Return the format if Kubernetes checks it at this type, else nothing."""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(schema.type)
    if known is not None:
        return schema.format if schema.format in known else ""
    return schema.format if schema.type in ("string", "") and schema.format and formats.check_of(schema.format) else ""


def _type_rule(schema: Schema) -> Callable[[JSON], list[_Problem]]:
    wanted = "integer,string" if schema.int_or_string else schema.type
    takes_integers = schema.int_or_string or schema.type == "integer"
    format_ = _effective_format(schema)

    def problems(value: JSON) -> list[_Problem]:
        class_ = value.__class__
        if not wanted or (class_ is float and takes_integers and value.is_integer() and abs(value) <= _EXACT_FLOAT):
            return []
        if format_ and class_ not in (str, list) and value is not None:
            return [_type_problem(format_, _GO_FORMATS.get(class_, ""))]
        problem = _type_problem(wanted, _TYPE_NAMES[class_])
        if not schema.int_or_string or value is None:
            return [problem]
        # Such a field is written with `anyOf: [integer, string]` as well, which is judged besides.
        neither = _Problem("invalid", "", '"{}" must validate at least one schema (anyOf)', pathless=True)
        no_int64 = class_ is float and not _is_int64(value)
        return [problem, neither, _type_problem("integer", _TYPE_NAMES[class_]), *([_out_of_range("")] if no_int64 else ())]

    return problems


def _is_int64(value: float) -> bool:
    return -(2**63) <= value < 2**63 and value.is_integer()


def _out_of_range(format_: str) -> _Problem:
    said = f"with format {format_}" if format_ else "(default format)"
    return _Problem("invalid", "", f"Checked value must be of type integer {said} in {{}}", pathless=True)


def _type_problem(wanted: str, got: str) -> _Problem:
    return _Problem("type_invalid", got, f"{{}} in body must be of type {wanted}: {gotext.quote(got)}")


def _enum_rule(schema: Schema) -> _Check:
    allowed = frozenset((value.__class__, value) for value in schema.enum)
    supported = tuple(value if isinstance(value, str) else str(value).lower() for value in schema.enum)

    def check(value: JSON, old: JSON) -> list[_Problem] | None:
        if value.__class__ not in (dict, list) and (value.__class__, value) in allowed:
            return None
        return [_Problem("not_supported", value, supported=supported)]

    return check


def _string_rules(schema: Schema) -> Iterable[_Check]:
    least, most, pattern = schema.min_length or 0, schema.max_length, schema.pattern
    matches = _go_pattern(pattern) if pattern else None
    if least or most is not None or matches is not None:

        def shape(value: str, old: JSON) -> list[_Problem] | None:
            if most is not None and len(value) > most:
                return [_Problem("too_long", "", _at_most_bytes(most))]
            if len(value) < least:
                return [_Problem("invalid", value, f"{{}} in body should be at least {least} chars long")]
            if matches is not None and matches(value) is None:
                text = f"{{}} in body should match '{pattern}'"
                # A quantity is no JSON Schema pattern to its user; its path is the one of core/v1: limits[cpu].
                return [_Problem("invalid", value, text, phase=2 if schema.int_or_string else 0)]
            return None

        yield shape
    format_ = _effective_format(schema) if schema.type in ("string", "") else ""
    if format_:
        good = formats.check_of(format_)
        assert good is not None

        def of_format(value: str, old: JSON) -> list[_Problem] | None:
            if good(value):
                return None
            return [_Problem("type_invalid", value, f"{{}} in body must be of type {format_}: {gotext.quote(value)}")]

        yield of_format


def _at_most_bytes(most: int) -> str:
    return f"may not be more than {most} {'byte' if most == 1 else 'bytes'}"


def _go_pattern(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """Compile a pattern of Go's: `$` is the very end of the text there, and classes such as `\\d` are ASCII."""
    translated, position, in_class = [], 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            escape = pattern[position : position + 2]
            if escape in ("\\p", "\\P", "\\Q", "\\C"):
                raise ValueError(f"the pattern {pattern} uses {escape}, which Python does not know")
            translated.append("\\Z" if escape == "\\z" else escape)
            position += 2
            continue
        if in_class and pattern.startswith("[:", position):
            raise ValueError(f"the pattern {pattern} uses a POSIX class, which Python does not know")
        if character in "[]":
            in_class = character == "[" or (in_class and pattern[position - 1] in "[^" and pattern[position - 2 : position] in ("[", "[^"))
        translated.append("\\Z" if character == "$" and not in_class else character)
        position += 1
    try:
        return re.compile("".join(translated), re.ASCII).search
    except re.error as error:
        raise ValueError(f"the pattern {pattern} cannot be used: {error}") from error


def _number_rules(schema: Schema) -> Iterable[_Check]:
    integer = schema.type == "integer"
    format_ = _effective_format(schema) if integer else ""
    beyond = _INT_RANGES[format_] if integer else None
    factor, high, low = schema.multiple_of, schema.maximum, schema.minimum
    if beyond is None and factor is None and high is None and low is None:
        return
    simple_low = -beyond if beyond is not None else float("-inf")
    if low is not None:
        simple_low = max(simple_low, low if not schema.exclusive_minimum else float("inf"))
    simple_high = beyond - 1 if beyond is not None else float("inf")
    if high is not None:
        simple_high = min(simple_high, high if not schema.exclusive_maximum else float("-inf"))

    def check(value: int | float, old: JSON) -> list[_Problem] | None:
        if factor is None and simple_low <= value <= simple_high and (value.__class__ is int or not integer):
            return None
        problems = []
        if beyond is not None and not (-beyond <= value < beyond and value == int(value)):
            problems.append(_out_of_range(format_))
        if factor is not None and (int_factor := int(factor) if value.__class__ is int else factor) and value % int_factor:
            problems.append(_Problem("invalid", value, f"{{}} in body should be a multiple of {gotext.number(int_factor)}"))
        for bound, sign, exclusive, words in (
            (low, 1, schema.exclusive_minimum, "greater than"),
            (high, -1, schema.exclusive_maximum, "less than"),
        ):
            if bound is None:
                continue
            limit = int(bound) if value.__class__ is int else float(bound)
            if value * sign < limit * sign or (exclusive and value == limit):
                words = words if exclusive else f"{words} or equal to"
                problems.append(_Problem("invalid", value, f"{{}} in body should be {words} {gotext.number(limit)}"))
        return problems or None

    yield check


def _array_rules(schema: Schema) -> Iterable[_Check]:
    if schema.items is not None:
        yield _items_rule(schema, schema.items)
    least, most = schema.min_items, schema.max_items
    if least is not None or most is not None:

        def size(value: list[Any], old: JSON) -> list[_Problem] | None:
            if least is not None and len(value) < least:
                return [_Problem("invalid", len(value), f"{{}} in body should have at least {least} items")]
            return [_too_many(len(value), most)] if most is not None and len(value) > most else None

        yield size
    if schema.list_type == "set":
        yield _set_rule
    elif schema.list_type == "map":
        yield _map_rule(schema.list_map_keys)


def _too_many(size: int, most: int) -> _Problem:
    return _Problem("too_many", size, f"must have at most {most} {'item' if most == 1 else 'items'}")


def _items_rule(schema: Schema, items: Schema) -> _Check:
    check = _check_of(items)
    plain = _plain_class(items)
    keys = schema.list_map_keys if schema.list_type == "map" else ()

    def rule(value: list[Any], old: JSON) -> list[_Problem] | None:
        problems: list[_Problem] | None = None
        before = _by_key(old, keys) if keys and old.__class__ is list else None
        for index, item in enumerate(value):
            if item.__class__ is plain:
                continue
            previous = ABSENT
            if before:
                identity = _key_of(item, keys)
                previous = ABSENT if identity is None else before.get(identity, ABSENT)
                if item is previous:
                    continue
            found = check(item, previous)
            if found is not None and not (previous is not ABSENT and _unchanged(items, item, previous)):
                for problem in found:
                    problem.path.append(index)
                if problems is None:
                    problems = found
                else:
                    problems.extend(found)
                if len(problems) >= _MOST_PROBLEMS:
                    break
        return problems

    return rule


def _key_of(item: JSON, keys: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Return what identifies an element of a list map; None if it has no such thing."""
    if item.__class__ is not dict:
        return None
    values = [item.get(key) for key in keys]
    if any(value is None or value.__class__ is dict or value.__class__ is list for value in values):
        return None
    return tuple([(value.__class__, value) for value in values])


def _by_key(old: list[Any], keys: tuple[str, ...]) -> dict[tuple[Any, ...], Any]:
    found: dict[tuple[Any, ...], Any] = {}
    for item in old:
        key = _key_of(item, keys)
        if key is not None:
            found.setdefault(key, item)
    return found


def _set_rule(value: list[Any], old: JSON) -> list[_Problem] | None:
    try:
        if len(set(value)) == len(value):
            return None
    except TypeError:
        pass
    return [_duplicate(index, value[index]) for index in _repeated(value)] or None


def _duplicate(index: int, value: JSON) -> _Problem:
    return _Problem("duplicate", value, phase=1, path=[index])


def _repeated(values: list[Any]) -> list[int]:
    """Return where a value stands for the second time; what stands there a third time is not told again."""
    seen: dict[Any, int] = {}
    repeated = []
    for index, value in enumerate(values):
        identity = _identity(value)
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            repeated.append(index)
            if len(repeated) == _MOST_PROBLEMS:
                break
    return repeated


def _identity(value: JSON) -> Any:
    """Return something hashable that is equal for equal JSON values only."""
    if value.__class__ is dict:
        return (dict, frozenset((key, _identity(item)) for key, item in value.items()))
    if value.__class__ is list:
        return (list, tuple(map(_identity, value)))
    return (value.__class__, value)


def _map_rule(keys: tuple[str, ...]) -> _Check:
    first, several = keys[0], len(keys) > 1

    def rule(value: list[Any], old: JSON) -> list[_Problem] | None:
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
                return [_Problem("invalid", item, "must be an object for an array of list-type map", phase=1, path=[index])]
        identities = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
        return [_duplicate(index, identities[index]) for index in _repeated(identities)] or None

    return rule


def _plain_class(schema: Schema) -> type | None:
    """Return the class of a scalar that has no rule but its type, so that its parent can check it in passing."""
    if schema.type not in ("string", "boolean", "integer") or schema.enum or schema.immutable:
        return None
    if list(_string_rules(schema) if schema.type == "string" else _number_rules(schema) if schema.type == "integer" else ()):
        return None
    return _CLASSES[schema.type]


def _object_rules(schema: Schema) -> Iterable[_Check]:
    least, most = schema.min_properties, schema.max_properties
    if least is not None or most is not None:

        def size(value: dict[str, Any], old: JSON) -> list[_Problem] | None:
            if least is not None and len(value) < least:
                return [_Problem("invalid", len(value), f"{{}} in body should have at least {least} properties")]
            return [_too_many(len(value), most)] if most is not None and len(value) > most else None

        yield size
    if schema.additional_properties is not None:
        yield _values_rule(schema, schema.additional_properties)
    if schema.properties:
        yield _properties_rule(schema)
    if schema.required:
        yield _required_rule(schema.required)
    immutable = tuple(name for name, child in schema.properties.items() if child.immutable)
    if immutable:
        yield _immutable_rule(immutable)


def _values_rule(schema: Schema, values: Schema) -> _Check:
    check, plain, named = _check_of(values), _plain_class(values), schema.properties

    def rule(value: dict[str, Any], old: JSON) -> list[_Problem] | None:
        problems: list[_Problem] = []
        before = old if old.__class__ is dict else _NOTHING
        for key, item in value.items():
            if item.__class__ is plain or key in named:
                continue
            previous = before.get(key, ABSENT)
            found = None if item is previous else check(item, previous)
            if found is not None and not (previous is not ABSENT and _unchanged(values, item, previous)):
                for problem in found:
                    problem.path.append(_Key(key))
                problems.extend(found)
                if len(problems) >= _MOST_PROBLEMS:
                    break
        return problems or None

    return rule


def _properties_rule(schema: Schema) -> _Check:
    plain_of = {name: class_ for name, child in schema.properties.items() if (class_ := _plain_class(child)) is not None}.get
    check_of = {name: _check_of(child) for name, child in schema.properties.items()}.get
    order = {name: index for index, name in enumerate(schema.properties)}

    def rule(value: dict[str, Any], old: JSON) -> list[_Problem] | None:
        wrong: list[tuple[int, list[_Problem]]] | None = None
        before = old if old.__class__ is dict else None
        for key, item in value.items():
            if plain_of(key) is item.__class__:
                continue
            check = check_of(key)
            if check is None:
                continue
            previous = ABSENT
            if before is not None:
                previous = before.get(key, ABSENT)
                if item is previous:
                    continue
            found = check(item, previous)
            if found is not None and not (previous is not ABSENT and _unchanged(schema.properties[key], item, previous)):
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


def _required_rule(required: tuple[str, ...]) -> _Check:
    needed = frozenset(required)

    def rule(value: dict[str, Any], old: JSON) -> list[_Problem] | None:
        if needed <= value.keys():
            return None
        return [_Problem("required", path=[name]) for name in required if name not in value]

    return rule


def _immutable_rule(names: tuple[str, ...]) -> _Check:
    def rule(value: dict[str, Any], old: JSON) -> list[_Problem] | None:
        if old.__class__ is not dict:
            return None
        changed = [name for name in names if name in old and not (name in value and identical(value[name], old[name]))]
        return [_Problem("invalid", value.get(name), "field is immutable", phase=2, path=[name]) for name in changed] or None

    return rule
