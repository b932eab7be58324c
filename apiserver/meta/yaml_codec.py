"""YAML as Kubernetes reads and writes it: YAML 1.1 with string keys, as JSON values.

Reading goes through libyaml's events, never through a constructor: no tag makes an object, and whatever a document unfolds to is counted
before it is built, so that neither aliases nor depth cost more than the bounds say. Only the first document of a stream counts. Writing
has the look of `kubectl get -o yaml`.
Source: https://github.com/kubernetes-sigs/yaml
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cmp_to_key
from typing import Any, Final

import yaml

from apiserver.meta.json_codec import DEPTH_LIMIT
from openapi import gotext
from openapi.structural import JSON

NODES_LIMIT: Final = 200_000
"""Scalars, lists and maps that a document may unfold to, keys included: more than 3 MiB of anything sensible."""

_TAG: Final = "tag:yaml.org,2002:"


class YAMLError(ValueError):
    """A document that cannot be read; the text begins with `yaml: ` and is upstream's, where it has one."""


# Scalars

_WORDS: Final[dict[str, bool | float | None]] = {
    **{word: True for low in ("y", "yes", "true", "on") for word in (low, low.capitalize(), low.upper())},
    **{word: False for low in ("n", "no", "false", "off") for word in (low, low.capitalize(), low.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]| +)[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?(?:Z|[-+][0-9:]+)?)?"
)
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DIGITS_LIMIT: Final = 400
"""A longer number is text for Go too (out of range), and Python would take long to read it."""


def _resolved(text: str) -> JSON:
    """The value that a plain scalar has."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-." or len(text) > _DIGITS_LIMIT:
        return text
    if text[0] == ".":
        return _float(text, text)
    plain = text.replace("_", "")
    match = _INTEGER.fullmatch(plain)
    if match is None:
        return _float(plain, text)
    number = next(int(digits, base) for digits, base in zip(match.groups()[1:], (16, 2, 8, 10), strict=True) if digits is not None)
    number = -number if match[1] == "-" else number
    if -(2**63) <= number < 2**63:
        return number
    return float(number) if 0 < number < 2**64 and not match[1] else _float(plain, text)


def _float(plain: str, text: str) -> JSON:
    if not _FLOAT.fullmatch(plain):
        return text
    number = float(plain)
    return text if math.isinf(number) else number


_TAG_NAMES: Final = {str: "!!str", bool: "!!bool", int: "!!int", float: "!!float", type(None): "!!null"}


def _scalar(event: yaml.ScalarEvent) -> JSON:
    tag, text = event.tag, event.value
    if tag is None:
        return _resolved(text) if event.style in (None, "") else text
    if tag in ("!", f"{_TAG}str", f"{_TAG}timestamp"):
        return text
    if tag == f"{_TAG}binary":
        try:
            return base64.b64decode(re.sub(r"\s", "", text), validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            raise YAMLError("yaml: !!binary value contains invalid base64 data") from None
    wanted = f"!!{tag.removeprefix(_TAG)}"
    if wanted not in _TAG_NAMES.values():
        raise _foreign_tag(tag)
    value = _resolved(text)
    if wanted == "!!float" and value.__class__ is int:
        return float(value)
    if _TAG_NAMES[value.__class__] != wanted:
        raise YAMLError(f"yaml: cannot decode {_TAG_NAMES[value.__class__]} `{text}` as a {wanted}")
    return value


def _foreign_tag(tag: str) -> YAMLError:
    short = tag.replace(_TAG, "!!", 1)
    return YAMLError(f"yaml: the tag {short} is not supported")


# Reading


def decode(data: bytes, *, duplicates: list[str] | None = None) -> JSON:
    """Read the first document of a stream; an empty stream is null.

    `duplicates` receives a text for each key that is set twice, as in `line 3: key "a" already set in map`; the last one counts.

    Raises:
        YAMLError: no YAML, not UTF-8, a tag that is not YAML's own, a key or number that JSON cannot say, nested too deep, or unfolding
            to more than NODES_LIMIT nodes.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise YAMLError(f"yaml: invalid UTF-8 at byte {error.start}") from None
    builder = _Builder(duplicates)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentEndEvent):
                break
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise YAMLError(f"yaml: {_where(error)}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise YAMLError(f"yaml: {error.reason}") from None
    return builder.root


def _where(error: yaml.MarkedYAMLError) -> str:
    """The line as upstream counts it: libyaml's scanner stops before a line that its parser has already entered."""
    line = error.problem_mark.line if error.problem_mark is not None else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    elif not line and error.context_mark is not None:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


def strict_error(duplicates: list[str]) -> str:
    """The one text that upstream makes of all duplicates, for a strict decoding error."""
    return "yaml: unmarshal errors:\n  " + "\n  ".join(duplicates)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 0


class _Merge:
    """The type of the key `<<`."""


_NO_KEY: Final = object()
_MERGE: Final = _Merge()


class _Open:
    """A list or map that is being read."""

    __slots__ = ("anchor", "key", "key_line", "nodes_before", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None, nodes_before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.key: Any = _NO_KEY
        self.key_line = 0
        self.nodes_before = nodes_before


class _Builder:
    """Makes a value of events, without recursion."""

    def __init__(self, duplicates: list[str] | None) -> None:
        self.root: JSON = None
        self._duplicates = duplicates
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[JSON, int]] = {}
        self._nodes = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._count(1)
            value = _scalar(event)
            top = self._open[-1] if self._open else None
            if top is not None and top.key is _NO_KEY and top.value.__class__ is dict:
                is_merge = event.value == "<<" and event.style in (None, "") and event.tag in (None, f"{_TAG}merge")
                self._set_key(top, _MERGE if is_merge else value, _line(event))
            else:
                self._add(value)
            if event.anchor:
                self._anchors[event.anchor] = (value, 1)
        elif isinstance(event, yaml.AliasEvent):
            self._add_alias(event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._begin({}, event, "map")
        elif isinstance(event, yaml.SequenceStartEvent):
            self._begin([], event, "seq")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = self._open.pop()
            if done.anchor:
                self._anchors[done.anchor] = (done.value, self._nodes - done.nodes_before)
            self._add(done.value)

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > NODES_LIMIT:
            raise YAMLError(f"yaml: document unfolds to more than {NODES_LIMIT} nodes")

    def _begin(self, value: dict[str, Any] | list[Any], event: yaml.CollectionStartEvent, kind: str) -> None:
        if event.tag not in (None, "!", _TAG + kind):
            raise _foreign_tag(event.tag)
        if len(self._open) >= DEPTH_LIMIT:
            raise YAMLError(f"yaml: exceeded max depth of {DEPTH_LIMIT}")
        top = self._open[-1] if self._open else None
        if top is not None and top.value.__class__ is dict and top.key is _NO_KEY:
            raise YAMLError("yaml: invalid map key: a map or a list")
        self._open.append(_Open(value, event.anchor, self._nodes))
        self._count(1)

    def _add_alias(self, event: yaml.AliasEvent) -> None:
        if any(container.anchor == event.anchor for container in self._open):
            raise YAMLError(f"yaml: anchor '{event.anchor}' value contains itself")
        if event.anchor not in self._anchors:
            raise YAMLError(f"yaml: unknown anchor '{event.anchor}' referenced")
        value, nodes = self._anchors[event.anchor]
        if self._nodes + nodes > NODES_LIMIT:
            raise YAMLError("yaml: document contains excessive aliasing")
        self._count(nodes)
        top = self._open[-1]
        if top.value.__class__ is dict and top.key is _NO_KEY:
            if value.__class__ in (dict, list):
                raise YAMLError("yaml: invalid map key: a map or a list")
            self._set_key(top, value, _line(event))
        else:
            if nodes > 1 and len(self._open) + _depth(value) > DEPTH_LIMIT:
                raise YAMLError(f"yaml: exceeded max depth of {DEPTH_LIMIT}")
            self._add(deepcopy(value))  # whoever reads the value may change it in place

    def _set_key(self, top: _Open, key: Any, line: int) -> None:
        match key:
            case _Merge():
                top.key = key
            case str():
                top.key = key
            case bool():
                top.key = "true" if key else "false"
            case int() | float():
                top.key = gotext.number(key)
            case _:
                raise YAMLError("unsupported map key of type: null")
        top.key_line = line

    def _add(self, value: JSON) -> None:
        if value.__class__ is float and not math.isfinite(value):
            raise YAMLError(f"json: unsupported value: {'NaN' if math.isnan(value) else '+Inf' if value > 0 else '-Inf'}")
        if not self._open:
            self.root = value
            return
        top = self._open[-1]
        target = top.value
        if isinstance(target, list):
            target.append(value)
            return
        key, top.key = top.key, _NO_KEY
        if isinstance(key, _Merge):
            merged = value if isinstance(value, list) else [value]
            if not all(isinstance(each, dict) for each in merged):
                raise YAMLError("yaml: map merge requires map or sequence of maps as the value")
            for each in reversed(merged):
                target.update(each)
            return
        if self._duplicates is not None and key in target:
            self._duplicates.append(f"line {top.key_line}: key {gotext.quote(key)} already set in map")
        target[key] = value


def _depth(value: JSON) -> int:
    """Levels of nesting, found level by level."""
    depth, level = 0, [value]
    while level:
        inner = [item.values() if item.__class__ is dict else item for item in level if item.__class__ in (dict, list)]
        depth, level = depth + bool(inner), [item for items in inner for item in items]
    return depth


# Writing


def encode(value: JSON) -> bytes:
    """Write a value as upstream does: keys in natural order (`a9` before `a10`), lists not indented, text quoted where it must be."""
    document = [yaml.DocumentStartEvent(explicit=False), *_events(value), yaml.DocumentEndEvent(explicit=False)]
    events = [yaml.StreamStartEvent(), *document, yaml.StreamEndEvent()]
    text: str = yaml.emit(events, Dumper=yaml.CSafeDumper, allow_unicode=True)
    return text.removesuffix("...\n").encode()


def _events(value: JSON) -> Iterator[yaml.Event]:
    if isinstance(value, dict):
        yield yaml.MappingStartEvent(None, None, True, flow_style=False)
        for key in sorted(value, key=_natural_key):
            yield _text(key, is_key=True)
            yield from _events(value[key])
        yield yaml.MappingEndEvent()
    elif isinstance(value, list | tuple):
        yield yaml.SequenceStartEvent(None, None, True, flow_style=False)
        for item in value:
            yield from _events(item)
        yield yaml.SequenceEndEvent()
    elif isinstance(value, str):
        yield _text(value)
    else:
        plain = "null" if value is None else str(value).lower() if isinstance(value, bool) else gotext.number(value)
        yield yaml.ScalarEvent(None, None, (True, True), plain)


def _text(text: str, *, is_key: bool = False) -> yaml.ScalarEvent:
    if "\n" in text:
        style = "|"
    elif _resolved(text) is not text or _TIMESTAMP.fullmatch(text) or _BASE_60.fullmatch(text) or (is_key and text == "<<"):
        style = '"'
    else:
        style = None
    return yaml.ScalarEvent(None, None, (True, True), text, style=style)


def _compare(one: str, other: str) -> int:
    """Compare as upstream's keys are compared: letters come after everything else, runs of digits are numbers."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left == right:
            continue
        if left.isalpha() or right.isalpha():
            return -1 if (left < right if left.isalpha() and right.isalpha() else right.isalpha()) else 1
        inside_number = "0" in (left, right) and re.search("[1-9][0-9]*$", one[:index]) is not None
        runs = [_digits(text, index) for text in (one, other)]
        numbers = [int(("1" if inside_number else "") + run or "0") for run in runs]
        if numbers[0] != numbers[1]:
            return -1 if numbers[0] < numbers[1] else 1
        if len(runs[0]) != len(runs[1]):
            return -1 if len(runs[0]) < len(runs[1]) else 1
        return -1 if left < right else 1
    return len(one) - len(other)


_natural_key = cmp_to_key(_compare)


def _digits(text: str, start: int) -> str:
    match = re.compile("[0-9]{0,18}").match(text, start)
    return match[0] if match else ""
