"""YAML as Kubernetes reads it: YAML 1.1 with the scalars of go-yaml, turned into the JSON value that it stands for.

Works on the events of libyaml, without recursion and without constructing anything: a tag says at most which JSON type is meant. Bounded in
depth, and in what aliases may unfold to. Only the first document of a stream counts; of a key that is there twice, the last.
Source: https://github.com/yaml/go-yaml/blob/v2.4.0/resolve.go and https://github.com/kubernetes-sigs/yaml/blob/v1.6.0/yaml.go
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson
import yaml
from yaml._yaml import CParser

from openapi import gotext

if TYPE_CHECKING:
    from openapi.structural import JSON

DEPTH_LIMIT: Final = 1000
UNFOLDED_NODES: Final = 100_000
"""How many values all aliases together may add; honest documents use a handful."""
UNFOLDED_BYTES: Final = 3 * 1024 * 1024
"""How much text all aliases together may add: as much as a whole request."""

_WORDS: Final[dict[str, JSON]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|[1-9][0-9]*|0)")
_TAG: Final = "tag:yaml.org,2002:"
_GO_KINDS: Final = {"str": "!!str", "int": "!!int", "float": "!!float", "bool": "!!bool", "null": "!!null"}


class YAMLError(ValueError):
    """Bytes that are no YAML, or unfold to too much; the text is go-yaml's, as in `yaml: line 3: did not find expected key`."""


@dataclass(slots=True)
class _Open:
    """A list or a mapping whose end has not come yet."""

    value: Any
    anchor: str | None
    nodes_before: int
    text_before: int
    key: JSON = None
    has_key: bool = False
    line: int = 0
    seen: set[str] = field(default_factory=set)


def decode(data: bytes) -> tuple[JSON, list[str]]:
    """Return the value of the first document, and what a strict reader says of keys that are there twice.

    Raises:
        YAMLError: no YAML, too deep, or more than it seems.
    """
    try:
        return _Reader(CParser(data)).read()
    except yaml.YAMLError as error:
        raise YAMLError(f"yaml: {_problem(error)}") from error
    except UnicodeDecodeError as error:
        raise YAMLError("yaml: control characters are not allowed") from error


class _Reader:
    """Builds a value from the events of one document."""

    def __init__(self, parser: Any) -> None:
        self._next = parser.get_event
        self._anchors: dict[str, tuple[JSON, int, int] | None] = {}
        self._nodes = self._text = 0
        self._unfolded_nodes = self._unfolded_text = 0
        self._twice: list[str] = []

    def read(self) -> tuple[JSON, list[str]]:
        stack: list[_Open] = []
        while True:
            event: Any = self._next()
            kind = event.__class__
            if kind is yaml.StreamEndEvent:
                return None, []
            if kind is yaml.StreamStartEvent or kind is yaml.DocumentStartEvent:
                continue
            self._nodes += 1
            if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if len(stack) >= DEPTH_LIMIT:
                    raise YAMLError("yaml: exceeded max depth")
                container: JSON = {} if kind is yaml.MappingStartEvent else []
                if event.anchor is not None:
                    self._anchors[event.anchor] = None
                stack.append(_Open(container, event.anchor, self._nodes, self._text, line=event.start_mark.line))
                continue
            if kind is yaml.ScalarEvent:
                self._text += len(event.value)
                value = _scalar(event)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (value, 1, len(event.value))
                line, plain = event.start_mark.line, event.implicit[0]
            elif kind is yaml.AliasEvent:
                value, line, plain = self._unfold(event.anchor), event.start_mark.line, False
            else:
                closed = stack.pop()
                value, line, plain = closed.value, closed.line, False
                if closed.anchor is not None:
                    self._anchors[closed.anchor] = (value, self._nodes - closed.nodes_before + 1, self._text - closed.text_before)
            if not stack:
                return value, self._twice
            self._put(stack[-1], value, line, plain)

    def _put(self, into: _Open, value: JSON, line: int, plain: bool) -> None:
        """Give a finished value to the container that it stands in."""
        if into.value.__class__ is list:
            into.value.append(value)
        elif not into.has_key:
            into.key, into.has_key = (_MERGE if plain and value == "<<" else _key(value)), True
        else:
            into.has_key = False
            if into.key is _MERGE:
                for merged in value if value.__class__ is list else [value]:
                    if merged.__class__ is not dict:
                        raise YAMLError("yaml: map merge requires map or sequence of maps as the value")
                    into.value.update(merged)
                return
            if into.key in into.value:
                self._twice.append(f"line {line + 1}: key {gotext.quote(into.key)} already set in map")
            into.value[into.key] = value

    def _unfold(self, anchor: str) -> JSON:
        if anchor not in self._anchors:
            raise YAMLError(f"yaml: unknown anchor '{anchor}' referenced")
        known = self._anchors[anchor]
        if known is None:
            raise YAMLError(f"yaml: anchor '{anchor}' value contains itself")
        value, nodes, text = known
        self._nodes += nodes
        self._text += text
        self._unfolded_nodes += nodes
        self._unfolded_text += text
        if self._unfolded_nodes > UNFOLDED_NODES or self._unfolded_text > UNFOLDED_BYTES:
            raise YAMLError("yaml: document contains excessive aliasing")
        if value.__class__ is not dict and value.__class__ is not list:
            return value
        try:
            return orjson.loads(orjson.dumps(value))
        except TypeError as error:
            raise YAMLError("yaml: exceeded max depth") from error


_MERGE: Final = object()


def _key(value: JSON) -> str:
    """The key of an object that a YAML key stands for."""
    if value.__class__ is str:
        return str(value)
    if value is None or value.__class__ in (dict, list):
        raise YAMLError(f"unsupported map key of type: {'<nil>' if value is None else 'map or list'}")
    return str(value).lower() if value.__class__ is bool else gotext.number(value)


def _scalar(event: Any) -> JSON:
    """The JSON value of a scalar: what a plain one looks like, a string for a quoted one, and what a tag of YAML's own says."""
    text: str = event.value
    kind = (event.tag or "").removeprefix(_TAG)
    if kind not in _GO_KINDS:
        return _finite(_plain(text)) if event.implicit[0] else text
    if kind == "str":
        return text
    value = _plain(text)
    if kind == "float" and value.__class__ is int:
        return value
    wanted = {"int": int, "float": float, "bool": bool, "null": type(None)}[kind]
    if value.__class__ is not wanted:
        got = _GO_KINDS.get({str: "str", int: "int", float: "float", bool: "bool"}.get(value.__class__, "null"))
        raise YAMLError(f"yaml: cannot decode {got} `{text}` as a {_GO_KINDS[kind]}")
    return _finite(value)


def _plain(text: str) -> JSON:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "") if text[0] != "." else text
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits):
        return float(digits)
    return text


def _integer(digits: str) -> int | float:
    """An integer in any of YAML's notations; one that no 64 bits hold is a float, as it is in JSON."""
    unsigned = digits.lstrip("+-").lower()
    base = {"0x": 16, "0o": 8, "0b": 2}.get(unsigned[:2], 8 if unsigned.startswith("0") and len(unsigned) > 1 else 10)
    value = int(unsigned.removeprefix("0x").removeprefix("0o").removeprefix("0b") if base != 10 else unsigned, base)
    value = -value if digits.startswith("-") else value
    return value if -(2**63) <= value < 2**63 else float(value)


def _finite(value: JSON) -> JSON:
    """A number that JSON has; an integral one is an integer there."""
    if value.__class__ is not float:
        return value
    if not math.isfinite(value):
        raise YAMLError(f"json: unsupported value: {'NaN' if math.isnan(value) else '+Inf' if value > 0 else '-Inf'}")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _problem(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return "control characters are not allowed" if isinstance(error, yaml.reader.ReaderError) else str(error)
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: {error.problem}" if line else str(error.problem)
