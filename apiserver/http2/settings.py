"""What both ends tell each other about themselves, as far as a server cares.

Source: https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
"""

from __future__ import annotations

from http2 import frames
from http2.frames import ErrorCode, ProtocolError


def initial_window(payload: bytes) -> int | None:
    """Return what a client says of the windows of streams, if it does. All else it says is looked at, and makes no difference to us.

    Raises:
        ProtocolError: nothing can be set to that.
    """
    window = None
    for number, value in frames.settings_of(payload):
        if number == frames.INITIAL_WINDOW_SIZE:
            if value > frames.MAX_WINDOW_BYTES:
                raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")
            window = value
        elif number == frames.MAX_FRAME_SIZE and not frames.FRAME_BYTES <= value < 1 << 24:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "no size of frames")
        elif number == frames.ENABLE_PUSH and value > 1:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "neither yes nor no")
    return window
