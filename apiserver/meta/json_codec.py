"""JSON as Kubernetes reads and writes it.

Reading is orjson's, strict, with what it leaves open settled as upstream settles it: integers beyond 64 bits are floats, lone surrogates
become U+FFFD, and what is wrong is said in the words of Go's scanner. Bounded in depth; a deeper document is refused at once. Writing gives
the bytes of Go's encoder: sorted keys, `<`, `>` and `&` escaped, floats in Go's layout, a newline at the end.
Source: https://github.com/kubernetes-sigs/json and https://pkg.go.dev/encoding/json
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from openapi import gotext
from openapi.structural import JSON

DEPTH_LIMIT: Final = 254
"""Levels of nesting that can be read: as many as orjson writes again. Go's limit is 10,000; no object comes near either."""
_EXPLAINED_BYTES: Final = 128 * 1024
"""How far into a document its first mistake is looked for by the slow scanner that knows Go's words."""
_DUPLICATES_LIMIT: Final = 100
"""Upstream tells no more than this many either."""


class JSONSyntaxError(ValueError):
    """Bytes that are no JSON; the text is Go's, as in `invalid character '}' looking for beginning of value`."""


# Reading

_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_ESCAPE: Final = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL)


def decode(data: bytes) -> JSON:
    """Read one JSON value.

    Raises:
        JSONSyntaxError: no JSON, or not UTF-8, or nested too deep.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _decode_again(data, error)
    if b"0" * 19 in data.translate(_DIGITS):
        value = _with_int64(value)
    if data.count(b"[") + data.count(b"{") > DEPTH_LIMIT:
        check_depth(value)
    return value


def check_depth(value: JSON) -> None:
    """Refuse a value that is nested deeper than DEPTH_LIMIT.

    Raises:
        JSONSyntaxError: it is.
    """
    try:
        orjson.dumps(value)
    except TypeError:
        raise JSONSyntaxError("invalid character '[' exceeded max depth") from None


def _decode_again(data: bytes, error: orjson.JSONDecodeError) -> JSON:
    if "surrogate" in error.msg and "UTF-8" not in error.msg:
        repaired = _ESCAPE.sub(lambda match: b"\\ufffd" if len(match[0]) == 6 and match[0][1:2] == b"u" else match[0], data)
        if repaired != data:
            return decode(repaired)
    if "depth" in error.msg:
        raise JSONSyntaxError("invalid character '[' exceeded max depth") from None
    if "infinity" in error.msg:
        number = re.match(rb"[-+0-9.eE]*", data[_byte_position(data, error.pos) :])
        text = number[0][:64].decode() if number else ""
        raise JSONSyntaxError(f"json: cannot unmarshal number {text} into Go value of type float64") from None
    try:
        data.decode()
    except UnicodeDecodeError as invalid:
        raise JSONSyntaxError(f"invalid UTF-8 at byte {invalid.start}") from None
    raise JSONSyntaxError(_explain(data, _byte_position(data, error.pos))) from None


def _byte_position(data: bytes, position: int) -> int:
    """orjson counts characters."""
    return position if data.isascii() else len(data.decode("utf-8", "replace")[:position].encode())


def _with_int64(value: JSON) -> JSON:
    """Turn integers that no int64 holds into floats, in place."""
    if value.__class__ is int:
        return value if -(2**63) <= value < 2**63 else float(value)
    pending = [value]
    while pending:
        container = pending.pop()
        if container.__class__ is dict:
            items: Any = container.items()
        elif container.__class__ is list:
            items = enumerate(container)
        else:
            continue
        for key, item in items:
            if item.__class__ is int:
                if not -(2**63) <= item < 2**63:
                    container[key] = float(item)
            elif item.__class__ is dict or item.__class__ is list:
                pending.append(item)
    return value


_BLANK: Final = re.compile(rb"[ \t\r\n]*")
_STRING: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_BAD_NUMBER: Final = (
    (re.compile(rb"-"), "in numeric literal"),
    (re.compile(rb"-?(?:0|[1-9][0-9]*)\."), "after decimal point in numeric literal"),
    (re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][-+]?"), "in exponent of numeric literal"),
)
_LITERALS: Final = {0x74: b"true", 0x66: b"false", 0x6E: b"null"}
_END: Final = "unexpected end of JSON input"


def _explain(data: bytes, near: int) -> str:
    """Say in Go's words what is wrong with data that orjson refused near a position."""
    if near > _EXPLAINED_BYTES:
        return f"invalid character {_character(data, near)} near byte {near}" if near < len(data) else _END
    scanner = _Scanner(data)
    try:
        scanner.document()
    except JSONSyntaxError as error:
        return str(error)
    return f"invalid character {_character(data, near)} near byte {near}" if near < len(data) else _END


def _character(data: bytes, position: int) -> str:
    code = data[position]
    if code == 0x27:
        return "'\\''"
    if code == 0x22:
        return "'\"'"
    text = gotext.quote(chr(code))[1:-1]
    return f"'{text}'"


class _Scanner:
    """Walks over a document without recursion until something is wrong."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _fail(self, where: str) -> JSONSyntaxError:
        if self._at >= len(self._data):
            return JSONSyntaxError(_END)
        return JSONSyntaxError(f"invalid character {_character(self._data, self._at)} {where}")

    def _peek(self) -> bytes:
        match = _BLANK.match(self._data, self._at)
        assert match is not None
        self._at = match.end()
        return self._data[self._at : self._at + 1]

    def document(self) -> None:
        open_: list[bytes] = []
        while True:
            first = self._peek()
            if first in (b"{", b"["):
                open_.append(first)
                self._at += 1
                inner = self._peek()
                if inner == (b"}" if first == b"{" else b"]"):
                    self._at += 1
                    open_.pop()
                elif first == b"{":
                    self._key()
                    continue
                else:
                    continue
            else:
                self._scalar(first)
            while True:
                following = self._peek()
                if not open_:
                    if following:
                        raise self._fail("after top-level value")
                    return
                in_object = open_[-1] == b"{"
                if following == (b"}" if in_object else b"]"):
                    self._at += 1
                    open_.pop()
                    continue
                if following != b",":
                    raise self._fail("after object key:value pair" if in_object else "after array element")
                self._at += 1
                if in_object:
                    self._key()
                break

    def _key(self) -> None:
        if self._peek() != b'"':
            raise self._fail("looking for beginning of object key string")
        self._string()
        if self._peek() != b":":
            raise self._fail("after object key")
        self._at += 1

    def _string(self) -> None:
        match = _STRING.match(self._data, self._at)
        assert match is not None
        self._at = match.end()
        if self._data[self._at : self._at + 1] == b'"':
            self._at += 1
            return
        if self._data[self._at : self._at + 1] != b"\\":
            raise self._fail("in string literal")
        self._at += 1
        if self._data[self._at : self._at + 1] != b"u":
            raise self._unfinished("in string escape code")
        self._at += 1
        while self._data[self._at : self._at + 1] in b"0123456789abcdefABCDEF" and self._at < len(self._data):
            self._at += 1
        raise self._fail("in \\u hexadecimal character escape")

    def _scalar(self, first: bytes) -> None:
        if first == b'"':
            self._string()
        elif first and first in b"-0123456789":
            self._number()
        elif first and first[0] in _LITERALS:
            word = _LITERALS[first[0]]
            for index, expected in enumerate(word):
                if self._data[self._at : self._at + 1] != bytes([expected]):
                    raise self._unfinished(f"in literal {word.decode()} (expecting '{chr(word[index])}')")
                self._at += 1
        else:
            raise self._fail("looking for beginning of value")

    def _number(self) -> None:
        match = _NUMBER.match(self._data, self._at)
        good = match.end() if match else self._at
        for pattern, where in _BAD_NUMBER:
            part = pattern.match(self._data, self._at)
            if part is not None and part.end() > good:
                self._at = part.end()
                raise self._unfinished(where)
        self._at = good

    def _unfinished(self, where: str) -> JSONSyntaxError:
        """What ends within a word, a number or an escape: Go's scanner sees a blank there."""
        return JSONSyntaxError(f"invalid character ' ' {where}") if self._at >= len(self._data) else self._fail(where)


# Duplicate members


def duplicates(data: bytes, value: JSON) -> list[str]:
    """Return what is there twice in `data`, as in `duplicate field "spec.env[1].name"`, in the order of the document.

    `value` is what `decode` made of the data, unchanged. Cheap unless there are duplicates: a document without any has as many quotation
    marks as the same value written anew, if it escapes none of them in its own way.
    """
    if b"\\u" not in data and data.count(b'"') == orjson.dumps(value).count(b'"'):
        return []
    found: list[str] = []
    tree = json.loads(data, object_pairs_hook=_Pairs)
    if isinstance(tree, list):
        _find_duplicates(tree, found)
    return found


class _Pairs(list[Any]):
    """The members of an object, as they were written."""

    __slots__ = ()


def _find_duplicates(tree: Any, found: list[str]) -> None:
    pending: list[tuple[Any, str]] = [(tree, "")]
    told: set[str] = set()
    while pending and len(found) < _DUPLICATES_LIMIT:
        node, path = pending.pop()
        if isinstance(node, str):
            if path not in told:
                told.add(path)
                found.append(f'duplicate field "{path}"')
            continue
        inner: list[tuple[Any, str]] = []
        if isinstance(node, _Pairs):
            seen: set[str] = set()
            for key, item in node:
                at = f"{path}.{key}" if path else key
                if key in seen:
                    inner.append(("", at))
                seen.add(key)
                if isinstance(item, list):
                    inner.append((item, at))
        else:
            inner.extend((item, f"{path}[{index}]") for index, item in enumerate(node) if isinstance(item, list))
        pending.extend(reversed(inner))


# Writing

_POINT_IN_DOUBT: Final = re.compile(rb"\.0(?:0000|(?![0-9]))")
_EXPONENT_IN_DOUBT: Final = re.compile(rb"e[-+][0-9]")
"""Where orjson may have written a float otherwise than Go does; also found in text, which only costs time."""


def encode(value: JSON, *, sort_keys: bool = True) -> bytes:
    """Write a value, such as `decode` gives, as Go's encoder does, with a newline behind it."""
    option = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE if sort_keys else orjson.OPT_APPEND_NEWLINE
    data = orjson.dumps(value, option=option)
    if _POINT_IN_DOUBT.search(data) or _EXPONENT_IN_DOUBT.search(data):
        data = orjson.dumps(_with_go_floats(value), option=option)
    return _escape(data)


def _escape(data: bytes) -> bytes:
    """Escape what must not stand in HTML, and the two line ends that JavaScript once stumbled over. None of them occurs outside text."""
    if b"<" in data:
        data = data.replace(b"<", b"\\u003c")
    if b">" in data:
        data = data.replace(b">", b"\\u003e")
    if b"&" in data:
        data = data.replace(b"&", b"\\u0026")
    if b"\xe2\x80" in data:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return data


def _with_go_floats(value: JSON) -> JSON:
    """Copy a value, with its floats as they are to be written."""
    if value.__class__ is float:
        return orjson.Fragment(gotext.json_float(value))
    if isinstance(value, dict):
        return {key: _with_go_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_go_floats(item) for item in value]
    return value
