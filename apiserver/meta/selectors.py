"""Label selectors: terms compiled into a predicate, comparable so that equal ones can share work.

Two selectors are equal when they mean the same by their form (`a=b`, `a==b` and `a in (b)`, in any order), which is what groups watchers.
How they are written is the matter of `selector_text.py`.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/labels/selector.go
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

Labels = Mapping[str, str]

_MAX_COMMAS: Final = 4096
"""In a selector: taking apart what they separate keeps others waiting for 20 ms at most. Who selects by a list of names sends hundreds."""


class SelectorError(ValueError):
    """A selector that cannot be read, or that asks for a field that is not selectable: the text of a 400."""


def check_length(text: str) -> None:
    """Refuse a selector of more parts than anybody can need, before it is taken apart.

    Raises:
        SelectorError: it has so many.
    """
    if text.count(",") > _MAX_COMMAS:
        raise SelectorError(f"the selector is too long: it has more than {_MAX_COMMAS} commas")


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
    return LabelSelector(",".join(sorted({term.canonical for term in terms})), terms, _conjunction(terms))


def _conjunction(terms: Sequence[Requirement]) -> Callable[[Labels], bool]:
    """Whether all the terms, sorted by key, hold. Looks at each label of an object once, however many terms there are."""
    demanded = frozenset(term.key for term in terms if term.operator not in _HOLD_WITHOUT_LABEL)
    tests = {key: _test(tuple(of_key)) for key, of_key in groupby(terms, key=lambda term: term.key)}
    if len(tests) == 1:
        return _of_one_key(*tests.popitem(), demanded)
    if len(tests) == 2:
        first, second = (_of_one_key(key, test, demanded) for key, test in tests.items())
        return lambda labels: first(labels) and second(labels)

    def matches(labels: Labels) -> bool:
        if not demanded <= labels.keys():
            return False
        for key, value in labels.items():
            test = tests.get(key)
            if test is not None and not test(value):
                return False
        return True

    return matches


def _of_one_key(key: str, test: Callable[[str], bool], demanded: frozenset[str]) -> Callable[[Labels], bool]:
    without_label = key not in demanded
    return lambda labels: without_label if (value := labels.get(key)) is None else test(value)


_HOLD_WITHOUT_LABEL: Final = frozenset({"!", "!=", "notin"})


def _test(terms: Sequence[Requirement]) -> Callable[[str], bool]:
    """Whether a value that is there is what all the terms, of one key, want."""
    allowed: frozenset[str] | None = None
    refused: set[str] = set()
    low, high = _BELOW_INT64, _ABOVE_INT64
    for term in terms:
        match term.operator:
            case "!":
                return lambda _value: False
            case "!=" | "notin":
                refused.update(term.values)
            case "gt":
                low = max(low, int(term.values[0]))
            case "lt":
                high = min(high, int(term.values[0]))
            case "=" | "==" | "in":
                allowed = frozenset(term.values) if allowed is None else allowed.intersection(term.values)

    bounded = low > _BELOW_INT64 or high < _ABOVE_INT64

    def holds(value: str) -> bool:
        return value not in refused and (not bounded or ((number := int64(value)) is not None and low < number < high))

    return holds if allowed is None else frozenset(filter(holds, allowed)).__contains__


_BELOW_INT64: Final = -(2**63) - 1
_ABOVE_INT64: Final = 2**63
_INTEGER: Final = re.compile("[+-]?[0-9]{1,40}")


def int64(text: str) -> int | None:
    """The number that Go's ParseInt(text, 10, 64) gives; None where it fails."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
