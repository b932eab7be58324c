"""Cuts what a server sends into frames, with header blocks in one piece.

Policy: what a peer may send is bounded here: a frame by the size that we have not raised, a header block by `HEADER_BLOCK_BYTES`.

Source: https://www.rfc-editor.org/rfc/rfc9113#section-4
"""

from __future__ import annotations

from collections.abc import Iterator

from http2.frames import (
    CONTINUATION,
    END_HEADERS,
    FRAME_BYTES,
    HEAD,
    HEADERS,
    MAX_WINDOW_BYTES,
    PADDED,
    PRIORITIZED,
    ErrorCode,
    ProtocolError,
    without_padding,
)

HEADER_BLOCK_BYTES = 32_768
_PRIORITY_BYTES = 5

Frame = tuple[int, int, int, bytes]
"""Type, flags, stream, payload. A header block is whole; DATA still has its padding, which takes room in the windows."""


class FrameReader:
    """Cuts what arrives into frames. Keeps at most the beginning of one frame, and of one header block."""

    def __init__(self) -> None:
        self._rest = b""
        self._open_block: tuple[int, int, bytearray] | None = None

    def feed(self, received: bytes) -> Iterator[Frame]:
        """Return the frames that `received` makes whole.

        Raises:
            ProtocolError: the peer broke the rules.
        """
        if self._rest:
            received, self._rest = self._rest + received, b""
        start, end = 0, len(received)
        while end - start >= 9:
            upper, lower, kind, flags, stream_id = HEAD.unpack_from(received, start)
            size = upper << 8 | lower
            if size > FRAME_BYTES:
                raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {size} bytes")
            following = start + 9 + size
            if following > end:
                break
            payload = received[start + 9 : following]
            start = following
            stream_id &= MAX_WINDOW_BYTES
            if kind == HEADERS and flags & (PADDED | PRIORITIZED):
                payload = _block_of(flags, payload)
            if kind == CONTINUATION or self._open_block is not None or (kind == HEADERS and not flags & END_HEADERS):
                block = self._block(kind, flags, stream_id, payload)
                if block is not None:
                    yield block
            else:
                yield kind, flags, stream_id, payload
        self._rest = received[start:]

    def _block(self, kind: int, flags: int, stream_id: int, payload: bytes) -> Frame | None:
        """Take a part of a header block that comes in several frames; return it as one frame with the last of them."""
        if self._open_block is None:
            if kind != HEADERS:
                raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a header block goes on that has not begun")
            self._open_block = (stream_id, flags, bytearray(payload))
            return None
        of_stream, first_flags, block = self._open_block
        if kind != CONTINUATION or stream_id != of_stream:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a header block is interrupted")
        block += payload
        if len(block) > HEADER_BLOCK_BYTES or not payload:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "a header block has no end")
        if not flags & END_HEADERS:
            return None
        self._open_block = None
        return HEADERS, first_flags | END_HEADERS, stream_id, bytes(block)


def _block_of(flags: int, payload: bytes) -> bytes:
    """Return the payload of HEADERS without padding and priority."""
    if flags & PADDED:
        payload = without_padding(payload)
    if flags & PRIORITIZED:
        if len(payload) < _PRIORITY_BYTES:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a frame is too short for its kind")
        payload = payload[_PRIORITY_BYTES:]
    return payload
