"""Label and field selectors: read as Kubernetes reads them, compiled into predicates, comparable so that equal ones can share work.

Two selectors are equal when they mean the same by their form (`a=b`, `a==b` and `a in (b)`, in any order), which is what groups watchers.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/labels/selector.go and pkg/fields/selector.go
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from apiserver.meta.field_errors import FieldError, aggregate, invalid
from apiserver.meta.validation import label_key_errors, label_value_errors

Labels = Mapping[str, str]
FieldGetter = Callable[[str], str]


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
    """What labels must be like. Make it with `parse_label_selector`."""

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
                return lambda labels: (number := _int64(labels.get(key, ""))) is not None and number > bound
            return lambda labels: (number := _int64(labels.get(key, ""))) is not None and number < bound
        case "!=" | "notin":
            return lambda labels: labels.get(key) not in values
    if len(values) == 1:
        (value,) = values
        return lambda labels: labels.get(key) == value
    return lambda labels: labels.get(key) in values


_INTEGER: Final = re.compile("[+-]?[0-9]{1,40}")


def _int64(text: str) -> int | None:
    """The number that Go's ParseInt(text, 10, 64) gives; None where it fails."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


_SYMBOLS: Final = "=!(),<>"
_BLANKS: Final = " \t\r\n"
_TOKEN: Final = re.compile(rf"==|!=|[{_SYMBOLS}]|[^{_SYMBOLS}{_BLANKS}\0]+|\0")
_END: Final = "\0"
_OPERATORS: Final = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}


def parse_label_selector(text: str) -> LabelSelector:
    """Read a label selector.

    Raises:
        SelectorError: with upstream's text, as in `unable to parse requirement: found '', expected: identifier`.
    """
    return label_selector(_Parser(text).requirements()) if text else EVERYTHING


class _Parser:
    """A reader of the grammar; every method takes the tokens that belong to it."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def _next(self) -> str:
        token = self._tokens[self._position]
        self._position += 1
        return token

    @property
    def _ahead(self) -> str:
        return self._tokens[self._position]

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._ahead == _END:
            return found
        if not (_is_identifier(self._ahead) or self._ahead == "!"):
            raise SelectorError(f"found '{_said(self._ahead)}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from error
            token = self._next()
            if token == _END:
                return found
            if token != ",":
                raise SelectorError(f"found '{_said(token)}', expected: ',' or 'end of string'")
            if not (_is_identifier(self._ahead) or self._ahead == "!"):
                raise SelectorError(f"found '{_said(self._ahead)}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        token = self._next()
        negated = token == "!"
        if negated:
            token = self._next()
        if not _is_identifier(token):
            raise SelectorError(f"found '{_said(token)}', expected: identifier")
        key = token
        if problems := label_key_errors(key):
            raise SelectorError(str(invalid("<nil>", key, "; ".join(problems))))
        if negated or self._ahead in (_END, ","):
            return Requirement(key, "!" if negated else "exists")
        token = self._next()
        operator = _OPERATORS.get(token)
        if operator is None:
            raise SelectorError(f"found '{_said(token)}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._set() if operator in ("in", "notin") else {self._exact_value()}
        return _checked(Requirement(key, operator, tuple(sorted(values))))

    def _exact_value(self) -> str:
        if self._ahead in (_END, ","):
            return ""
        token = self._next()
        if not _is_identifier(token):
            raise SelectorError(f"found '{_said(token)}', expected: identifier")
        return token

    def _set(self) -> set[str]:
        token = self._next()
        if token != "(":
            raise SelectorError(f"found '{_said(token)}' expected: '('")
        if self._ahead == ")":
            self._next()
            return {""}
        if not (_is_identifier(self._ahead) or self._ahead == ","):
            raise SelectorError(f"found '{_said(self._ahead)}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            token = self._next()
            if _is_identifier(token):
                values.add(token)
                if self._ahead == ")":
                    self._next()
                    return values
                if self._ahead != ",":
                    raise SelectorError(f"found '{_said(self._ahead)}', expected: ',' or ')'")
            elif token == ",":
                if not values:
                    values.add("")
                if self._ahead == ")":
                    self._next()
                    return values | {""}
                if self._ahead == ",":
                    values.add("")
            else:
                raise SelectorError(f"found '{_said(token)}', expected: ',', or identifier")


def _tokens(text: str) -> list[str]:
    """The tokens, and an end after them. A NUL behind a token goes with it; elsewhere it ends the text, as in upstream's lexer."""
    tokens: list[str] = []
    end = -1
    for match in _TOKEN.finditer(text):
        if match[0] == _END:
            if match.start() != end:
                break
            continue
        tokens.append(match[0])
        end = match.end()
    return [*tokens, _END]


def _is_identifier(token: str) -> bool:
    return token not in ("==", "!=", _END) and token not in _SYMBOLS


def _said(token: str) -> str:
    return "" if token == _END else token


def _checked(term: Requirement) -> Requirement:
    found: list[FieldError] = []
    if term.operator in ("gt", "lt") and _int64(term.values[0]) is None:
        found.append(invalid("values[0]", term.values[0], "for 'Gt', 'Lt' operators, the value must be an integer"))
    for index, value in enumerate(term.values):
        if problems := label_value_errors(value):
            found.append(invalid(f"values[{index}][{term.key}]", value, "; ".join(problems)))
    if found:
        raise SelectorError(aggregate(found))
    return term


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
    terms = (_field_term(part, text) for part in sorted(_split_terms(text)) if part)
    return field_selector(term for term in terms if term.field or term.value)


def field_selector(terms: Iterable[FieldTerm]) -> FieldSelector:
    """The selector of these terms, all of which must hold."""
    demands = tuple(terms)
    if not demands:
        return EVERY_FIELD

    def matches(get: FieldGetter) -> bool:
        return all((get(term.field) == term.value) is not term.negated for term in demands)

    return FieldSelector(",".join(sorted(set(map(str, demands)))), demands, matches)


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
