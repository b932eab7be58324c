"""What is sent on a connection: what is written in one turn of the loop leaves together, as far as the client takes it.

Knows the socket's buffer and the connection's window; the windows of streams are theirs. Policy: when the client does not take what is
written, nothing more is read from it, so that what it must be answered does not grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from http2 import frames
from http2.frames import ErrorCode, ProtocolError

_FLUSH_BYTES: Final = 256 * 1024


class Outgoing:
    """The way out of one connection."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._out: list[bytes | memoryview] = []
        self._out_bytes = 0
        self._flushing = False
        self._full = self._holding = False
        self._window = frames.WINDOW_BYTES
        self.room = frames.WINDOW_BYTES
        """How many bytes of bodies can be sent now."""
        self.unacknowledged_settings = 0
        """How often the client was told settings, and has not said yet that it keeps to them."""

    def send(self, data: bytes) -> None:
        """Write, together with all else that is written in this turn of the loop."""
        self._out.append(data)
        self._flush_when_due(len(data))

    def flush_soon(self) -> None:
        """Send behind what waits for its turn already: what that writes leaves in the same turn."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def send_body(self, head: bytes, content: bytes | memoryview) -> None:
        """Write a piece of a body, for which there is room."""
        size = len(content)
        self._window -= size
        self.room -= size
        self._out += head, content
        self._flush_when_due(size + len(head))

    def grow(self, more: int) -> None:
        """Take the client's word that it takes so much more.

        Raises:
            ProtocolError: nobody has that much room.
        """
        self._window += more
        if not more or self._window > frames.MAX_WINDOW_BYTES:
            raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR if more else ErrorCode.PROTOCOL_ERROR, "no window")
        self._count_room()

    def pause(self) -> None:
        """The socket is full."""
        self._full = True
        self._count_room()
        self._transport.pause_reading()

    def resume(self) -> None:
        """The socket takes more."""
        self._full = False
        self._count_room()
        self._transport.resume_reading()

    def hold(self) -> None:
        """Send nothing of what is written from now on."""
        self._flush()
        self._holding = True
        self._count_room()

    def release(self, before: bytes) -> None:
        """Send what was held, behind this."""
        self._holding = False
        self._count_room()
        self._out.insert(0, before)
        self._flush()

    def set(self, settings: Mapping[int, int]) -> None:
        """Tell the client our settings, ahead of what is held."""
        self.unacknowledged_settings += 1
        if not self._holding:
            self._flush()
        self._transport.write(frames.settings_frame(settings))

    def acknowledged(self) -> bool:
        """Take the client's word that it keeps to some of our settings; return whether it keeps to all of them."""
        self.unacknowledged_settings = max(0, self.unacknowledged_settings - 1)
        return not self.unacknowledged_settings

    def close(self) -> None:
        """Send everything, and close."""
        self._holding = False
        self._flush()
        self._transport.close()

    def _flush_when_due(self, more_bytes: int) -> None:
        self._out_bytes += more_bytes
        if self._out_bytes >= _FLUSH_BYTES:
            self._flush()
        elif not self._flushing:
            self.flush_soon()

    def _count_room(self) -> None:
        self.room = 0 if self._full or self._holding else max(0, self._window)

    def _flush(self) -> None:
        self._flushing = False
        if self._holding or not self._out:
            return
        out, self._out, self._out_bytes = self._out, [], 0
        if not self._transport.is_closing():
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
