"""gRPC calls as streams of an HTTP/2 connection: one answer to one message, or messages both ways.

Knows gRPC's framing and its status, nothing of etcd. Policy: messages are never compressed, and bounded; what waits to be read of a
call is bounded by the window of its stream, which is renewed when all of it has been read.

Source: https://github.com/grpc/grpc/blob/v1.75.0/doc/PROTOCOL-HTTP2.md
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from enum import IntEnum
from urllib.parse import unquote

from http2.frames import ErrorCode
from storage.http2.client import BrokenOffError, ClientConnection, Stream
from storage.http2.header_blocks import Headers

MESSAGE_BYTES = 1 << 30
"""The largest message that is taken: a page of a list has 500 keys, of up to 2 MiB each."""
_PREFIX = struct.Struct(">BL")  # compressed, length


class StatusCode(IntEnum):
    """How a call ended."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


_STATUS_CODES = {str(code.value): code for code in StatusCode}
_OF_HTTP = {
    "400": StatusCode.INTERNAL,
    "401": StatusCode.UNAUTHENTICATED,
    "403": StatusCode.PERMISSION_DENIED,
    "404": StatusCode.UNIMPLEMENTED,
    "429": StatusCode.UNAVAILABLE,
    "502": StatusCode.UNAVAILABLE,
    "503": StatusCode.UNAVAILABLE,
    "504": StatusCode.UNAVAILABLE,
}
_OF_RESET = {
    None: StatusCode.UNAVAILABLE,
    ErrorCode.NO_ERROR: StatusCode.UNAVAILABLE,
    ErrorCode.REFUSED_STREAM: StatusCode.UNAVAILABLE,
    ErrorCode.CANCEL: StatusCode.CANCELLED,
    ErrorCode.ENHANCE_YOUR_CALM: StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.INADEQUATE_SECURITY: StatusCode.PERMISSION_DENIED,
}


class CallError(Exception):
    """A call that did not end with OK. `sent` is False when the server has certainly not acted on it."""

    def __init__(self, code: StatusCode, details: str, *, sent: bool = True) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details
        self.sent = sent


class StreamEnded(Exception):
    """The server has ended a call with OK: there are no more messages."""


class Call:
    """One call, begun when it is made. Read by one task; whoever stops reading before the end has to `cancel`."""

    __slots__ = ("_buffer", "_connection", "_end", "_every_message", "_messages", "_status", "_stream", "_waiter", "_wanted")

    def __init__(self, connection: ClientConnection, block: bytes, request: bytes, *, streaming: bool = False) -> None:
        """Raise CallError when the connection takes no more calls."""
        self._connection = connection
        self._every_message = streaming
        self._messages: deque[bytes] = deque()
        self._buffer = bytearray()
        self._wanted = 5
        self._status: str | None = None
        self._end: CallError | StreamEnded | None = None
        self._waiter: asyncio.Future[None] | None = None
        try:
            self._stream: Stream = connection.open(self, block, _framed(request), end=not streaming)
        except BrokenOffError as error:
            raise _broken_off(error) from error

    async def answer(self, timeout_seconds: float) -> bytes:
        """Return the only message. Cancels the call when it is cancelled.

        Raises:
            CallError: how else it ended.
        """
        try:
            if self._end is None:
                await self._wait(timeout_seconds)
        finally:
            # Call and stream name each other: every answer would be held until the collector looks.
            del self._stream
        if len(self._messages) == 1 and isinstance(self._end, StreamEnded):
            return self._messages[0]
        if isinstance(self._end, CallError):
            raise self._end
        raise CallError(StatusCode.INTERNAL, f"{len(self._messages)} messages in place of one")

    async def _wait(self, timeout_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(timeout_seconds, self._time_out)
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            timer.cancel()

    async def read(self) -> bytes:
        """Return the next message.

        Raises:
            CallError, StreamEnded: there is none, and never will be.
        """
        while not self._messages:
            if self._end is not None:
                raise self._end
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        message = self._messages.popleft()
        if not self._messages:
            self._connection.make_room(self._stream)
        return message

    @property
    def has_message(self) -> bool:
        """Whether `read` has something to return at once."""
        return bool(self._messages)

    def write(self, request: bytes) -> None:
        """Send one more message, which waits for the windows; for requests that are few and small. None after the end."""
        self._connection.send(self._stream, _framed(request))

    def cancel(self) -> None:
        """End the call now; whoever reads gets StreamEnded, and nothing that came before."""
        self._messages.clear()
        self._connection.cancel(self._stream)
        self._finish(StreamEnded())

    def received_headers(self, headers: Headers, *, ended: bool) -> None:
        """See `Receiver`."""
        if self._status is None:
            self._status = headers.get(":status", "")
            if self._status.startswith("1"):
                self._status = None
        if ended:
            self._finish(_end_of(self._status or "", headers))

    def received_data(self, payload: bytes, *, ended: bool) -> bool:
        """See `Receiver`."""
        if self._buffer:
            self._buffer += payload
            payload = b""
            if len(self._buffer) >= self._wanted:
                payload = bytes(self._buffer)
                self._buffer.clear()
        if payload:
            self._cut(payload)
        if ended:
            self._finish(CallError(StatusCode.INTERNAL, "the server ended the call without a status"))
        return not self._messages

    def broke_off(self, error: BrokenOffError) -> None:
        """See `Receiver`."""
        self._finish(_broken_off(error))

    def _cut(self, payload: bytes) -> None:
        """Take the messages at the beginning of `payload`, and keep the rest."""
        start, end, self._wanted = 0, len(payload), 5
        while end - start >= 5:
            compressed, size = _PREFIX.unpack_from(payload, start)
            if compressed:
                self._refuse(StatusCode.INTERNAL, "a compressed message")
                return
            if size > MESSAGE_BYTES:
                self._refuse(StatusCode.RESOURCE_EXHAUSTED, f"a message larger than max ({size} vs. {MESSAGE_BYTES})")
                return
            following = start + 5 + size
            if following > end:
                self._wanted = following - start
                break
            self._messages.append(payload[start + 5 : following])
            start = following
        self._buffer += payload[start:]
        if self._every_message:
            if start:
                self._wake()
        elif len(self._messages) > 1:
            self._refuse(StatusCode.INTERNAL, "several messages in place of one")

    def _refuse(self, code: StatusCode, words: str) -> None:
        self._connection.cancel(self._stream)
        self._finish(CallError(code, words))

    def _time_out(self) -> None:
        self._connection.cancel(self._stream)
        self._finish(CallError(StatusCode.DEADLINE_EXCEEDED, "no answer in time", sent=self._stream.id != 0))

    def _finish(self, end: CallError | StreamEnded) -> None:
        if self._end is None:
            self._end = end
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _framed(message: bytes) -> bytes:
    return _PREFIX.pack(0, len(message)) + message


def _end_of(http_status: str, trailers: Headers) -> CallError | StreamEnded:
    """Return what the last headers say."""
    number = trailers.get("grpc-status")
    if number == "0":
        return StreamEnded()
    if number is None:
        return CallError(_OF_HTTP.get(http_status, StatusCode.UNKNOWN), f"HTTP status {http_status or 'missing'} without a status of gRPC")
    code = _STATUS_CODES.get(number, StatusCode.UNKNOWN)
    return CallError(code, unquote(trailers.get("grpc-message", "")))


def _broken_off(error: BrokenOffError) -> CallError:
    code = _OF_RESET.get(error.code, StatusCode.INTERNAL)
    return CallError(code, str(error), sent=error.sent)
