"""A stream: one request, what answers it, and what the client takes of the response.

To a request of aiohttp's it is what a connection is over HTTP/1.1, protocol and transport. What the client's windows do not take waits
here, and its writer is told to wait as by a socket that is full.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from aiohttp import EMPTY_PAYLOAD
from aiohttp.http_parser import RawRequestMessage

from apiserver.http2.body import Body
from http2 import frames
from http2.frames import DATA, END_STREAM, ErrorCode, frame_head, header_frames

if TYPE_CHECKING:
    from apiserver.http2.heads import RequestHead
    from apiserver.http2.streams import Streams

WINDOW_BYTES: Final = 256 * 1024
"""How much of a body a client may send ahead of its reader, as in kube-apiserver."""
_HIGH_BYTES: Final = 64 * 1024

Serve = Callable[[RawRequestMessage, Any, "Stream"], Awaitable[None]]
"""Answers a request with this body; the last one to be told is the stream."""


class Stream(asyncio.Transport):
    """One stream. It ends with both of its sides, or when one side resets it."""

    ssl_context = peername = sockname = None
    """What aiohttp's requests would know of a socket; whom a stream is with is told by `peer`."""
    parting = False
    """Whether each answer ends its connection. Not here: a connection of HTTP/2 is left with more care."""

    __slots__ = (
        "_closed",
        "_content",
        "_drain",
        "_ended",
        "_expected_bytes",
        "_gone",
        "_high",
        "_outgoing",
        "_queue",
        "_queued",
        "_read_bytes",
        "_reads",
        "_received_bytes",
        "_streams",
        "id",
        "paused",
        "peer",
        "response_begun",
        "task",
        "window",
    )

    def __init__(self, streams: Streams, id_: int, window: int) -> None:
        self.id = id_
        self.window = window
        """How much the client takes of it."""
        self.peer = streams.peer
        self.task: asyncio.Task[None] | None = None
        """What answers. A read is given up with its client; a write is finished: its client may ask what became of it."""
        self.response_begun = False
        self.paused = False
        """Whether more waits to be sent than may."""
        self._streams = streams
        self._outgoing = streams.outgoing
        self._expected_bytes: int | None = None
        self._content: Body | None = None
        """The rest of the request, if one is to come."""
        self._received_bytes = self._read_bytes = 0
        """What the client has not been given back yet as room for more, and how much of that has been read."""
        self._ended = self._closed = self._gone = False
        self._reads = False
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._high = _HIGH_BYTES
        self._drain: asyncio.Future[None] | None = None

    # The request

    async def run(self, serve: Serve, head: RequestHead) -> None:
        """Have the request answered."""
        self._reads = head.message.method == "GET"
        try:
            if not self._closed:
                await serve(head.message, self._content or EMPTY_PAYLOAD, self)
        finally:
            if not self._ended:
                self.reset(ErrorCode.INTERNAL_ERROR)
            self._streams.served(self)

    def expect(self, length_bytes: int | None) -> None:
        """A body is to come, of this length if that was announced."""
        self._expected_bytes = length_bytes
        self._content = Body(self._take_read)

    @property
    def request_ended(self) -> bool:
        """Whether the client has said everything."""
        return self._content is None or self._content.is_eof()

    def feed(self, content: bytes, taken_bytes: int, *, ended: bool) -> ErrorCode | None:
        """Take more of the body, which took so much room in the window; return what is wrong with it."""
        if self._content is None or self._content.is_eof():
            return ErrorCode.STREAM_CLOSED
        self._received_bytes += taken_bytes
        if self._received_bytes > WINDOW_BYTES:
            return ErrorCode.FLOW_CONTROL_ERROR
        if self._expected_bytes is not None:
            self._expected_bytes -= len(content)
            if self._expected_bytes < 0 or (ended and self._expected_bytes):
                return ErrorCode.PROTOCOL_ERROR
        self._content.feed(content, ended=ended)
        self._take_read(taken_bytes - len(content))
        return None

    def _take_read(self, size: int) -> None:
        """Let the client send what has been read in its place, when that is worth a word."""
        self._read_bytes += size
        if self._read_bytes >= WINDOW_BYTES // 2 and not self._closed and not self.request_ended:
            self._outgoing.send(frames.window_update(self.id, self._read_bytes))
            self._received_bytes -= self._read_bytes
            self._read_bytes = 0

    # The response

    def send_head(self, block: bytes, *, interim: bool = False, end: bool = False) -> None:
        """Begin the response, or tell something before that; `end`: that is all of it.

        Raises:
            ConnectionResetError: the client has gone.
        """
        if self._closed:
            raise ConnectionResetError("the client has gone")
        self.response_begun = not interim
        self._outgoing.send(header_frames(self.id, block, end_stream=end))
        if end:
            self._ended = True
            self._finish()

    def send(self, content: bytes | bytearray | memoryview, *, end: bool = False) -> None:
        """Send a piece of the body; what the client does not take yet waits.

        Raises:
            ConnectionResetError: the client has gone.
        """
        if self._closed:
            raise ConnectionResetError("the client has gone")
        self._ended = end
        size = len(content)
        if isinstance(content, bytearray):
            # What may change is not ours to keep.
            content = bytes(content)
        if not self._queue and (not size or size <= min(self.window, self._outgoing.room, frames.FRAME_BYTES)):
            self.window -= size
            self._outgoing.send_body(frame_head(DATA, END_STREAM if end else 0, self.id, size), content)
            if end:
                self._finish()
            return
        if size:
            self._queue.append(memoryview(content))
            self._queued += size
        self.pump()
        self.paused = self._queued > self._high

    @property
    def waits(self) -> bool:
        """Whether there is something to send."""
        return bool(self._queue)

    def pump(self) -> None:
        """Send what waits, as far as the client takes it."""
        queue, outgoing = self._queue, self._outgoing
        while queue and (size := min(len(queue[0]), self.window, outgoing.room, frames.FRAME_BYTES)) > 0:
            piece = queue[0]
            if size == len(piece):
                queue.popleft()
            else:
                queue[0] = piece[size:]
            self._queued -= size
            self.window -= size
            last = self._ended and not queue
            outgoing.send_body(frame_head(DATA, END_STREAM if last else 0, self.id, size), piece[:size])
            if last:
                self._finish()
        if self._queued <= self._high // 4:
            self._resume()

    async def drained(self) -> None:
        """Wait until the client takes more.

        Raises:
            ConnectionResetError: it has gone.
        """
        while self.paused:
            self._drain = self._drain or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drain)
        if self._gone:
            raise ConnectionResetError("the client has gone")

    def _resume(self) -> None:
        self.paused = False
        if self._drain is not None:
            self._drain.set_result(None)
            self._drain = None

    # The end

    def _finish(self) -> None:
        """The response has been sent."""
        self._closed = True
        if not self.request_ended:
            # Nobody wants the rest of the body.
            self._outgoing.send(frames.rst_stream(self.id, ErrorCode.NO_ERROR))
        self._content = None
        self._streams.answered(self)

    def reset(self, code: ErrorCode) -> None:
        """End it at once."""
        if not self._closed:
            self._outgoing.send(frames.rst_stream(self.id, code))
            self._streams.ended(self)
            self.lost()

    def lost(self) -> None:
        """It has been reset, or its client has gone: tell all who still work for it."""
        self._closed = self._gone = True
        self._queue.clear()
        self._queued = 0
        self._resume()
        if self._content is not None:
            self._content.set_exception(ConnectionResetError("the client has gone"))
        if self._reads and self.task is not None:
            # Not at once: it may not have begun yet, and has to end well.
            asyncio.get_running_loop().call_soon(self.task.cancel)

    # What a transport does, for who writes to many at a time

    @property
    def transport(self) -> Stream | None:
        """Itself, while it can be written to."""
        return None if self._closed else self

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send whole chunks of HTTP/1.1, which a watch makes once for all who want the same."""
        if self._closed:
            return
        at, whole = 0, bytes(data)
        while at < len(whole):
            begin = whole.index(b"\r\n", at) + 2
            end = begin + int(whole[at:begin], 16)
            self.send(whole[begin:end])
            at = end + 2

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._closed

    def close(self) -> None:
        """End it."""
        self.reset(ErrorCode.CANCEL)

    def abort(self) -> None:
        """End it."""
        self.reset(ErrorCode.CANCEL)

    def get_write_buffer_size(self) -> int:
        """What the client has not taken yet."""
        return self._queued

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set how much may wait before writers are told to."""
        self._high = high if high is not None else _HIGH_BYTES
