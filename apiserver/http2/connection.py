"""A connection of HTTP/2, from its first words to its last: what its frames mean.

Policy: heads are as large as over HTTP/1.1; unread bodies of 256 KiB a stream, as in kube-apiserver. What else a client may cost is said
where it arises: `streams`, `outgoing`, and `http2.frame_reader` and `header_decoder`.
Source: https://www.rfc-editor.org/rfc/rfc9113
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from apiserver.http2.farewell import Farewell
from apiserver.http2.heads import BadHead, Field, RequestHead, make_field
from apiserver.http2.outgoing import Outgoing
from apiserver.http2.settings import initial_window
from apiserver.http2.stream import WINDOW_BYTES, Serve, Stream
from apiserver.http2.streams import MOST_STREAMS, Streams
from http2 import frames
from http2.frame_reader import FrameReader
from http2.frames import ErrorCode, ProtocolError
from http2.header_decoder import HeaderDecoder

if TYPE_CHECKING:
    from apiserver.request import Peer

_log = logging.getLogger(__name__)

_CONNECTION_WINDOW: Final = WINDOW_BYTES * MOST_STREAMS


class Http2Connection(asyncio.Protocol):
    """One connection."""

    def __init__(
        self,
        serve: Serve,
        peer: Peer,
        *,
        max_header_bytes: int,
        max_headers: int,
        idle_seconds: float,
        on_gone: Callable[[Http2Connection], None],
    ) -> None:
        """`on_gone` is called when the connection is lost, and nobody works for it any more."""
        self._peer = peer
        self.transport: asyncio.Transport
        self.unacknowledged_settings = 0
        """How many of ours the client has not said yet that it keeps to."""
        self._serve = serve
        self._max_header_bytes = max_header_bytes
        self._max_headers = max_headers
        self._idle_seconds = idle_seconds
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._headers = HeaderDecoder(make_field, limit_bytes=max_header_bytes)
        self._frames = FrameReader(header_block_bytes=max_header_bytes)
        self._begun = b""
        self._preface_due = self._settings_due = True
        self._outgoing: Outgoing
        self._streams: Streams
        self._received_bytes = 0
        self._more_room = False
        self._leaving = self._lost = False
        self._used = True
        self._watchdog: asyncio.TimerHandle | None = None
        self._farewell: Farewell | None = None

    # The connection below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say how we want to be spoken to."""
        self.transport = transport  # type: ignore[assignment] # uvloop's is none by class
        self._outgoing = Outgoing(self.transport)
        self._streams = Streams(self._serve, self._peer, self._outgoing, on_idle=self._look_who_is_left)
        self.unacknowledged_settings += 1
        said = {
            frames.MAX_CONCURRENT_STREAMS: MOST_STREAMS,
            frames.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
            frames.MAX_HEADER_LIST_SIZE: self._max_header_bytes,
        }
        self._outgoing.send(frames.settings_frame(said) + frames.window_update(0, _CONNECTION_WINDOW - frames.WINDOW_BYTES))
        self._watchdog = self._loop.call_later(self._idle_seconds, self._look)

    def _look(self) -> None:
        """Close a connection on which nothing has happened since the last look."""
        if not self._streams and not self._used:
            self.leave()
            return
        self._used = False
        self._watchdog = self._loop.call_later(self._idle_seconds, self._look)

    def data_received(self, data: bytes) -> None:
        """Take up the frames that are whole."""
        if self.transport.is_closing():
            return
        last_id = self._streams.last_id
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
                self._streams.pump()
            if self._streams.last_id != last_id:
                # Most of what has just begun is answered in its first step, and leaves in the same turn of the loop.
                self._outgoing.flush_soon()
        except ProtocolError as error:
            self._break(error.code, str(error))

    def eof_received(self) -> None:
        """The client sends nothing any more; that ends the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all who still answer."""
        self._leaving = self._lost = True
        for ending in (self._watchdog, self._farewell):
            if ending is not None:
                ending.cancel()
        self._streams.lose()
        self._look_who_is_left()

    def pause_writing(self) -> None:
        """Let everything wait; read nothing that would have to be answered."""
        self._outgoing.pause()

    def resume_writing(self) -> None:
        """Go on."""
        self._outgoing.resume()
        self._streams.pump()

    # The end

    def leave(self) -> None:
        """Ask the client to begin no more streams; close when those that there are have ended.

        What it begins before it hears of that is still answered, and so is what it begins in spite of it: it cannot send a body again.
        """
        if self._farewell is None and not self._leaving:
            self._farewell = Farewell(self, used=self._streams.last_id > 0)

    def hold(self) -> tuple[int, int]:
        """Send nothing of what is written from now on; return how many streams the client has open, and how many it may."""
        self._outgoing.hold()
        return len(self._streams), MOST_STREAMS

    def limit(self, streams: int) -> None:
        """Tell the client at once how many streams it may have; more are not refused."""
        self.unacknowledged_settings += 1
        self._outgoing.send_past(frames.settings_frame({frames.MAX_CONCURRENT_STREAMS: streams}))

    def say_farewell(self) -> None:
        """Send what was held, behind the word that no more streams are wanted: none is refused yet."""
        ping = frames.frame(frames.PING, 0, 0, bytes(8))
        self._outgoing.release(frames.goaway(frames.MAX_WINDOW_BYTES, ErrorCode.NO_ERROR) + ping)
        self._streams.pump()

    def leave_when_idle(self) -> None:
        """Close, at once or with the last stream."""
        self._leaving = True
        if not self._streams:
            self._outgoing.send(frames.goaway(self._streams.last_id, ErrorCode.NO_ERROR))
            self._outgoing.close()

    async def shutdown(self, timeout_seconds: float | None) -> None:
        """Close now; cut off what still runs after so many seconds."""
        self._outgoing.close()
        await self._streams.cut_off(after_seconds=timeout_seconds)

    def _break(self, code: ErrorCode, reason: str) -> None:
        _log.debug("a connection of %s is ended: %s", self._peer.address, reason)
        self._leaving = True
        self._outgoing.send(frames.goaway(self._streams.last_id, code))
        self._outgoing.close()

    def _look_who_is_left(self) -> None:
        if self._lost:
            if not self._streams.worked_for:
                self._on_gone(self)
        elif self._leaving and not len(self._streams):
            self._loop.call_soon(self.leave_when_idle)

    # What comes

    def _behind_preface(self, data: bytes) -> bytes:
        """What comes behind the words that every connection begins with, as far as it has come."""
        begun = self._begun + data
        self._begun = begun[: len(frames.PREFACE)]
        if not frames.PREFACE.startswith(self._begun):
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "no preface")
        self._preface_due = self._begun != frames.PREFACE
        return begun[len(frames.PREFACE) :]

    def _take_data(self, flags: int, id_: int, payload: bytes) -> None:
        size, ended = len(payload), bool(flags & frames.END_STREAM)
        content = frames.without_padding(payload) if flags & frames.PADDED else payload
        if not content and not ended:
            self._streams.count_nuisance()
        self._received_bytes += size
        if self._received_bytes >= _CONNECTION_WINDOW // 2:
            self._outgoing.send(frames.window_update(0, self._received_bytes))
            self._received_bytes = 0
        stream = self._streams.get(id_)
        if stream is None:
            self._outgoing.send(frames.rst_stream(id_, ErrorCode.STREAM_CLOSED))
        elif (wrong := stream.feed(content, size, ended=ended)) is not None:
            self._streams.refuse(id_, wrong)

    def _take_headers(self, flags: int, id_: int, payload: bytes) -> None:
        if not id_ & 1:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "clients' streams have odd numbers")
        fields, ended = self._headers.decode(payload), bool(flags & frames.END_STREAM)
        if id_ > self._streams.last_id:
            self._streams.last_id = id_
            self._used = True
            if self._farewell is not None:
                self._farewell.begun()
            self._begin(id_, fields, ended=ended)
        elif (stream := self._streams.get(id_)) is not None:
            self._take_trailers(stream, fields, ended=ended)
        else:
            raise ProtocolError(ErrorCode.STREAM_CLOSED, "the stream has been closed")

    def _begin(self, id_: int, fields: list[Field], *, ended: bool) -> None:
        if self._streams.full:
            self._streams.refuse(id_, ErrorCode.REFUSED_STREAM)
            return
        if len(fields) > self._max_headers:
            self._streams.refuse(id_, ErrorCode.ENHANCE_YOUR_CALM)
            return
        try:
            head = RequestHead(fields, ended=ended)
        except BadHead:
            self._streams.refuse(id_, ErrorCode.PROTOCOL_ERROR)
        else:
            self._streams.begin(id_, head, ended=ended)

    def _take_trailers(self, stream: Stream, fields: list[Field], *, ended: bool) -> None:
        """End a body; nobody here reads what stands behind it."""
        wrong: ErrorCode | None = ErrorCode.PROTOCOL_ERROR
        if stream.request_ended or (ended and not any(kind[:1] == ":" for kind, _ in fields)):
            wrong = stream.feed(b"", 0, ended=True)
        if wrong is not None:
            self._streams.refuse(stream.id, wrong)

    def _take_priority(self, _flags: int, id_: int, payload: bytes) -> None:
        if not id_:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "no stream")
        if len(payload) != 5:
            self._streams.refuse(id_, ErrorCode.FRAME_SIZE_ERROR)
        elif frames.uint(payload) == id_:
            self._streams.refuse(id_, ErrorCode.PROTOCOL_ERROR)

    def _take_reset(self, _flags: int, id_: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a reset has four bytes")
        if self._farewell is not None:
            self._farewell.given_up()
        stream = self._streams.get(id_)
        if stream is not None:
            self._streams.given_up(stream)

    def _take_settings(self, flags: int, id_: int, payload: bytes) -> None:
        if id_:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "settings of a stream")
        if flags & frames.ACK:
            if payload:
                raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "settings are acknowledged, and set")
            self.unacknowledged_settings = max(0, self.unacknowledged_settings - 1)
            if self._farewell is not None and not self.unacknowledged_settings:
                self._farewell.acknowledged()
            return
        # Nobody has to say it again and again.
        self._streams.count_nuisance()
        window = initial_window(payload)
        if window is not None:
            self._streams.set_window(window)
            self._more_room = True
        self._outgoing.send(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _take_push(self, _flags: int, _id: int, _payload: bytes) -> None:
        raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "clients push nothing")

    def _take_ping(self, flags: int, id_: int, payload: bytes) -> None:
        if id_:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a ping of a stream")
        if len(payload) != 8:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a ping has eight bytes")
        if not flags & frames.ACK:
            self._used = True
            self._outgoing.send(frames.frame(frames.PING, frames.ACK, 0, payload))
        elif self._farewell is not None:
            self._farewell.heard()

    def _take_go_away(self, _flags: int, id_: int, _payload: bytes) -> None:
        if id_:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "the end of a stream")

    def _take_window_update(self, _flags: int, id_: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a window update has four bytes")
        more = frames.uint(payload)
        if not id_:
            self._outgoing.grow(more)
            self._more_room = True
            return
        stream = self._streams.get(id_)
        if stream is None:
            return
        stream.window += more
        if not more or stream.window > frames.MAX_WINDOW_BYTES:
            self._streams.refuse(id_, ErrorCode.FLOW_CONTROL_ERROR if more else ErrorCode.PROTOCOL_ERROR)
        else:
            self._more_room = True


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
