"""Heads of requests and responses, between HTTP/2's compressed fields and HTTP/1.1's lines.

What comes is checked before it becomes a line: nothing in it may end a line, or mean something to a connection of HTTP/1.1. What goes out
uses no table that would have to be kept in step with the client's: the same lines go out again and again, and are encoded once for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from http2.literals import literal

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(rb"[\x21-\x7e\x80-\xff]+")
_BAD_VALUE = re.compile(rb"[\r\n\x00]")
_OF_CONNECTIONS = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_STATIC_STATUS = {200: 8, 204: 9, 206: 10, 304: 11, 400: 12, 404: 13, 500: 14}
_REMEMBERED = 4096
_REMEMBERED_BYTES = 256
"""What is longer is not remembered: a client chooses it, and could fill our memory with it."""
_SECRET = frozenset((b"authorization", b"cookie"))


class BadHead(Exception):
    """The head of a request is none; its stream ends."""


class RequestHead:
    """What a request begins with."""

    __slots__ = ("_lines", "length_bytes", "method")

    def __init__(self, fields: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises BadHead."""
        pseudo: dict[bytes, bytes] = {}
        lines: list[bytes] = []
        self.length_bytes: int | None = None
        """Of the body, as the client has announced it."""
        for name, value in fields:
            if name[:1] == b":":
                if lines or name in pseudo:
                    raise BadHead
                pseudo[name] = value
                continue
            line = _line(name, value)
            if line is None:
                raise BadHead
            if name == b"content-length":
                if not value.isdigit() or len(value) > 18 or self.length_bytes not in (None, int(value)):
                    raise BadHead
                if self.length_bytes is None:
                    self.length_bytes = int(value)
                    lines.append(line)
            elif name != b"host" or b":authority" not in pseudo:
                lines.append(line)
        try:
            self.method, path, _ = pseudo.pop(b":method"), pseudo.pop(b":path"), pseudo.pop(b":scheme")
        except KeyError:
            raise BadHead from None
        authority = pseudo.pop(b":authority", b"")
        if pseudo or not _METHOD.fullmatch(self.method) or not _TARGET.fullmatch(path):
            raise BadHead
        host = _line(b"host", authority)
        if host is None:
            raise BadHead
        self._lines = [self.method + b" " + path + b" HTTP/1.1\r\n", *((host,) if authority else ()), *lines]

    def http1(self, *, ended: bool) -> bytes:
        """The head as HTTP/1.1 has it. A body whose length is not known comes in chunks; `ended`: there is none."""
        if self.length_bytes is None and not ended:
            return b"".join((*self._lines, b"transfer-encoding: chunked\r\n\r\n"))
        return b"".join((*self._lines, b"\r\n"))


def _line(name: bytes, value: bytes) -> bytes | None:
    if len(name) + len(value) > _REMEMBERED_BYTES or name in _SECRET:
        return _checked(name, value)
    return _remembered(name, value)


def _checked(name: bytes, value: bytes) -> bytes | None:
    """A field as a line, if it may be one."""
    if not _NAME.fullmatch(name) or _BAD_VALUE.search(value) or name in _OF_CONNECTIONS or (name == b"te" and value != b"trailers"):
        return None
    if value != value.strip(b" \t"):
        return None
    return b"%s: %s\r\n" % (name, value)


_remembered = lru_cache(maxsize=_REMEMBERED)(_checked)


class ResponseHead:
    """What a response begins with: its code, its fields as HTTP/2 has them, how long its body is, and whether its lane ends with it."""

    __slots__ = ("block", "chunked", "last", "length_bytes", "status")

    def __init__(self, head: bytes) -> None:
        lines = head.split(b"\r\n")
        self.status = int(lines[0][9:12])
        self.chunked = self.last = False
        self.length_bytes: int | None = None
        block = [_encoded_status(self.status)]
        for line in lines[1:]:
            field = _field(line)
            if isinstance(field, bytes):
                block.append(field)
            elif field == "chunked":
                self.chunked = True
            elif field == "close":
                self.last = True
            if line[:15].lower() == b"content-length:":
                self.length_bytes = int(line[15:])
        self.block = b"".join(block)


@lru_cache(maxsize=64)
def _encoded_status(status: int) -> bytes:
    index = _STATIC_STATUS.get(status)
    return bytes((0x80 | index,)) if index is not None else b"\x08\x03%d" % status


@lru_cache(maxsize=_REMEMBERED)
def _field(line: bytes) -> bytes | str:
    """A field as HTTP/2 has it; what one of HTTP/1.1's connections alone says. We write none that is long."""
    name, _, value = line.partition(b":")
    name, value = name.lower(), value.strip()
    if name in _OF_CONNECTIONS:
        return value.lower().decode()
    # A literal that enters no table, with its name spelled out.
    return b"\x00" + literal(name) + literal(value)
