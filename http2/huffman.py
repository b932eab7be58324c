"""Huffman's code of header blocks: reading it, short texts a byte at a time, long ones with zlib.

The code is canonical: codes of one length follow one another, and those of the next begin behind them, so that lengths say it all. Where a
byte leads from a place in the tree is found out when it is first met, and known from then on: there are 256 places inside of the tree.

Codes of up to fifteen bits are a code that deflate may use as well, with the fifteen ones, with which all longer codes begin, for the end
of its block. So zlib reads texts without longer codes (those of control characters, and of what is no ASCII) in a fraction of the time:
tokens, for one.

Source: https://www.rfc-editor.org/rfc/rfc7541#appendix-B and https://www.rfc-editor.org/rfc/rfc1951#section-3.2
"""

from __future__ import annotations

import zlib
from typing import Any

_SYMBOLS = {
    5: b"012aceiost",
    6: b" %-./3456789=A_bdfghlmnpru",
    7: b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: b"&*,;XZ",
    10: b'!"()?',
    11: b"'+|",
    12: b"#>",
    13: b"\x00$@[]~",
    14: b"^}",
    15: b"<`{",
    19: b"\\\xc3\xd0",
    20: b"\x80\x82\x83\xa2\xb8\xc2\xe0\xe2",
    21: b"\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6",
    22: b"\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4\xc6\xe4\xe8\xe9",
    23: b"\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4\xb6\xb7\xbc\xbf\xc5\xe7\xef",
    24: b"\t\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed",
    25: b"\xc7\xcf\xea\xeb",
    26: b"\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff",
    27: b"\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe",
    28: b"\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f\xdc\xf9",
    30: b"\n\r\x16",
}
_LONGEST = 30
_Bits = tuple[int, int]
"""Their number, and what they say as a number."""
_LONGEST_DEFLATED = 15
_DEFLATED_BYTES = 32
"""From so many on zlib is quicker: to begin with it takes a microsecond."""
_STEP_BYTES = 16 * 1024
"""After so many it is seen whether the text has become too long."""


def _codes() -> dict[_Bits, bytes]:
    codes: dict[_Bits, bytes] = {}
    code = before = 0
    for length, symbols in _SYMBOLS.items():
        code <<= length - before
        before = length
        for symbol in symbols:
            codes[length, code] = bytes((symbol,))
            code += 1
    return codes


_Place = list[tuple[bytes, "_Place"]]
"""A place in the tree between two bytes: for each next byte the text that it completes, and where it leads. Empty until it is met."""

_CODES = _codes()
_START: _Place = []
_PLACES: dict[_Bits, _Place] = {(0, 0): _START}
_BEGUN: dict[int, _Bits] = {id(_START): (0, 0)}
"""What has come of a symbol at each place, by its identity: plain lists are read fastest."""
_NOWHERE: _Place = []
"""Where the end of the text within the text leads."""


def _place(begun: _Bits) -> _Place:
    place = _PLACES.get(begun)
    if place is None:
        place = _PLACES[begun] = []
        _BEGUN[id(place)] = begun
    return place


def _explore(place: _Place) -> None:
    """Find out where each byte leads from a place.

    Raises:
        ValueError: it is none.
    """
    if place is _NOWHERE:
        raise ValueError("the end of the text within the text")
    place.extend(_led_by(byte, _BEGUN[id(place)]) for byte in range(256))


def _led_by(byte: int, begun: _Bits) -> tuple[bytes, _Place]:
    length, bits = begun
    text = b""
    for shift in range(7, -1, -1):
        length, bits = length + 1, bits << 1 | (byte >> shift & 1)
        if (symbol := _CODES.get((length, bits))) is not None:
            text += symbol
            length = bits = 0
        elif length == _LONGEST:
            return b"", _NOWHERE
    return text, _place((length, bits))


def _may_end(place: _Place) -> bool:
    """Whether what has begun is padding: less than a byte of the code that is no symbol, which has ones only."""
    length, bits = _BEGUN.get(id(place), (_LONGEST, 0))
    return length < 8 and bits == (1 << length) - 1


# With zlib


def _begun() -> Any:
    """A decompressor that has read the beginning of a block of deflate: the lengths of its codes, and nothing of its text."""
    lengths = [0] * 257
    for length, symbols in _SYMBOLS.items():
        if length <= _LONGEST_DEFLATED:
            for symbol in symbols:
                lengths[symbol] = length
    lengths[256] = _LONGEST_DEFLATED
    # Three blocks without text, of ten bits each, so that the text begins with a byte. Then the last block, with codes of its own: 257 of
    # symbols, one of distances (which there are not, so it has no length), and 19 of lengths, those of 0 to 15 each of four bits.
    bits = "0100000000" * 3 + "101" + "00000" + "00000" + "1111"
    for coded in (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15):
        bits += "001" if coded <= 15 else "000"
    # Numbers have their lowest bit first, codes their highest.
    bits += "".join(f"{length:04b}" for length in (*lengths, 0))
    assert len(bits) % 8 == 0
    begun = zlib.decompressobj(-zlib.MAX_WBITS)
    begun.decompress(bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8)))
    return begun


_BEGUN_BLOCK = _begun()
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
"""Deflate takes the lowest bit of a byte first."""
_LENGTHS = bytes(next((length for length, symbols in _SYMBOLS.items() if byte in symbols), 0) for byte in range(256))


def inflated(data: bytes, *, limit_bytes: int | None = None) -> bytes | None:
    """Return the text as `decode` does, if zlib reads it; None for short texts, for those with longer codes, and for what is none."""
    if len(data) < _DEFLATED_BYTES:
        return None
    block = _BEGUN_BLOCK.copy()
    text: bytes = block.decompress(data.translate(_REVERSED), 0 if limit_bytes is None else limit_bytes + 1)
    if limit_bytes is not None and len(text) > limit_bytes:
        return text
    padding_bits = 8 * len(data) - sum(text.translate(_LENGTHS))
    is_whole = not block.eof and padding_bits < 8 and data[-1] & ((1 << padding_bits) - 1) == (1 << padding_bits) - 1
    return text if is_whole else None


def spelled(data: bytes, *, limit_bytes: int | None = None) -> bytes:
    """Return the text as `decode` does, read byte by byte: a hundred thousand of them take 10 ms.

    Raises:
        ValueError: it is none.
    """
    place = _START
    parts: list[bytes] = []
    append = parts.append
    size = 0
    for start in range(0, len(data), _STEP_BYTES):
        step = data[start : start + _STEP_BYTES]
        for byte in step:
            try:
                part, place = place[byte]
            except IndexError:
                _explore(place)
                part, place = place[byte]
            append(part)
        if limit_bytes is not None:
            size += sum(map(len, parts[-len(step) :]))
            if size > limit_bytes:
                return b"".join(parts)
    if not _may_end(place):
        raise ValueError("the text is cut off")
    return b"".join(parts)


def decode(data: bytes, *, limit_bytes: int | None = None) -> bytes:
    """Return the text; one that is longer than the limit may be cut off, but still is longer.

    Raises:
        ValueError: it is none.
    """
    text = inflated(data, limit_bytes=limit_bytes)
    return spelled(data, limit_bytes=limit_bytes) if text is None else text
