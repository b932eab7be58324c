"""A connection of HTTP/2: its frames, its windows, and what its client may cost.

Bounds: 100 streams at a time, heads and bodies as over HTTP/1.1, unread bodies of 256 KiB a stream, as in kube-apiserver. When the client
does not take what is written, nothing more is read from it, so that what it must be answered does not grow. Who resets streams before they
are answered, or makes us reset them, is sent away after some hundred.
Source: https://nvd.nist.gov/vuln/detail/CVE-2023-44487, CVE-2024-27316, CVE-2025-8671
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from hpack import Decoder, HPACKError, OversizedHeaderListError

from apiserver.http2.farewell import Farewell
from apiserver.http2.heads import BadHead, RequestHead
from apiserver.http2.lane import Lane
from http2 import frames
from http2.frame_reader import FrameReader
from http2.frames import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from apiserver.request import Peer

_log = logging.getLogger(__name__)

_MOST_STREAMS: Final = 100
_STREAM_WINDOW: Final = 256 * 1024
_CONNECTION_WINDOW: Final = _STREAM_WINDOW * _MOST_STREAMS
_RESETS: Final = 200
_FLUSH_BYTES: Final = 64 * 1024


class Http2Connection(asyncio.Protocol):
    """One connection."""

    def __init__(
        self,
        make_handler: Callable[[], asyncio.Protocol],
        peer: Peer,
        *,
        max_header_bytes: int,
        idle_seconds: float,
        on_lost: Callable[[Http2Connection], None],
    ) -> None:
        self.peer = peer
        self._make_handler = make_handler
        self._max_header_bytes = max_header_bytes
        self._idle_seconds = idle_seconds
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self._decoder = Decoder(max_header_list_size=max_header_bytes)
        self._frames = FrameReader(header_block_bytes=max_header_bytes)
        self._begun = b""
        self._preface_due = self._settings_due = True
        self.unacknowledged_settings = 0
        """How many of ours the client has not said yet that it keeps to."""
        self._lanes: dict[int, Lane] = {}
        self._idle: list[Lane] = []
        self._last_stream = 0
        self._window = frames.WINDOW_BYTES
        self._stream_window = frames.WINDOW_BYTES
        self._unacknowledged = 0
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._flushing = False
        self._writable = True
        self._full = self._holding = False
        self._more_room = False
        self._resets = 0
        self._answered = 0
        self._leaving = False
        self._used = True
        self._watchdog: asyncio.TimerHandle | None = None
        self._farewell: Farewell | None = None

    # The connection below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say how we want to be spoken to."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment] # uvloop's is none by class
        self.unacknowledged_settings += 1
        said = {
            frames.MAX_CONCURRENT_STREAMS: _MOST_STREAMS,
            frames.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
            frames.MAX_HEADER_LIST_SIZE: self._max_header_bytes,
        }
        self.send(frames.settings_frame(said) + frames.window_update(0, _CONNECTION_WINDOW - frames.WINDOW_BYTES))
        self._watchdog = self._loop.call_later(self._idle_seconds, self._look)

    def _look(self) -> None:
        """Close a connection on which nothing has happened since the last look."""
        if not self._lanes and not self._used:
            self.leave()
            return
        self._used = False
        self._watchdog = self._loop.call_later(self._idle_seconds, self._look)

    def data_received(self, data: bytes) -> None:
        """Take up the frames that are whole."""
        if self.transport.is_closing():
            return
        try:
            if self._preface_due:
                data = self._behind_preface(data)
            for kind, flags, stream, payload in self._frames.feed(data):
                if self._settings_due and (kind != frames.SETTINGS or flags & frames.ACK):
                    raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "no settings behind the preface")
                self._settings_due = False
                take = _TAKE.get(kind)
                if take is not None:
                    take(self, flags, stream, payload)
            if self._more_room:
                # Not for each of the client's words: what they allow together goes out in larger pieces.
                self._more_room = False
                self._pump()
        except ProtocolError as error:
            self._break(error.code, str(error))

    def eof_received(self) -> None:
        """The client sends nothing any more; that ends the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all who still answer."""
        self._leaving = True
        for ending in (self._watchdog, self._farewell):
            if ending is not None:
                ending.cancel()
        lanes, self._lanes, self._idle = [*self._lanes.values(), *self._idle], {}, []
        for lane in lanes:
            lane.lost()
        self._on_lost(self)

    def pause_writing(self) -> None:
        """Let everything wait; read nothing that would have to be answered."""
        self._full, self._writable = True, False
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._full, self._writable = False, not self._holding
        self.transport.resume_reading()
        self._pump()

    def send(self, data: bytes) -> None:
        """Write, together with all else that is written in this turn of the loop."""
        self._out.append(data)
        self._out_bytes += len(data)
        if self._out_bytes >= _FLUSH_BYTES:
            self._flush()
        elif not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._holding:
            return
        if self._out and not self.transport.is_closing():
            self.transport.write(self._out[0] if len(self._out) == 1 else b"".join(self._out))
        self._out = []
        self._out_bytes = 0

    # The end

    def leave(self) -> None:
        """Ask the client to begin no more streams; close when those that there are have ended.

        What it begins before it hears of that is still answered, and so is what it begins in spite of it: it cannot send a body again.
        """
        if self._farewell is None and not self._leaving:
            self._farewell = Farewell(self, used=self._last_stream > 0)

    def hold(self) -> tuple[int, int]:
        """Send nothing of what is written from now on; return how many streams the client has open, and how many it may."""
        self._flush()
        self._holding, self._writable = True, False
        return len(self._lanes), _MOST_STREAMS

    def limit(self, streams: int) -> None:
        """Tell the client at once how many streams it may have; more are not refused."""
        self.unacknowledged_settings += 1
        self.transport.write(frames.settings_frame({frames.MAX_CONCURRENT_STREAMS: streams}))

    def say_farewell(self) -> None:
        """Send what was held, behind the word that no more streams are wanted: none is refused yet."""
        self._holding, self._writable = False, not self._full
        ping = frames.frame(frames.PING, 0, 0, bytes(8))
        self._out.insert(0, frames.goaway(frames.MAX_WINDOW_BYTES, ErrorCode.NO_ERROR) + ping)
        self._flush()
        self._pump()

    def leave_when_idle(self) -> None:
        """Close, at once or with the last stream."""
        self._leaving = True
        if not self._lanes:
            self.send(frames.goaway(self._last_stream, ErrorCode.NO_ERROR))
            self.close()

    def close(self) -> None:
        """Close now."""
        self._holding = False
        self._flush()
        self.transport.close()

    def _break(self, code: ErrorCode, reason: str) -> None:
        _log.debug("a connection of %s is ended: %s", self.peer.address, reason)
        self._leaving = True
        self.send(frames.goaway(self._last_stream, code))
        self.close()

    # What comes

    def _behind_preface(self, data: bytes) -> bytes:
        """What comes behind the words that every connection begins with, as far as it has come."""
        begun = self._begun + data
        self._begun = begun[: len(frames.PREFACE)]
        if not frames.PREFACE.startswith(self._begun):
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "no preface")
        self._preface_due = self._begun != frames.PREFACE
        return begun[len(frames.PREFACE) :]

    def _take_data(self, flags: int, stream: int, payload: bytes) -> None:
        size = len(payload)
        content = frames.without_padding(payload) if flags & frames.PADDED else payload
        self._unacknowledged += size
        if self._unacknowledged >= _CONNECTION_WINDOW // 2:
            self.send(frames.window_update(0, self._unacknowledged))
            self._unacknowledged = 0
        lane = self._lanes.get(stream)
        if lane is None:
            self._check_closed(stream)
            self.send(frames.rst_stream(stream, ErrorCode.STREAM_CLOSED))
            return
        if lane.request_ended:
            self._reset(lane, ErrorCode.STREAM_CLOSED)
            return
        lane.received_bytes += size
        if lane.received_bytes > _STREAM_WINDOW:
            raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "more than a stream's window")
        ended = bool(flags & frames.END_STREAM)
        if lane.expected_bytes is not None:
            lane.expected_bytes -= len(content)
            if lane.expected_bytes < 0 or (ended and lane.expected_bytes):
                self._reset(lane, ErrorCode.PROTOCOL_ERROR)
                return
        lane.feed(content, ended=ended)
        if lane.is_reading():
            self.credit(lane)

    def credit(self, lane: Lane) -> None:
        """Let the client send what has been read in its place."""
        if lane.stream and not lane.request_ended and lane.received_bytes >= _STREAM_WINDOW // 2:
            self.send(frames.window_update(lane.stream, lane.received_bytes))
            lane.received_bytes = 0

    def _take_headers(self, flags: int, stream: int, payload: bytes) -> None:
        if not stream & 1:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "clients' streams have odd numbers")
        try:
            fields = self._decoder.decode(payload, raw=True)
        except OversizedHeaderListError as error:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "the head of a request is too large") from error
        except HPACKError as error:
            raise ProtocolError(ErrorCode.COMPRESSION_ERROR, str(error)) from error
        self._take_head(stream, fields, ended=bool(flags & frames.END_STREAM))

    def _take_head(self, stream: int, fields: Iterable[tuple[bytes, bytes]], *, ended: bool) -> None:
        lane = self._lanes.get(stream)
        if lane is not None:
            # Trailers, which nobody here reads.
            if lane.request_ended or not ended or lane.expected_bytes or any(name[:1] == b":" for name, _ in fields):
                self._reset(lane, ErrorCode.STREAM_CLOSED if lane.request_ended else ErrorCode.PROTOCOL_ERROR)
            else:
                lane.feed(b"", ended=True)
            return
        if stream <= self._last_stream:
            raise ProtocolError(ErrorCode.STREAM_CLOSED, "the stream has been closed")
        self._last_stream = stream
        self._used = True
        if self._farewell is not None:
            self._farewell.begun()
        if len(self._lanes) >= _MOST_STREAMS:
            self._count_reset()
            self.send(frames.rst_stream(stream, ErrorCode.REFUSED_STREAM))
            return
        try:
            head = RequestHead(fields)
            if ended and head.length_bytes:
                raise BadHead
        except BadHead:
            self._count_reset()
            self.send(frames.rst_stream(stream, ErrorCode.PROTOCOL_ERROR))
            return
        lane = self._lanes[stream] = self._idle.pop() if self._idle else self._new_lane()
        lane.received_bytes = 0
        lane.carry(stream, head, self._stream_window, ended=ended)

    def _new_lane(self) -> Lane:
        handler = self._make_handler()
        lane = Lane(self, handler)
        handler.connection_made(lane)
        return lane

    def _take_priority(self, _flags: int, stream: int, payload: bytes) -> None:
        if not stream:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "no stream")
        if len(payload) != 5:
            self._refuse(stream, ErrorCode.FRAME_SIZE_ERROR)
        elif frames.uint(payload) == stream:
            self._refuse(stream, ErrorCode.PROTOCOL_ERROR)

    def _take_reset(self, _flags: int, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a reset has four bytes")
        if self._farewell is not None:
            self._farewell.given_up()
        lane = self._lanes.pop(stream, None)
        if lane is None:
            self._check_closed(stream)
            return
        if not lane.response_begun:
            self._count_reset()
        lane.lost()
        self._after_stream()

    def _take_settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "settings of a stream")
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "settings have six bytes each")
        if flags & frames.ACK:
            self.unacknowledged_settings = max(0, self.unacknowledged_settings - 1)
            if self._farewell is not None and not self.unacknowledged_settings:
                self._farewell.acknowledged()
            return
        for number, value in frames.settings_of(payload):
            if number == frames.INITIAL_WINDOW_SIZE:
                if value > frames.MAX_WINDOW_BYTES:
                    raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")
                more, self._stream_window = value - self._stream_window, value
                for lane in self._lanes.values():
                    lane.window += more
                    if lane.window > frames.MAX_WINDOW_BYTES:
                        raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")
            elif number == frames.MAX_FRAME_SIZE and not frames.FRAME_BYTES <= value < 1 << 24:
                raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "no size of frames")
            elif number == frames.ENABLE_PUSH and value > 1:
                raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "neither yes nor no")
        self.send(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self._more_room = True

    def _take_push(self, _flags: int, _stream: int, _payload: bytes) -> None:
        raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "clients push nothing")

    def _take_ping(self, flags: int, stream: int, payload: bytes) -> None:
        if stream:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a ping of a stream")
        if len(payload) != 8:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a ping has eight bytes")
        if not flags & frames.ACK:
            self._used = True
            self.send(frames.frame(frames.PING, frames.ACK, 0, payload))
        elif self._farewell is not None:
            self._farewell.heard()

    def _take_go_away(self, _flags: int, stream: int, _payload: bytes) -> None:
        if stream:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "the end of a stream")

    def _take_window_update(self, _flags: int, stream: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a window update has four bytes")
        more = frames.uint(payload)
        if not stream:
            self._window += more
            if not more or self._window > frames.MAX_WINDOW_BYTES:
                raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR if more else ErrorCode.PROTOCOL_ERROR, "no window")
            self._more_room = True
            return
        lane = self._lanes.get(stream)
        if lane is None:
            self._check_closed(stream)
            return
        lane.window += more
        if not more or lane.window > frames.MAX_WINDOW_BYTES:
            self._reset(lane, ErrorCode.FLOW_CONTROL_ERROR if more else ErrorCode.PROTOCOL_ERROR)
        else:
            self._more_room = True

    def _check_closed(self, stream: int) -> None:
        """A frame for a stream that has ended may have been on its way; one for a stream that has not begun is an error."""
        if not stream or stream > self._last_stream or not stream & 1:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "the stream has not begun")

    # Streams end

    def _refuse(self, stream: int, code: ErrorCode) -> None:
        lane = self._lanes.get(stream)
        if lane is not None:
            self._reset(lane, code)
        else:
            self._count_reset()
            self.send(frames.rst_stream(stream, code))

    def _reset(self, lane: Lane, code: ErrorCode) -> None:
        """End a stream for what its client has done."""
        self._count_reset()
        self.send(frames.rst_stream(lane.stream, code))
        self._lanes.pop(lane.stream, None)
        lane.lost()
        self._after_stream()

    def _count_reset(self) -> None:
        self._resets += 1
        if self._resets > _RESETS + self._answered:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "too many streams are given up")

    def ended(self, lane: Lane, stream: int, *, reusable: bool) -> None:
        """A stream has been answered."""
        self._answered += 1
        self._lanes.pop(stream, None)
        if reusable:
            self._idle.append(lane)
        self._after_stream()

    def give_up(self, lane: Lane, code: ErrorCode) -> None:
        """End a stream whose response cannot be completed."""
        self.send(frames.rst_stream(lane.stream, code))
        self._lanes.pop(lane.stream, None)
        lane.stream = 0
        self._after_stream()

    def closed(self, lane: Lane) -> None:
        """A lane carries no more streams."""
        if lane in self._idle:
            self._idle.remove(lane)

    def _after_stream(self) -> None:
        if self._leaving and not self._lanes:
            self._loop.call_soon(self.leave_when_idle)

    # Windows

    def takes(self, lane: Lane, size: int) -> bool:
        """Whether all of this can be sent now; then it counts as sent."""
        if size > lane.window or size > self._window or not self._writable:
            return False
        lane.window -= size
        self._window -= size
        return True

    def room(self, lane: Lane, wanted: int) -> int:
        """How much of what is wanted can be sent now in one frame; it counts as sent."""
        size = min(wanted, lane.window, self._window, frames.FRAME_BYTES)
        if size <= 0 or not self._writable:
            return 0
        lane.window -= size
        self._window -= size
        return size

    def _pump(self) -> None:
        for lane in [lane for lane in self._lanes.values() if lane.waits]:
            if self._window <= 0 or not self._writable:
                return
            lane.pump()


_Connection = Http2Connection
_TAKE: Final[Mapping[int, Callable[[Http2Connection, int, int, bytes], None]]] = {
    frames.DATA: _Connection._take_data,
    frames.HEADERS: _Connection._take_headers,
    frames.PRIORITY: _Connection._take_priority,
    frames.RST_STREAM: _Connection._take_reset,
    frames.SETTINGS: _Connection._take_settings,
    frames.PUSH_PROMISE: _Connection._take_push,
    frames.PING: _Connection._take_ping,
    frames.GOAWAY: _Connection._take_go_away,
    frames.WINDOW_UPDATE: _Connection._take_window_update,
}
"""What is done with each kind of frame; others mean nothing to us."""
