"""Label selectors: terms compiled into a predicate, comparable so that equal ones can share work.

Two selectors are equal when they mean the same by their form (`a=b`, `a==b` and `a in (b)`, in any order), which is what groups watchers.
How they are written is the matter of `selector_text.py`.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/labels/selector.go
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

Labels = Mapping[str, str]


class SelectorError(ValueError):
    """A selector that cannot be read, or that asks for a field that is not selectable: the text of a 400."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a label selector."""

    key: str
    operator: str
    """One of `=`, `==`, `!=`, `in`, `notin`, `gt`, `lt`, `exists`, `!`."""
    values: tuple[str, ...] = ()
    """Sorted, each once."""

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.values[0]}"
        return f"{self.key}{self.operator}{self.values[0]}"

    @property
    def canonical(self) -> str:
        """The same for terms that mean the same."""
        if self.operator in ("==", "in") and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        if self.operator == "notin" and len(self.values) == 1:
            return f"{self.key}!={self.values[0]}"
        return str(self)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """What labels must be like. Make it with `selector_text.parse_label_selector`."""

    key: str
    """Equal for equal selectors: what watchers are grouped by."""
    requirements: tuple[Requirement, ...] = field(compare=False)
    """Sorted by key."""
    matches: Callable[[Labels], bool] = field(compare=False, repr=False)
    """Whether these labels are selected. Does not fail, does not change anything."""

    @property
    def empty(self) -> bool:
        """Whether everything is selected."""
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _everything(labels: Labels) -> bool:
    return True


EVERYTHING: Final = LabelSelector("", (), _everything)
"""Selects everything."""


def label_selector(requirements: Iterable[Requirement]) -> LabelSelector:
    """The selector of these terms, all of which must hold."""
    terms = tuple(sorted(requirements, key=lambda term: term.key))
    if not terms:
        return EVERYTHING
    return LabelSelector(",".join(sorted({term.canonical for term in terms})), terms, _conjunction([_predicate(term) for term in terms]))


def _conjunction(predicates: list[Callable[[Labels], bool]]) -> Callable[[Labels], bool]:
    if len(predicates) == 1:
        return predicates[0]
    if len(predicates) == 2:
        first, second = predicates
        return lambda labels: first(labels) and second(labels)
    return lambda labels: all(predicate(labels) for predicate in predicates)


def _predicate(term: Requirement) -> Callable[[Labels], bool]:
    key, values = term.key, frozenset(term.values)
    match term.operator:
        case "exists":
            return lambda labels: key in labels
        case "!":
            return lambda labels: key not in labels
        case "gt" | "lt":
            bound = int(term.values[0])
            if term.operator == "gt":
                return lambda labels: (number := int64(labels.get(key, ""))) is not None and number > bound
            return lambda labels: (number := int64(labels.get(key, ""))) is not None and number < bound
        case "!=" | "notin":
            return lambda labels: labels.get(key) not in values
    if len(values) == 1:
        (value,) = values
        return lambda labels: labels.get(key) == value
    return lambda labels: labels.get(key) in values


_INTEGER: Final = re.compile("[+-]?[0-9]{1,40}")


def int64(text: str) -> int | None:
    """The number that Go's ParseInt(text, 10, 64) gives; None where it fails."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
