"""Compressed pieces that stand anywhere in any gzip file, so that they are made once and sent to everybody.

A segment ends on a byte, depends on nothing before it, and carries its length and checksum: any sequence of segments between a head and
its tail is one valid gzip member (RFC 1952). One member, also for streams: there are clients, Chromium among them, that stop reading at
the end of the first one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from isal import isal_zlib

GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LEVEL = 1
"""kube-apiserver compresses at the fastest level too."""
_EMPTY_LAST_BLOCK = b"\x03\x00"


@dataclass(frozen=True, slots=True)
class Deflated:
    """A segment of a deflate stream, with the length and checksum of what it unfolds to."""

    data: bytes
    length: int
    crc: int


def deflate(raw: bytes) -> Deflated:
    """Compress bytes to a segment."""
    compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -isal_zlib.MAX_WBITS)
    data = compressor.compress(raw) + compressor.flush(isal_zlib.Z_FULL_FLUSH)
    return Deflated(data, len(raw), isal_zlib.crc32(raw))


class GzipSum:
    """What the end of a gzip file says of all that came before it."""

    __slots__ = ("_crc", "_length")

    def __init__(self) -> None:
        self._crc = 0
        self._length = 0

    def add(self, segment: Deflated) -> None:
        """Count a segment in, in the order in which they are sent."""
        self._crc = isal_zlib.crc32_combine(self._crc, segment.crc, segment.length)
        self._length += segment.length

    def tail(self) -> bytes:
        """The end of the file."""
        return _EMPTY_LAST_BLOCK + self._crc.to_bytes(4, "little") + (self._length & 0xFFFFFFFF).to_bytes(4, "little")


def gzip_member(segments: Iterable[Deflated]) -> list[bytes]:
    """The pieces of one gzip file with these segments."""
    pieces = [GZIP_HEAD]
    total = GzipSum()
    for segment in segments:
        pieces.append(segment.data)
        total.add(segment)
    pieces.append(total.tail())
    return pieces
