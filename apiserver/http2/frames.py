"""Frames of HTTP/2: their numbers, and how they are written."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_BYTES = 16_384
"""The largest frame that everybody takes."""
WINDOW_BYTES = 65_535
"""What may be sent of each stream, and of all together, before either side has said anything."""
MOST_WINDOW_BYTES = 2**31 - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
HAS_PRIORITY = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = range(1, 7)


class Code(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class Http2Error(Exception):
    """A client breaks the protocol; the connection ends."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


_HEAD = Struct(">HBBBI")
_WORD = Struct(">I")
_SETTING = Struct(">HI")


def frame(type_: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A whole frame."""
    length = len(payload)
    return _HEAD.pack(length >> 8, length & 0xFF, type_, flags, stream) + payload


def frame_head(type_: int, flags: int, stream: int, length: int) -> bytes:
    """What stands before a payload of this length."""
    return _HEAD.pack(length >> 8, length & 0xFF, type_, flags, stream)


def read_head(data: bytes | bytearray, at: int) -> tuple[int, int, int, int]:
    """Length, type, flags and stream of the frame that begins there."""
    high, low, type_, flags, stream = _HEAD.unpack_from(data, at)
    return high << 8 | low, type_, flags, stream & 0x7FFFFFFF


def word(payload: bytes, at: int = 0) -> int:
    """A number of 31 bits."""
    number: int = _WORD.unpack_from(payload, at)[0]
    return number & 0x7FFFFFFF


def reset(stream: int, code: Code) -> bytes:
    """End a stream."""
    return frame(RST_STREAM, 0, stream, _WORD.pack(code))


def window_update(stream: int, size_bytes: int) -> bytes:
    """Let the other end send so much more."""
    return frame(WINDOW_UPDATE, 0, stream, _WORD.pack(size_bytes))


def go_away(last_stream: int, code: Code) -> bytes:
    """Take no streams after this one."""
    return frame(GOAWAY, 0, 0, _WORD.pack(last_stream) + _WORD.pack(code))


def settings(values: dict[int, int]) -> bytes:
    """Say how one wants to be spoken to."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*pair) for pair in values.items()))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """What the other end wants."""
    return [(number, value) for number, value in _SETTING.iter_unpack(payload)]
