"""A connection of HTTP/1.1 that exists in memory only, and carries one stream of HTTP/2 after the other.

To those who answer it is a transport. What they write is taken apart again: a head becomes HEADERS, a body DATA, as far as the client's
windows allow; the rest waits here, and they are told to pause as by a socket that is full. What the client sends stays with it in the same
way, when they do not read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from apiserver.http2.heads import RequestHead, ResponseHead
from http2.frames import DATA, END_HEADERS, END_STREAM, HEADERS, ErrorCode, frame, frame_head, rst_stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apiserver.http2.connection import Http2Connection

_HIGH_BYTES = 64 * 1024
_WITHOUT_BODY = (204, 304)


class Lane(asyncio.Transport):
    """The transport of one handler of requests."""

    def __init__(self, connection: Http2Connection, handler: asyncio.Protocol) -> None:
        super().__init__()
        self.connection = connection
        self.handler = handler
        self.stream = 0
        """The one that is carried; 0 for none."""
        self.window = 0
        """How much the client takes of it."""
        self.received_bytes = 0
        """Of the request's body, which the client has not been given back yet as room for more."""
        self.expected_bytes: int | None = None
        self.request_ended = False
        self.response_begun = False
        self._closing = False
        self._head_only = self._last = False
        self._framing: int | None = None
        """Bytes of the body that are to come; -1 chunks, -2 until the end of the connection; None: a head comes."""
        self._rest = b""
        self._in_chunk = 0
        self._queue: deque[memoryview | bytes] = deque()
        self._queued = 0
        self._end_queued = False
        self._high = _HIGH_BYTES
        self._paused = False
        self._reading = True

    # A stream begins, and ends

    def carry(self, stream: int, head: RequestHead, window: int, *, ended: bool) -> None:
        """Take up a request."""
        self.stream, self.window = stream, window
        self.request_ended, self.response_begun = ended, False
        self.expected_bytes = head.length_bytes
        self._head_only = head.method == b"HEAD"
        self._framing = None
        self.handler.data_received(head.http1(ended=ended))

    def feed(self, content: bytes, *, ended: bool) -> None:
        """Take more of the request's body."""
        if self.expected_bytes is not None:
            self.handler.data_received(content)
        elif content:
            self.handler.data_received(b"%x\r\n%b\r\n" % (len(content), content))
        if ended:
            self.request_ended = True
            if self.expected_bytes is None:
                self.handler.data_received(b"0\r\n\r\n")

    def lost(self) -> None:
        """The client has given this stream up, or has gone."""
        if not self._closing:
            self._closing = True
            self._queue.clear()
            self._queued = 0
            self.stream = 0
            # Not at once: its handler may not have begun yet.
            asyncio.get_running_loop().call_soon(self.handler.connection_lost, ConnectionResetError("the client has gone"))

    def _finish(self) -> None:
        """The response has been sent: what comes next is another stream."""
        stream, self.stream = self.stream, 0
        self._framing, self._end_queued = None, False
        if not self.request_ended:
            # Nobody wants the rest of the body.
            self.connection.send(rst_stream(stream, ErrorCode.NO_ERROR))
            self.abort()
        # One that its handler is about to close is no place for another stream.
        self.connection.ended(self, stream, reusable=not self._closing and not self._last)

    # What handlers write

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take a piece of a response in HTTP/1.1."""
        if self._closing or not self.stream:
            return
        content = bytes(data) if not isinstance(data, bytes) else data
        if self._rest:
            content, self._rest = self._rest + content, b""
        while content and self.stream:
            if self._framing is None:
                head, separator, content = content.partition(b"\r\n\r\n")
                if not separator:
                    self._rest = head
                    return
                self._begin(head)
            elif self._framing == -1:
                content = self._take_chunks(content)
            elif self._framing == -2:
                self._send(content, end=False)
                return
            else:
                self._framing -= len(content)
                self._send(content, end=not self._framing)
                return

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Take several pieces."""
        self.write(b"".join(list_of_data))

    def _begin(self, head: bytes) -> None:
        response = ResponseHead(head)
        if response.status < 200:
            self._send_head(response.block, 0)
            return
        self.response_begun = True
        self._last = response.last
        if self._head_only or response.status in _WITHOUT_BODY or response.length_bytes == 0:
            self._send_head(response.block, END_STREAM)
            self._finish()
            return
        self._framing = -1 if response.chunked else -2 if response.length_bytes is None else response.length_bytes
        self._send_head(response.block, 0)

    def _send_head(self, block: bytes, flags: int) -> None:
        # A head of ours is far smaller than a frame.
        self.connection.send(frame(HEADERS, END_HEADERS | flags, self.stream, block))

    def _take_chunks(self, content: bytes) -> bytes:
        """Send what is in these chunks, and return what has to be completed first."""
        at, size = 0, len(content)
        while at < size:
            if self._in_chunk:
                piece = content[at : at + self._in_chunk]
                at += len(piece)
                self._in_chunk -= len(piece)
                # The line's end behind a chunk counts as a part of it.
                if piece := piece[: len(piece) - max(0, 2 - self._in_chunk)] if self._in_chunk < 2 else piece:
                    self._send(piece, end=False)
                continue
            line = content.find(b"\r\n", at)
            if line < 0:
                break
            length = int(content[at:line], 16)
            if not length:
                self._send(b"", end=True)
                return b""
            at = line + 2
            self._in_chunk = length + 2
        self._rest = content[at:]
        return b""

    def _send(self, content: bytes, *, end: bool) -> None:
        self._end_queued = end
        if content:
            if not self._queued and len(content) <= 16_384 and self.connection.takes(self, len(content)):
                self.connection.send(frame_head(DATA, END_STREAM if end else 0, self.stream, len(content)) + content)
                if end:
                    self._finish()
                return
            self._queue.append(memoryview(content))
            self._queued += len(content)
        self.pump()
        if self._queued > self._high and not self._paused and not self._closing:
            self._paused = True
            self.handler.pause_writing()

    @property
    def waits(self) -> bool:
        """Whether there is something to send."""
        return bool(self._queue)

    def pump(self) -> None:
        """Send what waits, as far as the client takes it."""
        queue = self._queue
        while queue and (size := self.connection.room(self, len(queue[0]))):
            piece = queue[0]
            if size == len(piece):
                queue.popleft()
            else:
                queue[0] = piece[size:]
            self._queued -= size
            end = self._end_queued and not queue
            self.connection.send(frame_head(DATA, END_STREAM if end else 0, self.stream, size))
            self.connection.send(bytes(piece[:size]))
            if end:
                self._resume()
                self._finish()
                return
        if self._end_queued and not queue and self.stream:
            self.connection.send(frame(DATA, END_STREAM, self.stream))
            self._resume()
            self._finish()
        elif self._queued <= self._high // 4:
            self._resume()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self.handler.resume_writing()

    # The rest of what a transport does

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._closing

    def close(self) -> None:
        """Send what waits, and end."""
        if self._closing:
            return
        if self.stream and self._framing == -2:
            self._send(b"", end=True)
        if self.stream and self._end_queued:
            # What waits is sent as far as the client takes it; nobody writes to it any more.
            self.request_ended = True
        elif self.stream:
            self.connection.give_up(self, ErrorCode.NO_ERROR if self.response_begun else ErrorCode.INTERNAL_ERROR)
        self._end()

    def abort(self) -> None:
        """End at once."""
        if self._closing:
            return
        if self.stream:
            self.connection.give_up(self, ErrorCode.CANCEL)
        self._end()

    def _end(self) -> None:
        self._closing = True
        self.connection.closed(self)
        asyncio.get_running_loop().call_soon(self.handler.connection_lost, None)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the connection below; of sockets nothing, since nobody is to set options of what is shared."""
        if name in ("socket", "ssl_object"):
            return default
        return self.connection.peer if name == "peer" else self.connection.transport.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """What the client has not taken yet."""
        return self._queued

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set how much may wait before the handler is told to pause."""
        self._high = high if high is not None else _HIGH_BYTES

    def pause_reading(self) -> None:
        """Give the client no more room."""
        self._reading = False

    def resume_reading(self) -> None:
        """Give it back what it has filled."""
        self._reading = True
        self.connection.credit(self)

    def is_reading(self) -> bool:
        """Whether the handler takes more."""
        return self._reading

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The handler."""
        return self.handler
