"""The frames of HTTP/2: their numbers, and how they are written and read. Knows nothing of streams, of their states, or of its side.

Source: https://www.rfc-editor.org/rfc/rfc9113#section-4, and section 6 for the kinds
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_BYTES = 16_384
"""The largest payload that both sides take unless they say otherwise. We do not."""
WINDOW_BYTES = 65_535
"""The flow-control window of a connection, and of a stream whose receiver has said nothing else."""
MAX_WINDOW_BYTES = (1 << 31) - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITIZED = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = range(1, 7)

_HEAD = struct.Struct(">HBBBL")
"""What every frame begins with: the length's upper 16 bits and its lower 8, kind, flags, stream."""
_SETTING = struct.Struct(">HL")
_UINT = struct.Struct(">L")


class ErrorCode(IntEnum):
    """Why a stream or a connection ended."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class ProtocolError(Exception):
    """The peer broke the rules; the connection cannot go on."""

    def __init__(self, code: ErrorCode, words: str) -> None:
        super().__init__(f"HTTP/2: {words}")
        self.code = code


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return frame_head(kind, flags, stream_id, len(payload)) + payload


def frame_head(kind: int, flags: int, stream_id: int, size: int) -> bytes:
    """Return what stands before a payload of `size` bytes."""
    return _HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream_id)


def head_of(data: bytes | bytearray, start: int) -> tuple[int, int, int, int]:
    """Return kind, flags, stream and the payload's size of the frame that begins at `start`, of which nine bytes are there."""
    upper, lower, kind, flags, stream_id = _HEAD.unpack_from(data, start)
    return kind, flags, stream_id & MAX_WINDOW_BYTES, upper << 8 | lower


def header_frames(stream_id: int, block: bytes, *, end_stream: bool) -> bytes:
    """Return a header block in as many frames as it needs."""
    flags = END_STREAM if end_stream else 0
    if len(block) <= FRAME_BYTES:
        return frame(HEADERS, flags | END_HEADERS, stream_id, block)
    parts = [block[start : start + FRAME_BYTES] for start in range(0, len(block), FRAME_BYTES)]
    frames = [frame(HEADERS, flags, stream_id, parts[0])]
    frames += [frame(CONTINUATION, 0, stream_id, part) for part in parts[1:-1]]
    frames.append(frame(CONTINUATION, END_HEADERS, stream_id, parts[-1]))
    return b"".join(frames)


def settings_frame(settings: Mapping[int, int]) -> bytes:
    """Return what tells the peer our settings."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*setting) for setting in settings.items()))


def window_update(stream_id: int, increment: int) -> bytes:
    """Return the permission to send `increment` bytes more, on a stream or (0) on the connection."""
    return frame(WINDOW_UPDATE, 0, stream_id, _UINT.pack(increment))


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    """Return what ends a stream at once."""
    return frame(RST_STREAM, 0, stream_id, _UINT.pack(code))


def goaway(last_stream_id: int, code: ErrorCode, words: str = "") -> bytes:
    """Return what ends a connection for streams above `last_stream_id`."""
    return frame(GOAWAY, 0, 0, _UINT.pack(last_stream_id) + _UINT.pack(code) + words.encode())


def uint(payload: bytes, start: int = 0) -> int:
    """Return the number of 31 bits at `start`: an increment, a stream; or an error code, of which all that are known are small.

    Raises:
        ProtocolError: there is none.
    """
    if len(payload) < start + 4:
        raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a frame is too short for its kind")
    number: int = _UINT.unpack_from(payload, start)[0]
    return number & MAX_WINDOW_BYTES


def settings_of(payload: bytes) -> list[tuple[int, int]]:
    """Return the settings of a SETTINGS frame, in their order.

    Raises:
        ProtocolError: it is cut off.
    """
    if len(payload) % _SETTING.size:
        raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a SETTINGS frame is cut off")
    return list(_SETTING.iter_unpack(payload))


def without_padding(payload: bytes) -> bytes:
    """Return what is in the payload of a frame that is padded.

    Raises:
        ProtocolError: there is more padding than payload.
    """
    if not payload or payload[0] >= len(payload):
        raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a frame is all padding")
    return payload[1 : len(payload) - payload[0]]
