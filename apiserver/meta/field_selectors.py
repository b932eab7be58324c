"""Field selectors: read as Kubernetes reads them, compiled into a predicate, comparable so that equal ones can share work.

Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/fields/selector.go
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from apiserver.meta.selectors import SelectorError, check_length

FieldGetter = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One term of a field selector."""

    field: str
    value: str
    negated: bool

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'!=' if self.negated else '='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """What fields must be like. Make it with `parse_field_selector`."""

    key: str
    """Equal for equal selectors."""
    terms: tuple[FieldTerm, ...] = field(compare=False)
    matches: Callable[[FieldGetter], bool] = field(compare=False, repr=False)
    """Whether an object is selected, given what tells the value of a field (empty if it is not set)."""

    @property
    def empty(self) -> bool:
        """Whether everything is selected."""
        return not self.terms

    def required(self, name: str) -> str | None:
        """The value that a field must have, if the selector demands exactly one."""
        return next((term.value for term in self.terms if term.field == name and not term.negated), None)

    def check(self, selectable: Iterable[str]) -> None:
        """Refuse a field that nobody can select by.

        Raises:
            SelectorError: as in `field label not supported: spec.replicas`.
        """
        known = {"metadata.name", "metadata.namespace", *selectable}
        for term in self.terms:
            if term.field not in known:
                raise SelectorError(f"field label not supported: {term.field}")

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def _every_field(get: FieldGetter) -> bool:
    return True


EVERY_FIELD: Final = FieldSelector("", (), _every_field)
"""Selects everything."""


def parse_field_selector(text: str) -> FieldSelector:
    r"""Read a field selector; `\\`, `\,` and `\=` stand for themselves in values.

    Raises:
        SelectorError: with upstream's text.
    """
    check_length(text)
    terms = (_field_term(part, text) for part in sorted(_split_terms(text)) if part)
    return field_selector(term for term in terms if term.field or term.value)


def field_selector(terms: Iterable[FieldTerm]) -> FieldSelector:
    """The selector of these terms, all of which must hold."""
    demands = tuple(terms)
    if not demands:
        return EVERY_FIELD
    by_field: dict[str, list[FieldTerm]] = {}
    for term in demands:
        by_field.setdefault(term.field, []).append(term)
    tests = [(name, _test(of_field)) for name, of_field in by_field.items()]

    def matches(get: FieldGetter) -> bool:
        return all(test(get(name)) for name, test in tests)

    return FieldSelector(",".join(sorted(set(map(str, demands)))), demands, matches)


def _test(terms: list[FieldTerm]) -> Callable[[str], bool]:
    """Whether a value is what all the terms, of one field, want: found by one look, however many they are."""
    allowed, refused = {term.value for term in terms if not term.negated}, frozenset(term.value for term in terms if term.negated)
    if not allowed:
        return lambda value: value not in refused
    # It cannot have two values.
    return frozenset(allowed - refused if len(allowed) == 1 else ()).__contains__


_TERM: Final = re.compile(r"(?:[^\\,]|\\.?)*", re.DOTALL)


def _split_terms(text: str) -> list[str]:
    parts, position = [], 0
    while position <= len(text):
        match = _TERM.match(text, position)
        assert match is not None
        parts.append(match[0])
        position = match.end() + 1
    return parts


_FIELD_OPERATOR: Final = re.compile("!=|==|=")


def _field_term(part: str, whole: str) -> FieldTerm:
    operator = _FIELD_OPERATOR.search(part)
    if operator is None:
        raise SelectorError(f"invalid selector: '{whole}'; can't understand '{part}'")
    return FieldTerm(part[: operator.start()], _unescaped(part[operator.end() :]), operator[0] == "!=")


def _unescaped(text: str) -> str:
    if "\\" not in text and "," not in text and "=" not in text:
        return text
    characters = iter(text)
    value = ""
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if not escaped or escaped not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            value += escaped
        elif character in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            value += character
    return value
