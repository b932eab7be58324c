"""Header blocks without memory: written in full, read with a table that is kept empty. So a block means the same whenever it comes.

Knows HPACK's forms for literals; reading is `hpack`'s, once for each block that is not yet known.

Source: https://www.rfc-editor.org/rfc/rfc7541
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from hpack import Decoder, HPACKError

from http2.frames import ErrorCode, ProtocolError
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
        self._decoder = Decoder(max_header_list_size=HEADER_BLOCK_BYTES)
        self._known: dict[bytes, Headers] = {}
        self._remembers = False

    def forget_tables(self) -> None:
        """The peer has acknowledged that the table has no room: from now on equal blocks mean the same."""
        self._decoder.max_allowed_table_size = self._decoder.header_table_size = 0
        self._remembers = True

    def decode(self, block: bytes) -> Headers:
        """Return the headers by name. Of those that come twice the last one counts: none that we read may.

        Raises:
            ProtocolError: the block cannot be read; the connection cannot go on.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        try:
            headers = MappingProxyType({_text(name): _text(value) for name, value in self._decoder.decode(block, raw=True)})
        except HPACKError as error:
            raise ProtocolError(ErrorCode.COMPRESSION_ERROR, f"a header block cannot be read: {error}") from error
        if self._remembers and len(block) <= _KNOWN_BLOCK_BYTES:
            if len(self._known) == _KNOWN_BLOCKS:
                self._known.clear()
            self._known[block] = headers
        return headers


def _text(part: bytes | str) -> str:
    return part if isinstance(part, str) else part.decode("utf-8", "replace")
