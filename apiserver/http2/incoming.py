"""What a client's frames mean: for its streams, for what is sent to it, and for a farewell. Knows no transport.

Policy: heads are as large as over HTTP/1.1. What else a client may cost is bounded where it arises: in `streams`, `outgoing` and `stream`,
in `http2.frame_reader` and `http2.header_decoder`.
Source: https://www.rfc-editor.org/rfc/rfc9113#section-6
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from apiserver.http2.heads import BadHead, Field, RequestHead, make_field
from apiserver.http2.settings import initial_window
from apiserver.http2.stream import WINDOW_BYTES
from apiserver.http2.streams import MOST_STREAMS
from http2 import frames
from http2.frame_reader import FrameReader
from http2.frames import ErrorCode, ProtocolError
from http2.header_decoder import HeaderDecoder

if TYPE_CHECKING:
    from apiserver.http2.farewell import Farewell
    from apiserver.http2.outgoing import Outgoing
    from apiserver.http2.stream import Stream
    from apiserver.http2.streams import Streams

CONNECTION_WINDOW_BYTES: Final = WINDOW_BYTES * MOST_STREAMS


class Incoming:
    """Reads what one client sends."""

    def __init__(self, streams: Streams, outgoing: Outgoing, *, max_header_bytes: int, max_headers: int) -> None:
        self.used = True
        """Whether the client has asked for something since this was last set to False."""
        self.farewell: Farewell | None = None
        """What is told of what concerns the end of the connection, once that is wanted."""
        self._streams = streams
        self._outgoing = outgoing
        self._max_headers = max_headers
        self._headers = HeaderDecoder(make_field, limit_bytes=max_header_bytes)
        self._frames = FrameReader(header_block_bytes=max_header_bytes)
        self._begun = b""
        self._preface_due = self._settings_due = True
        self._received_bytes = 0
        self._more_room = False

    def take(self, data: bytes) -> None:
        """Take up the frames that are whole.

        Raises:
            ProtocolError: the client broke the rules, or costs too much.
        """
        last_id = self._streams.last_id
        if self._preface_due:
            data = self._behind_preface(data)
        for kind, flags, id_, payload in self._frames.feed(data):
            if self._settings_due and (kind != frames.SETTINGS or flags & frames.ACK):
                raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "no settings behind the preface")
            self._settings_due = False
            take = _TAKE.get(kind)
            if take is not None:
                take(self, flags, id_, payload)
        if self._more_room:
            # Not for each of the client's words: what they allow together goes out in larger pieces.
            self._more_room = False
            self._streams.pump()
        if self._streams.last_id != last_id:
            # Most of what has just begun is answered in its first step, and leaves in the same turn of the loop.
            self._outgoing.flush_soon()

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
        if self._received_bytes >= CONNECTION_WINDOW_BYTES // 2:
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
            self.used = True
            if self.farewell is not None:
                self.farewell.begun()
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
        if self.farewell is not None:
            self.farewell.given_up()
        stream = self._streams.get(id_)
        if stream is not None:
            self._streams.given_up(stream)

    def _take_settings(self, flags: int, id_: int, payload: bytes) -> None:
        if id_:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "settings of a stream")
        if flags & frames.ACK:
            if payload:
                raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "settings are acknowledged, and set")
            if self._outgoing.acknowledged() and self.farewell is not None:
                self.farewell.acknowledged()
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
            self.used = True
            self._outgoing.send(frames.frame(frames.PING, frames.ACK, 0, payload))
        elif self.farewell is not None:
            self.farewell.heard()

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


_TAKE: Final[Mapping[int, Callable[[Incoming, int, int, bytes], None]]] = {
    frames.DATA: Incoming._take_data,
    frames.HEADERS: Incoming._take_headers,
    frames.PRIORITY: Incoming._take_priority,
    frames.RST_STREAM: Incoming._take_reset,
    frames.SETTINGS: Incoming._take_settings,
    frames.PUSH_PROMISE: Incoming._take_push,
    frames.PING: Incoming._take_ping,
    frames.GOAWAY: Incoming._take_go_away,
    frames.WINDOW_UPDATE: Incoming._take_window_update,
}
"""What is done with each kind of frame; others mean nothing to us."""
