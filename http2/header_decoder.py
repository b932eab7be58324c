"""Reads header blocks: HPACK with its table, whose entries are made into what their reader wants once, when they come as text.

Policy: what a block unfolds to is bounded, as is the table: 4 KiB, or nothing. Text that has been decoded lately, is short and stands under
a name whose values may be kept, is not decoded again: a path comes once as such, and once as where a proxy had it from.

Source: https://www.rfc-editor.org/rfc/rfc7541
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Generic, TypeVar

from http2 import huffman
from http2.frames import ErrorCode, ProtocolError
from http2.static_table import STATIC

_PASSING = frozenset((b"authorization", b"cookie", b"audit-id"))
"""Names of fields whose values nobody keeps for longer than their block, but for the table, where their sender wants them: they are secret,
or do not come again, and would push out what does."""

_STATIC = len(STATIC)
_TABLE_BYTES = 4096
_ENTRY_BYTES = 32
"""What an entry counts beside its text."""
_REMEMBERED = 1024
_REMEMBERED_BYTES = 256
_LARGEST_NUMBER = 1 << 28
_SLOW_BYTES = 128 * 1024
"""Of a block, in Huffman's code, that zlib does not read: 10 ms of work."""

_Field = TypeVar("_Field")
_Entry = tuple[int, bytes, _Field]
"""Bytes as they are counted, name, and what its reader wants."""


class HeaderDecoder(Generic[_Field]):
    """Decodes the header blocks of one connection."""

    def __init__(self, make: Callable[[bytes, bytes], _Field], *, limit_bytes: int) -> None:
        """`make` makes of name and value what `decode` returns; fields with equal text may share it."""
        self._make = make
        self._limit_bytes = limit_bytes
        self._slow_bytes = 0
        self._static: tuple[_Entry[_Field], ...] = _static_entries(make)
        self._table: deque[_Entry[_Field]] = deque()
        self._table_bytes = 0
        self._table_room_bytes = self._table_limit_bytes = _TABLE_BYTES

    def decode(self, block: bytes) -> list[_Field]:
        """Return the fields of a block.

        Raises:
            ProtocolError: it cannot be read, unfolds to more than the limit, or would take long; the connection cannot go on.
        """
        try:
            return self._decode(block)
        except (IndexError, ValueError) as error:
            raise ProtocolError(ErrorCode.COMPRESSION_ERROR, "a header block cannot be read") from error

    def forget_table(self) -> None:
        """Take it that the other end keeps to a table without room, as it has been told."""
        self._table_room_bytes = self._table_limit_bytes = 0
        self._shrink()

    def _decode(self, block: bytes) -> list[_Field]:
        static, table = self._static, self._table
        fields: list[_Field] = []
        self._slow_bytes = 0
        at, end, size, resized = 0, len(block), 0, 0
        while at < end:
            byte = block[at]
            at += 1
            if byte & 0x80:
                index = byte & 0x7F
                if index == 0x7F:
                    index, at = _number(block, at, 0x7F)
                if not index:
                    raise ValueError("no field has the number 0")
                entry = static[index] if index <= _STATIC else table[index - _STATIC - 1]
            elif byte & 0x40:
                entry, at = self._literal(block, at, byte & 0x3F, 0x3F)
                self._add(entry)
            elif byte & 0x20:
                index, at = _number(block, at, 0x1F) if byte & 0x1F == 0x1F else (byte & 0x1F, at)
                resized += 1
                if fields or resized > 2 or index > self._table_limit_bytes:
                    raise ValueError("the size of the table is set where it cannot be")
                self._table_room_bytes = index
                self._shrink()
                continue
            else:
                entry, at = self._literal(block, at, byte & 0x0F, 0x0F)
            size += entry[0]
            if size > self._limit_bytes:
                raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "a header block unfolds to more than is taken")
            fields.append(entry[2])
        return fields

    def _literal(self, block: bytes, at: int, index: int, most: int) -> tuple[_Entry[_Field], int]:
        if index == most:
            index, at = _number(block, at, most)
        if index:
            name = (self._static[index] if index <= _STATIC else self._table[index - _STATIC - 1])[1]
        else:
            name, at = self._text(block, at, passing=False)
        value, at = self._text(block, at, passing=name in _PASSING)
        return (len(name) + len(value) + _ENTRY_BYTES, name, self._make(name, value)), at

    def _text(self, block: bytes, at: int, *, passing: bool) -> tuple[bytes, int]:
        first = block[at]
        size, at = (first & 0x7F, at + 1) if first & 0x7F != 0x7F else _number(block, at + 1, 0x7F)
        following = at + size
        if following > len(block):
            raise ValueError("a text is cut off")
        text = block[at:following]
        if first & 0x80:
            text = self._passing(text) if passing or size > _REMEMBERED_BYTES else _decoded(text)
        return text, following

    def _passing(self, coded: bytes) -> bytes:
        text = huffman.inflated(coded, limit_bytes=self._limit_bytes)
        if text is None:
            self._slow_bytes += len(coded)
            if self._slow_bytes > _SLOW_BYTES:
                raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "a header block has too much of what is no text")
            text = huffman.spelled(coded, limit_bytes=self._limit_bytes)
        return text

    def _add(self, entry: _Entry[_Field]) -> None:
        self._table.appendleft(entry)
        self._table_bytes += entry[0]
        self._shrink()

    def _shrink(self) -> None:
        while self._table_bytes > self._table_room_bytes:
            self._table_bytes -= self._table.pop()[0]


def _number(block: bytes, at: int, number: int) -> tuple[int, int]:
    """Return a number that goes on behind its prefix, which was full."""
    shift = 0
    while True:
        byte = block[at]
        at += 1
        number += (byte & 0x7F) << shift
        if number > _LARGEST_NUMBER or shift > 28:
            raise ValueError("a number is too large")
        if byte < 0x80:
            return number, at
        shift += 7


_decoded = lru_cache(_REMEMBERED)(huffman.decode)


@cache
def _static_entries(make: Callable[[bytes, bytes], Any]) -> tuple[Any, ...]:
    """The entries that every connection has, from 1 on: of the one at 0 nothing can be had."""
    return (), *((len(name) + len(value) + _ENTRY_BYTES, name, make(name, value)) for name, value in STATIC)
