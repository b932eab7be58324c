"""Cuts what a peer sends into frames, with header blocks in one piece, bare of padding and priorities.

Policy: what a peer may have us keep is bounded here: a frame by the size that we have not raised, a header block by the limit of its
reader, and by the number of frames it comes in, since empty ones would cost time without end.

Source: https://www.rfc-editor.org/rfc/rfc9113#section-4
"""

from __future__ import annotations

from collections.abc import Iterator

from http2.frames import (
    CONTINUATION,
    END_HEADERS,
    FRAME_BYTES,
    HEADERS,
    PADDED,
    PRIORITIZED,
    ErrorCode,
    ProtocolError,
    head_of,
    uint,
    without_padding,
)

_PRIORITY_BYTES = 5

Frame = tuple[int, int, int, bytes]
"""Kind, flags, stream, payload. A header block is whole; DATA still has its padding, which takes room in the windows."""


class FrameReader:
    """Cuts what arrives into frames. Keeps at most the beginning of one frame, and of one header block."""

    def __init__(self, *, header_block_bytes: int) -> None:
        self._header_block_bytes = header_block_bytes
        # Twice as many as whole frames would need.
        self._most_parts = 8 + 2 * header_block_bytes // FRAME_BYTES
        self._rest = b""
        self._open_block: tuple[int, int, list[bytes]] | None = None

    def feed(self, received: bytes) -> Iterator[Frame]:
        """Return the frames that `received` makes whole.

        Raises:
            ProtocolError: the peer broke the rules.
        """
        if self._rest:
            received, self._rest = self._rest + received, b""
        start, end = 0, len(received)
        while end - start >= 9:
            kind, flags, stream_id, size = head_of(received, start)
            if size > FRAME_BYTES:
                raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {size} bytes")
            following = start + 9 + size
            if following > end:
                break
            payload = received[start + 9 : following]
            start = following
            if kind == HEADERS and flags & (PADDED | PRIORITIZED):
                payload = _block_of(flags, stream_id, payload)
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
            self._open_block = (stream_id, flags, [payload])
            return None
        of_stream, first_flags, parts = self._open_block
        if kind != CONTINUATION or stream_id != of_stream:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a header block is interrupted")
        parts.append(payload)
        if len(parts) > self._most_parts or sum(map(len, parts)) > self._header_block_bytes:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "a header block has no end")
        if not flags & END_HEADERS:
            return None
        self._open_block = None
        return HEADERS, first_flags | END_HEADERS, stream_id, b"".join(parts)


def _block_of(flags: int, stream_id: int, payload: bytes) -> bytes:
    """Return the payload of HEADERS without padding and priority."""
    if flags & PADDED:
        payload = without_padding(payload)
    if flags & PRIORITIZED:
        if len(payload) < _PRIORITY_BYTES:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a frame is too short for its kind")
        if uint(payload) == stream_id:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a stream depends on itself")
        payload = payload[_PRIORITY_BYTES:]
    return payload
