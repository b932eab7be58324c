"""A connection that a client has opened: its streams, their windows, and the signs of life.

Knows HTTP/2 and asyncio, not what the streams are for. Policy: what is written in one turn of the loop leaves together; a stream gets a
new window only when its owner has room; a peer that breaks the rules, asks more than it takes, or is silent for too long is left. Of a
stream that ends early its owner hears whether the peer may have acted on it.

Source: https://www.rfc-editor.org/rfc/rfc9113
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol, cast

from http2 import frames
from http2.frame_reader import FrameReader
from http2.frames import ErrorCode, ProtocolError
from storage.http2.header_blocks import HEADER_BLOCK_BYTES, HeaderReader, Headers

STREAM_WINDOW_BYTES = 1 << 22
"""How much of one stream the peer may send ahead of its owner."""
_CONNECTION_WINDOW_BYTES = 1 << 30  # streams have bounds of their own
_PONG_SECONDS = 0.01
_PONGS = 100  # that wait for no more than this
_UNANSWERED = 1000  # answers to pings and settings that a peer may have us keep while it reads nothing
_SECOND_LOOK_SECONDS = 0.05
_GOODBYE_SECONDS = 1.0  # for the peer to read what was written before the end
_SETTINGS = {
    frames.HEADER_TABLE_SIZE: 0,
    frames.ENABLE_PUSH: 0,
    frames.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
    frames.MAX_HEADER_LIST_SIZE: HEADER_BLOCK_BYTES,
}


class BrokenOffError(Exception):
    """A stream has ended before its end, by a reset with `code`, or (None) together with its connection.

    `sent` is False when the peer has certainly not acted on it.
    """

    def __init__(self, code: ErrorCode | None, words: str, *, sent: bool) -> None:
        super().__init__(words)
        self.code = code
        self.sent = sent


class Receiver(Protocol):
    """What a stream brings is given to it at once, from the loop; it must not raise."""

    def received_headers(self, headers: Headers, *, ended: bool) -> None:
        """Headers before or after the data."""

    def received_data(self, payload: bytes, *, ended: bool) -> bool:
        """Take data; return whether there is room for more. If not, `ClientConnection.make_room` tells when there is."""

    def broke_off(self, error: BrokenOffError) -> None:
        """Nothing more comes."""


class Stream:
    """One stream of a connection, for its owner to keep."""

    __slots__ = ("block", "ended_here", "id", "pending", "receiver", "to_grant", "window")

    def __init__(self, receiver: Receiver, block: bytes) -> None:
        self.receiver = receiver
        self.block = block
        self.id = 0
        """0 until it is opened."""
        self.window = 0
        self.pending = b""
        """What the windows have not let out yet."""
        self.ended_here = False
        """No more data is given to be sent."""
        self.to_grant = 0
        """Bytes that were received, for which the peer has no new window yet."""


class ClientConnection(asyncio.Protocol):
    """Opens streams on one transport. Made by `loop.create_connection`, which calls it as its protocol."""

    def __init__(self, *, keepalive_seconds: float, keepalive_timeout_seconds: float) -> None:
        self.lost: BrokenOffError | None = None
        """Set when no stream can be opened any more; those that are open may still end well."""
        self._keepalive_seconds = keepalive_seconds
        self._keepalive_timeout_seconds = keepalive_timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader(header_block_bytes=HEADER_BLOCK_BYTES)
        self._headers = HeaderReader()
        self._out: list[bytes] = []
        self._flushing = False
        self._paused = False
        self._unanswered = 0
        self._pongs: list[bytes] = []
        self._streams: dict[int, Stream] = {}
        self._waiting: deque[Stream] = deque()
        self._blocked: deque[Stream] = deque()
        self._next_id = 1
        self._written_id = 0
        self._window = frames.WINDOW_BYTES
        self._initial_window = frames.WINDOW_BYTES
        self._max_frame = frames.FRAME_BYTES
        self._max_streams = frames.MAX_WINDOW_BYTES
        self._to_grant = 0
        self._greeted = False
        self._heard_seconds = 0.0
        self._watchdog: asyncio.TimerHandle | None = None
        self._gone = self._loop.create_future()

    def open(self, receiver: Receiver, block: bytes, data: bytes, *, end: bool) -> Stream:
        """Send headers and the first data of a new stream; it waits its turn when the peer allows no more streams now.

        Raises:
            BrokenOffError: the connection takes no more streams; nothing was sent.
        """
        if self.lost is not None:
            raise BrokenOffError(None, str(self.lost), sent=False)
        stream = Stream(receiver, block)
        stream.pending, stream.ended_here = data, end
        if self._waiting or len(self._streams) >= self._max_streams:
            self._waiting.append(stream)
        else:
            self._begin(stream)
        return stream

    def send(self, stream: Stream, data: bytes, *, end: bool = False) -> None:
        """Send more data on an open stream, as soon as its windows allow it. On one that has ended it does nothing."""
        stream.ended_here = end
        if stream.pending or not stream.id:
            stream.pending += data
        elif stream.id in self._streams:
            stream.pending = data
            self._send(stream)

    def cancel(self, stream: Stream) -> None:
        """Give a stream up; its receiver hears nothing more. May be called when it has ended."""
        if not stream.id:
            if stream in self._waiting:
                self._waiting.remove(stream)
        elif self._forget(stream):
            self._write(frames.rst_stream(stream.id, ErrorCode.CANCEL))

    def make_room(self, stream: Stream) -> None:
        """Let the peer send more on a stream whose receiver had no room."""
        if stream.to_grant >= STREAM_WINDOW_BYTES // 2 and stream.id in self._streams:
            self._write(frames.window_update(stream.id, stream.to_grant))
            stream.to_grant = 0

    def drain(self) -> None:
        """Take no new streams, and close when those that are open have ended."""
        self._refuse(BrokenOffError(None, "the connection was closed", sent=False))

    async def close(self) -> None:
        """Close at once, and return when the transport is gone. Open streams break off."""
        self._end(BrokenOffError(None, "the connection was closed", sent=True), ErrorCode.NO_ERROR)
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Return when the transport is gone."""
        await asyncio.shield(self._gone)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        # uvloop's transports do not say that they are asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        self._heard_seconds = self._loop.time()
        self._watchdog = self._loop.call_later(self._keepalive_seconds, self._watch)
        self._write(frames.PREFACE + frames.settings_frame(_SETTINGS))
        self._write(frames.window_update(0, _CONNECTION_WINDOW_BYTES - frames.WINDOW_BYTES))

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._heard_seconds = self._loop.time()
        try:
            for kind, flags, stream_id, payload in self._frames.feed(data):
                if kind == frames.DATA:
                    self._on_data(flags, stream_id, payload)
                elif kind == frames.HEADERS:
                    self._on_headers(flags, stream_id, payload)
                else:
                    self._on_control(kind, flags, stream_id, payload)
                if self._transport is None:
                    return
        except ProtocolError as error:
            self._end(BrokenOffError(None, str(error), sent=True), error.code)

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._end(BrokenOffError(None, f"the connection was lost: {error or 'closed by the peer'}", sent=True), None)
        if self._watchdog is not None:
            self._watchdog.cancel()
        if not self._gone.done():
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._paused = True

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._paused, self._unanswered = False, 0
        self._pump()

    def _begin(self, stream: Stream) -> None:
        stream.id, self._next_id = self._next_id, self._next_id + 2
        stream.window = self._initial_window
        self._streams[stream.id] = stream
        if self._next_id > frames.MAX_WINDOW_BYTES:
            self._refuse(BrokenOffError(None, "all numbers for streams are used", sent=False))
        self._write(frames.header_frames(stream.id, stream.block, end_stream=stream.ended_here and not stream.pending))
        if stream.pending:
            self._send(stream)

    def _send(self, stream: Stream) -> None:
        """Write what both windows let out, or queue for it."""
        data, size = stream.pending, len(stream.pending)
        if size <= self._max_frame and size <= stream.window and size <= self._window and not self._blocked and not self._paused:
            stream.window -= size
            self._window -= size
            stream.pending = b""
            self._write(frames.frame(frames.DATA, frames.END_STREAM if stream.ended_here else 0, stream.id, data))
        else:
            self._blocked.append(stream)
            self._pump()

    def _pump(self) -> None:
        """Let blocked streams send in turn, a frame each, as far as their windows go."""
        stuck = 0
        while stuck < len(self._blocked) and self._window > 0 and not self._paused:
            stream = self._blocked.popleft()
            size = min(len(stream.pending), stream.window, self._window, self._max_frame)
            if stream.id not in self._streams or not stream.pending:
                continue
            if size <= 0:
                self._blocked.append(stream)
                stuck += 1
                continue
            stuck = 0
            stream.window -= size
            self._window -= size
            data, stream.pending = stream.pending[:size], stream.pending[size:]
            ended = stream.ended_here and not stream.pending
            self._write(frames.frame(frames.DATA, frames.END_STREAM if ended else 0, stream.id, data))
            if stream.pending:
                self._blocked.append(stream)

    def _write(self, data: bytes) -> None:
        self._out.append(data)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None:
            self._written_id = self._next_id - 2
            out, self._out = self._out, []
            self._transport.write(b"".join(out))

    def _pong(self, payload: bytes) -> None:
        """Answer a ping a moment later.

        A server in Go measures the line with whatever it receives, by one ping at a time. Answered at once, they would come with each
        request, and wake both sides once more for it.
        """
        self._note_asked()
        self._pongs.append(frames.frame(frames.PING, frames.ACK, 0, payload))
        if len(self._pongs) == 1:
            self._loop.call_later(_PONG_SECONDS, self._write_pongs)
        elif len(self._pongs) == _PONGS:
            self._write_pongs()

    def _write_pongs(self) -> None:
        if self._pongs:
            self._write(b"".join(self._pongs))
            self._pongs.clear()

    def _note_asked(self) -> None:
        self._unanswered += self._paused
        if self._unanswered > _UNANSWERED:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "the peer asks and does not read")

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._to_grant += size
        if self._to_grant >= _CONNECTION_WINDOW_BYTES // 2:
            self._write(frames.window_update(0, self._to_grant))
            self._to_grant = 0
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_used(stream_id)
            return
        stream.to_grant += size
        if stream.to_grant > STREAM_WINDOW_BYTES:
            raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "more data than the window of its stream")
        if flags & frames.PADDED:
            payload = frames.without_padding(payload)
        ended = bool(flags & frames.END_STREAM)
        if ended:
            self._finish(stream)
        if stream.receiver.received_data(payload, ended=ended) and not ended:
            self.make_room(stream)

    def _on_headers(self, flags: int, stream_id: int, block: bytes) -> None:
        headers = self._headers.decode(block)
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_used(stream_id)
            return
        ended = bool(flags & frames.END_STREAM)
        if ended:
            self._finish(stream)
        stream.receiver.received_headers(headers, ended=ended)

    def _on_control(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if kind == frames.SETTINGS:
            self._on_settings(flags, payload)
        elif kind == frames.PING:
            if len(payload) != 8:
                raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a PING of another size")
            if not flags & frames.ACK:
                self._pong(payload)
        elif kind == frames.WINDOW_UPDATE:
            self._on_window_update(stream_id, frames.uint(payload))
        elif kind == frames.RST_STREAM:
            self._on_reset(stream_id, frames.uint(payload))
        elif kind == frames.GOAWAY:
            self._on_goaway(frames.uint(payload), frames.uint(payload, 4), payload[8:])
        elif kind == frames.PUSH_PROMISE:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a push, which we have forbidden")
        # Of the others PRIORITY is advice, and what is unknown is to be ignored.

    def _on_settings(self, flags: int, payload: bytes) -> None:
        if flags & frames.ACK:
            self._headers.forget_tables()
            return
        for setting, value in frames.settings_of(payload):
            if setting == frames.INITIAL_WINDOW_SIZE:
                if value > frames.MAX_WINDOW_BYTES:
                    raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a window that is too large")
                for stream in self._streams.values():
                    stream.window += value - self._initial_window
                self._initial_window = value
            elif setting == frames.MAX_FRAME_SIZE:
                self._max_frame = max(value, frames.FRAME_BYTES)
            elif setting == frames.MAX_CONCURRENT_STREAMS:
                self._max_streams = value
        self._note_asked()
        self._write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self._pump()
        self._begin_waiting()

    def _on_window_update(self, stream_id: int, increment: int) -> None:
        if not stream_id:
            self._window += increment
            if self._window > frames.MAX_WINDOW_BYTES:
                raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a window that is too large")
        elif (stream := self._streams.get(stream_id)) is not None:
            stream.window += increment
        if self._blocked:
            self._pump()

    def _on_reset(self, stream_id: int, number: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            self._check_used(stream_id)
            return
        self._forget(stream)
        code = _code(number)
        stream.receiver.broke_off(BrokenOffError(code, f"the stream was reset: {code.name}", sent=code is not ErrorCode.REFUSED_STREAM))

    def _on_goaway(self, last_id: int, number: int, words: bytes) -> None:
        code = _code(number)
        text = f"the peer goes away: {code.name} {words.decode('utf-8', 'replace')[:200]}".rstrip()
        refused = [stream for stream in self._streams.values() if stream.id > last_id]
        for stream in refused:
            del self._streams[stream.id]
        self._refuse(BrokenOffError(None, text, sent=False))
        for stream in refused:
            stream.receiver.broke_off(BrokenOffError(None, text, sent=False))

    def _check_used(self, stream_id: int) -> None:
        """What comes late for a stream that has ended is nothing; what comes for one that never was is a fault."""
        if not stream_id & 1 or stream_id >= self._next_id:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, f"something for stream {stream_id}, which was never opened")

    def _finish(self, stream: Stream) -> None:
        """The peer has ended the stream; whatever we had to add to it is of no use any more."""
        self._forget(stream)
        if stream.pending or not stream.ended_here:
            self._write(frames.rst_stream(stream.id, ErrorCode.NO_ERROR))

    def _forget(self, stream: Stream) -> bool:
        if self._streams.pop(stream.id, None) is None:
            return False
        self._begin_waiting()
        if self.lost is not None and not self._streams:
            self._loop.call_soon(self._end, self.lost, ErrorCode.NO_ERROR)
        return True

    def _begin_waiting(self) -> None:
        while self._waiting and len(self._streams) < self._max_streams and self.lost is None:
            self._begin(self._waiting.popleft())

    def _refuse(self, error: BrokenOffError) -> None:
        """Open no more streams; those that wait are told, those that are open go on."""
        if self.lost is None:
            self.lost = error
        while self._waiting:
            self._waiting.popleft().receiver.broke_off(error)
        if not self._streams:
            self._end(error, ErrorCode.NO_ERROR)

    def _end(self, error: BrokenOffError, code: ErrorCode | None) -> None:
        """Close the transport, saying why if there is still somebody to hear it, and break every stream off. May be called twice."""
        transport, self._transport = self._transport, None
        if self.lost is None:
            self.lost = error
        if self._watchdog is not None:
            self._watchdog.cancel()
        if transport is not None and code is not None:
            transport.write(b"".join([*self._out, frames.goaway(0, code)]))
            self._written_id = self._next_id - 2
            transport.close()
            self._watchdog = self._loop.call_later(_GOODBYE_SECONDS, transport.abort)
        self._out.clear()
        streams = [*self._streams.values(), *self._waiting]
        self._streams.clear()
        self._waiting.clear()
        self._blocked.clear()
        for stream in streams:
            sent = error.sent and 0 < stream.id <= self._written_id
            stream.receiver.broke_off(BrokenOffError(None, str(error), sent=sent))

    def _watch(self, asked_seconds: float = 0.0, *, last: bool = False) -> None:
        """Ask a peer for a sign of life that owes us answers and is silent, and leave it when none comes."""
        now = self._loop.time()
        delay_seconds = self._heard_seconds + self._keepalive_seconds - now
        if asked_seconds > self._heard_seconds:
            if last:
                words = f"no sign of life for {now - self._heard_seconds:.1f} s"
                transport = self._transport
                self._end(BrokenOffError(None, words, sent=True), None)
                if transport is not None:
                    transport.abort()
                return
            # The loop may have been held for so long that the answer is there and has not been read.
            self._watchdog = self._loop.call_later(_SECOND_LOOK_SECONDS, lambda: self._watch(asked_seconds, last=True))
        elif delay_seconds > 0 or not self._streams:
            self._watchdog = self._loop.call_later(delay_seconds if delay_seconds > 0 else self._keepalive_seconds, self._watch)
        else:
            self._write(frames.frame(frames.PING, 0, 0, b"alive?\r\n"))
            self._watchdog = self._loop.call_later(self._keepalive_timeout_seconds, self._watch, now)


def _code(number: int) -> ErrorCode:
    return ErrorCode(number) if number in ErrorCode.__members__.values() else ErrorCode.INTERNAL_ERROR
