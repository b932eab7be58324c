"""Heads of requests and responses: fields of HTTP/2 on one side, what aiohttp makes of a head of HTTP/1.1 on the other.

What comes is checked before anybody sees it: nothing in it may mean something to a connection of HTTP/1.1, or be none of its fields. What
goes out uses no table that would have to be kept in step with the client's: the same lines go out again and again, and are encoded once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from aiohttp import HttpVersion11
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy, istr
from yarl import URL

from http2.literals import literal

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(rb"/[\x21-\x7e\x80-\xff]*|\*")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OF_CONNECTIONS = frozenset(("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"))
_ONCE: frozenset[str] = frozenset(("Audit-Id",))
"""Headers whose values do not come again."""
_STATIC_STATUS = {200: 8, 204: 9, 206: 10, 304: 11, 400: 12, 404: 13, 500: 14}
_REMEMBERED = 4096
_REMEMBERED_BYTES = 64
"""The longest name of a header that is remembered: clients choose them."""
_BAD = "bad"
_LENGTH = "content-length"
_HOST = "host"
_SPECIAL = frozenset((_LENGTH, _HOST, "te"))

Field = tuple[str, tuple[str, str]]
"""A field of a request: what is special about it (nothing, mostly), and its name and value as a header."""


class BadHead(Exception):
    """The head of a request is none; its stream ends."""


def make_field(name: bytes, value: bytes) -> Field:
    """Return what a head is made of."""
    text = value.decode("utf-8", "surrogateescape")
    if name[:1] == b":":
        return _pseudo(name, value), ("", text)
    kind, header = _header(name) if len(name) <= _REMEMBERED_BYTES else _checked_header(name)
    if not _is_value(text) or (kind == _LENGTH and not (value.isdigit() and len(value) <= 18)) or (kind == "te" and text != "trailers"):
        kind = _BAD
    return "" if kind == "te" else kind, (header, text)


def _checked_header(name: bytes) -> tuple[str, str]:
    """What is special about a header, and its name."""
    if not _NAME.fullmatch(name):
        return _BAD, ""
    header = istr(name.decode())
    return _BAD if header in _OF_CONNECTIONS else header if header in _SPECIAL else "", header


_header = lru_cache(maxsize=_REMEMBERED)(_checked_header)


def _is_value(text: str) -> bool:
    # Most are plain, which is found out faster than whether others are good.
    plain = text.isascii() and text.isprintable()
    return (plain or not _CONTROL.search(text)) and text.strip(" \t") == text


def _pseudo(name: bytes, value: bytes) -> str:
    match name:
        case b":method":
            good = _METHOD.fullmatch(value) is not None
        case b":path":
            good = _TARGET.fullmatch(value) is not None
        case b":authority" | b":scheme":
            good = _is_value(value.decode("latin-1"))
        case _:
            good = False
    return name.decode() if good else _BAD


class RequestHead:
    """What a request begins with."""

    __slots__ = ("length_bytes", "message")

    def __init__(self, fields: Iterable[Field], *, ended: bool) -> None:
        """`ended`: nothing comes behind it. Raises BadHead."""
        pseudo: dict[str, str] = {}
        headers: list[tuple[str, str]] = []
        length = ""
        for number, (kind, pair) in enumerate(fields):
            if not kind:
                headers.append(pair)
            elif kind[0] == ":":
                # All of them come first.
                if number != len(pseudo) or kind in pseudo:
                    raise BadHead
                pseudo[kind] = pair[1]
            elif kind == _LENGTH and length in ("", pair[1]):
                if not length:
                    headers.append(pair)
                length = pair[1]
            elif kind == _HOST:
                if ":authority" not in pseudo:
                    headers.append(pair)
            else:
                raise BadHead
        self.length_bytes = int(length) if length else None
        """Of the body, as the client has announced it."""
        if ended and self.length_bytes:
            raise BadHead
        try:
            method, path, _ = pseudo[":method"], pseudo[":path"], pseudo[":scheme"]
        except KeyError:
            raise BadHead from None
        if authority := pseudo.get(":authority"):
            headers.insert(0, (_HOST_NAME, authority))
        proxy = CIMultiDictProxy(CIMultiDict(headers))
        self.message = RawRequestMessage(method, path, HttpVersion11, proxy, (), False, None, False, False, _NO_URL)
        """As it would be read from a connection of HTTP/1.1, but for what nobody asks for: headers as bytes, and the URL taken apart."""


_HOST_NAME = istr("host")
_NO_URL = URL("/")


def response_block(status: int, headers: CIMultiDict[str]) -> bytes:
    """Return the head of a response.

    Raises:
        ValueError: there is something in a header that would end it.
    """
    block = [_encoded_status(status)]
    for name, value in headers.items():
        block.append(_encoded(name, value) if name in _ONCE else _remembered(name, value))
    return b"".join(block)


@lru_cache(maxsize=64)
def _encoded_status(status: int) -> bytes:
    index = _STATIC_STATUS.get(status)
    return bytes((0x80 | index,)) if index is not None else b"\x08\x03%d" % status


def _encoded(name: str, value: str) -> bytes:
    """A header as a literal that enters no table, with its name spelled out; nothing for what only a connection of HTTP/1.1 has."""
    name = name.lower()
    if name in _OF_CONNECTIONS:
        return b""
    if not _is_value(value):
        raise ValueError(f"the header {name} cannot be sent")
    return b"\x00" + literal(name.encode("ascii")) + literal(value.encode("utf-8"))


_remembered = lru_cache(maxsize=_REMEMBERED)(_encoded)
