"""A connection of HTTP/2, from its first words to its last.

Source: https://www.rfc-editor.org/rfc/rfc9113
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from apiserver.http2.farewell import Farewell
from apiserver.http2.incoming import CONNECTION_WINDOW_BYTES, Incoming
from apiserver.http2.outgoing import Outgoing
from apiserver.http2.stream import WINDOW_BYTES, Serve
from apiserver.http2.streams import MOST_STREAMS, Streams
from http2 import frames
from http2.frames import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from apiserver.request import Peer

_log = logging.getLogger(__name__)


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
        self.transport: asyncio.Transport
        self._peer = peer
        self._serve = serve
        self._max_header_bytes = max_header_bytes
        self._max_headers = max_headers
        self._idle_seconds = idle_seconds
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._outgoing: Outgoing
        self._streams: Streams
        self._incoming: Incoming
        self._leaving = self._lost = False
        self._watchdog: asyncio.TimerHandle | None = None
        self._farewell: Farewell | None = None

    # The connection below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say how we want to be spoken to."""
        self.transport = transport  # type: ignore[assignment] # uvloop's is none by class
        self._outgoing = Outgoing(self.transport)
        self._streams = Streams(self._serve, self._peer, self._outgoing, on_idle=self._look_who_is_left)
        self._incoming = Incoming(self._streams, self._outgoing, max_header_bytes=self._max_header_bytes, max_headers=self._max_headers)
        self._outgoing.set(
            {
                frames.MAX_CONCURRENT_STREAMS: MOST_STREAMS,
                frames.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
                frames.MAX_HEADER_LIST_SIZE: self._max_header_bytes,
            }
        )
        self._outgoing.send(frames.window_update(0, CONNECTION_WINDOW_BYTES - frames.WINDOW_BYTES))
        self._watchdog = self._loop.call_later(self._idle_seconds, self._look)

    def _look(self) -> None:
        """Close a connection on which nothing has happened since the last look."""
        if not self._streams and not self._incoming.used:
            self.leave()
            return
        self._incoming.used = False
        self._watchdog = self._loop.call_later(self._idle_seconds, self._look)

    def data_received(self, data: bytes) -> None:
        """Take up the frames that are whole."""
        if self.transport.is_closing():
            return
        try:
            self._incoming.take(data)
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
            self._farewell = self._incoming.farewell = Farewell(self, used=self._streams.last_id > 0)

    def hold(self) -> tuple[int, int]:
        """Send nothing of what is written from now on; return how many streams the client has open, and how many it may."""
        self._outgoing.hold()
        return len(self._streams), MOST_STREAMS

    def limit(self, streams: int) -> None:
        """Tell the client at once how many streams it may have; more are not refused."""
        self._outgoing.set({frames.MAX_CONCURRENT_STREAMS: streams})

    @property
    def keeps_to_limit(self) -> bool:
        """Whether the client has said that it keeps to what it was told."""
        return not self._outgoing.unacknowledged_settings

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
                # They know this connection: what is left must be no cycle, for which the collector would have to look.
                self._streams.on_idle = self._incoming.farewell = self._farewell = None
        elif self._leaving and not len(self._streams):
            self._loop.call_soon(self.leave_when_idle)
