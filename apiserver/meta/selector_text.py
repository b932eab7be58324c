"""Label selectors as they are written in a query, read token by token as Kubernetes reads them, with its words for what is wrong.

Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/labels/selector.go
"""

from __future__ import annotations

import re
from typing import Final

from apiserver.meta.field_errors import FieldError, aggregate, invalid
from apiserver.meta.selectors import EVERYTHING, LabelSelector, Requirement, SelectorError, check_length, int64, label_selector
from apiserver.meta.validation import label_key_errors, label_value_errors

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
    check_length(text)
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
    if _END not in text:
        return [*_TOKEN.findall(text), _END]
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
    if term.operator in ("gt", "lt") and int64(term.values[0]) is None:
        found.append(invalid("values[0]", term.values[0], "for 'Gt', 'Lt' operators, the value must be an integer"))
    for index, value in enumerate(term.values):
        if problems := label_value_errors(value):
            found.append(invalid(f"values[{index}][{term.key}]", value, "; ".join(problems)))
    if found:
        raise SelectorError(aggregate(found))
    return term
