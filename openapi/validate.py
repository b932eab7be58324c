"""Validating: what is wrong with a normalized object, in the words in which kube-apiserver says it of a custom resource.

A schema is compiled once into closures that return None for a good value, so that a good object costs one short walk; paths and texts are
made only for what is wrong. On an update what did not change is not reported again (CRD ratcheting), whether or not it is still valid.
Source: https://github.com/kubernetes/kube-openapi/blob/master/pkg/validation/validate/schema.go (rules and texts),
https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/apiserver/validation/ratcheting.go, schema/listtype/validation.go
"""

from __future__ import annotations

from typing import Protocol

from openapi.list_rules import array_rules
from openapi.object_rules import object_rules
from openapi.problems import Check, Problem
from openapi.ratcheting import unchanged
from openapi.scalar_rules import number_rules, string_rules
from openapi.structural import ABSENT, JSON, Schema, Violation
from openapi.type_rules import enum_rule, good_classes, type_rule


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
    check = check_of(schema)

    def validate(value: JSON, old: JSON = ABSENT, *, at: str = "") -> list[Violation]:
        if value is old:
            return []
        problems = check(value, old)
        if problems is None or (old is not ABSENT and unchanged(schema, value, old)):
            return []
        if old is not ABSENT and any(problem.phase == 1 for problem in problems):
            before = check(old, ABSENT) or []
            if any(problem.phase == 1 for problem in before):  # upstream ratchets the rules of lists as a whole
                problems = [problem for problem in problems if problem.phase != 1]
        problems.sort(key=lambda problem: problem.phase)
        return [problem.violation(at) for problem in problems]

    return validate


def check_of(schema: Schema) -> Check:
    """Compile the rules of one place in the tree, and of what is below it.

    Raises:
        ValueError: as `compile`.
    """
    rules: list[tuple[type, Check]] = []
    if schema.int_or_string or schema.type in ("string", ""):
        rules.extend((str, rule) for rule in string_rules(schema))
    if schema.int_or_string or schema.type in ("integer", "number", ""):
        rules.extend((number, rule) for rule in number_rules(schema) for number in (int, float))
    if schema.type in ("array", ""):
        rules.extend((list, rule) for rule in array_rules(schema, check_of))
    if schema.type in ("object", ""):
        rules.extend((dict, rule) for rule in object_rules(schema, check_of))
    enum = enum_rule(schema) if schema.enum else None
    by_class: dict[type, Check | None] = {}
    for class_ in (str, int, float, bool, list, dict):
        of_class = [rule for for_class, rule in rules if for_class is class_]
        if enum is not None:
            of_class.append(enum)
        by_class[class_] = _all_of(of_class) if of_class else None
    type_problems = type_rule(schema)
    good = frozenset(good_classes(schema))

    def check(value: JSON, old: JSON) -> list[Problem] | None:
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


def _single(class_: type, rule: Check, otherwise: Check) -> Check:
    """The common case without detours: one type, one rule."""

    def check(value: JSON, old: JSON) -> list[Problem] | None:
        return rule(value, old) if value.__class__ is class_ else otherwise(value, old)

    return check


def _all_of(rules: list[Check]) -> Check:
    if len(rules) == 1:
        return rules[0]

    def check(value: JSON, old: JSON) -> list[Problem] | None:
        problems = None
        for rule in rules:
            found = rule(value, old)
            if found is not None:
                problems = found if problems is None else [*problems, *found]
        return problems

    return check
