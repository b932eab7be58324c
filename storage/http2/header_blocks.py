"""Header blocks without memory: written in full, read with a table that is kept empty. So a block means the same whenever it comes.

Knows HPACK's forms for literals; a block is read once, when it is not yet known.

Source: https://www.rfc-editor.org/rfc/rfc7541
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from http2.header_decoder import HeaderDecoder
from http2.literals import literal

Headers = Mapping[str, str]

HEADER_BLOCK_BYTES = 32_768
"""The largest one that a server may send."""
_KNOWN_BLOCKS = 256
_KNOWN_BLOCK_BYTES = 256
_STATIC = {
    (":method", "GET"): 2,
    (":method", "POST"): 3,
    (":scheme", "http"): 6,
    (":scheme", "https"): 7,
    (":status", "200"): 8,
}
_NEVER_INDEXED = 0x10


def encode_headers(headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the block of `headers`, names in lower case, pseudo headers first. No peer and no proxy keeps any of it in a table."""
    block = bytearray()
    for name, value in headers:
        index = _STATIC.get((name, value))
        if index is not None:
            block.append(0x80 | index)
            continue
        block.append(_NEVER_INDEXED)
        block += literal(name.encode("ascii")) + literal(value.encode("utf-8"))
    return bytes(block)


class HeaderReader:
    """Decodes the header blocks of one connection."""

    def __init__(self) -> None:
        self._decoder = HeaderDecoder(_header, limit_bytes=HEADER_BLOCK_BYTES)
        self._known: dict[bytes, Headers] = {}
        self._remembers = False

    def forget_tables(self) -> None:
        """The peer has acknowledged that the table has no room: from now on equal blocks mean the same."""
        self._decoder.forget_table()
        self._remembers = True

    def decode(self, block: bytes) -> Headers:
        """Return the headers by name. Of those that come twice the last one counts: none that we read may.

        Raises:
            ProtocolError: the block cannot be read; the connection cannot go on.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        headers = MappingProxyType(dict(self._decoder.decode(block)))
        if self._remembers and len(block) <= _KNOWN_BLOCK_BYTES:
            if len(self._known) == _KNOWN_BLOCKS:
                self._known.clear()
            self._known[block] = headers
        return headers


def _header(name: bytes, value: bytes) -> tuple[str, str]:
    return name.decode("utf-8", "replace"), value.decode("utf-8", "replace")
