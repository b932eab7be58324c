"""A connection: aiohttp's side of it, with whom it is, and whether a request is being answered on it.

The low-level `aiohttp.web.Server`: no routing, no middlewares, no access log of its own. What the HTTP parser refuses is answered as a
Status too. A connection knows its peer's certificate from the handshake on; whether that counts is judged for each request, far below.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http_exceptions import LineTooLong
from multidict import CIMultiDict

from apiserver.http2.connection import Http2Connection
from apiserver.http2.response_writer import ResponseWriter
from apiserver.meta.errors import APIError
from apiserver.request import NO_PEER, ON_PREPARE, Peer
from apiserver.tls import presented_certificates

if TYPE_CHECKING:
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.streams import StreamReader

    from apiserver.config import ListenConfig
    from apiserver.http2.stream import Stream
    from apiserver.turns import Turns

_log = logging.getLogger(__name__)

Entry = Callable[[web.BaseRequest, Peer], Awaitable[web.StreamResponse]]
_REMEMBERED_PEERS = 256


class Connection(web.RequestHandler):
    """One connection: whom it is with, and whether a request is being answered on it."""

    def __init__(self, listener: Listener, **settings: Any) -> None:
        super().__init__(listener, **settings)
        self.listener = listener
        self.peer = NO_PEER
        self.busy = False
        self.body: StreamReader | None = None
        """That of the request that was taken up last."""
        self.reading: asyncio.Task[object] | None = None
        self._head_bytes = 0

    @property
    def parting(self) -> bool:
        """Whether each answer ends its connection."""
        return self.listener.parting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember whom it is with."""
        self.peer = self.listener.peer(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End a read, above all a watch, that nobody waits for any more. A write is finished: its client may ask what became of it."""
        self.listener.turns.call(self._end, exc)

    def _end(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.body = None  # which knows the connection: what is left must be no cycle, for which the collector would have to look
        if self.reading is not None:
            self.reading.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse, and refuse heads of requests that are too large as a whole: the parser bounds only each line and their number."""
        heads = self._request_count
        super().data_received(data)
        if self._payload_parser is not None:  # another protocol has been switched to
            return
        if self._request_count != heads:
            self._head_bytes = 0
        elif not self._within_body():
            self._head_bytes += len(data)
            if self._head_bytes > self.listener.max_header_bytes:
                self._refuse_head()

    def _within_body(self) -> bool:
        """Whether what comes belongs to the body of the last request, even one that has been answered without it."""
        body = self._messages[-1][1] if self._messages else self.body
        return body is not None and not body.is_eof()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer what the HTTP parser refuses: a Status, then the end of the connection."""
        if isinstance(exc, ConnectionError):
            # The client has gone: nobody to answer, and nothing that failed here.
            raise exc
        if isinstance(exc, LineTooLong) or message == "Too many headers received":
            status, text = 431, "the head of the request is too large"
        else:
            status, text = (400, "the request is not well-formed HTTP") if status < 500 else (500, "the request could not be answered")
        if status == 500:
            _log.error("a request failed outside of the chain", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionAbortedError("the response had begun")
        response = web.Response(status=status, body=_status_body(status, text), headers=_ERROR_HEADERS)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **settings: Any) -> None:
        """Tell of what fails outside of the chain; that a client has gone while the rest of its body was read away is no failure."""
        if self.transport is not None:
            super().log_exception(*args, **settings)

    def _refuse_head(self) -> None:
        if self.transport is not None:
            body = _status_body(431, "the head of the request is too large")
            head = f"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            self.transport.write(f"{head}Cache-Control: no-cache, private\r\nConnection: close\r\n\r\n".encode() + body)
        self.force_close()


_ERROR_HEADERS = CIMultiDict({"Content-Type": "application/json", "Cache-Control": "no-cache, private"})


def _nothing_known(_certificate: bytes | None, _intermediates: tuple[bytes, ...]) -> dict[object, Any]:
    return {}


def _status_body(code: int, message: str) -> bytes:
    return orjson.dumps(APIError(code, "BadRequest" if code < 500 else "InternalError", message).to_status()) + b"\n"


class _Request(web.BaseRequest):
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        # aiohttp adds a Server header to most responses, and knows no way to leave it out: kube-apiserver has none.
        headers = response.headers
        headers.pop(hdrs.SERVER, None)
        # What follows a declined request for another protocol is not to be read as anything.
        declined = self._message.upgrade and response.status != 101
        if self.protocol.parting or declined:  # type: ignore[attr-defined] # a Connection or a Stream, always
            headers[hdrs.CONNECTION] = "close"
            response.force_close()
        # Few requests keep anything, and to look for what is not there takes an exception.
        if len(self) and (on_prepare := self.get(ON_PREPARE)):
            on_prepare(response)


class _Negotiated(asyncio.Protocol):
    """Stands for a connection until the handshake has found out what it speaks."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        tls = transport.get_extra_info("ssl_object")
        speaks_http2 = tls is not None and tls.selected_alpn_protocol() == "h2"
        protocol: Any = self._listener.multiplexed(transport) if speaks_http2 else self._listener()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if speaks_http2 and self._listener.parting:
            protocol.leave()


class Listener(web.Server):
    """aiohttp's server, with our connections, and a count of the requests that are being answered."""

    def __init__(self, entry: Entry, config: ListenConfig, turns: Turns) -> None:
        super().__init__(self._answer, request_factory=self._make)
        self._entry = entry
        self.turns = turns
        self.max_header_bytes = config.max_header_bytes
        self._max_headers = config.max_headers
        self._idle_seconds = config.keep_alive_seconds
        self._settings = {
            "keepalive_timeout": config.keep_alive_seconds,
            "max_line_size": config.max_header_bytes,
            "max_field_size": config.max_header_bytes,
            "max_headers": config.max_headers,
            "access_log": None,
            # How long the rest of a body is read that nobody wanted, so that its sender gets to see the answer.
            "lingering_time": 2.0,
            # A compressed body is refused where bodies are read; nothing is unpacked before somebody is known to be allowed to send it.
            "auto_decompress": False,
        }
        self.identities = lru_cache(maxsize=_REMEMBERED_PEERS)(_nothing_known)
        """What is known of whoever shows these certificates. Somebody who comes again, as the aggregator does all the time, is not verified
        again: that would cost as much as two requests."""
        self.parting = False
        """Whether each answer ends its connection."""
        self.quiet = asyncio.Event()
        """Set while no request is being answered, which is not kept up to date before `parting`."""
        self._busy = 0
        self._multiplexed: set[Http2Connection] = set()
        self.left = asyncio.Event()
        """Set while there is no connection of HTTP/2. They close by themselves after `part`, when nothing runs on them."""
        self.left.set()

    def __call__(self) -> Connection:
        """Make what handles a connection of HTTP/1.1."""
        return Connection(self, loop=self._loop, **self._settings)

    def accept(self) -> asyncio.Protocol:
        """Make what handles a connection that has been accepted, whatever it will speak."""
        return _Negotiated(self)

    def peer(self, transport: asyncio.BaseTransport) -> Peer:
        """The other end, with the certificate that it has shown."""
        tls = transport.get_extra_info("ssl_object")
        certificate, intermediates = presented_certificates(tls) if tls is not None else (None, ())
        address = transport.get_extra_info("peername")
        identities = self.identities(certificate, intermediates)
        return Peer(certificate, f"{address[0]}:{address[1]}" if address else "", intermediates, identities)

    def multiplexed(self, transport: asyncio.BaseTransport) -> Http2Connection:
        """Make what handles a connection of HTTP/2."""
        connection = Http2Connection(
            self._serve,
            self.peer(transport),
            max_header_bytes=self.max_header_bytes,
            max_headers=self._max_headers,
            idle_seconds=self._idle_seconds,
            on_gone=self._forget,
        )
        self._multiplexed.add(connection)
        self.left.clear()
        return connection

    def _make(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> _Request:
        if message.method == "UNKNOWN":
            # aiohttp's stand-in for what its parser has refused says HTTP/1.0; we speak 1.1 to everybody.
            message = message._replace(version=HttpVersion11)
        return _Request(message, payload, protocol, writer, task, self._loop)

    async def _serve(self, message: RawRequestMessage, content: Any, stream: Stream) -> None:
        """Answer what has come in a stream of HTTP/2."""
        writer = ResponseWriter(stream, head_only=message.method == "HEAD")
        # What aiohttp wants of a connection, the stream is; aiohttp names its own classes only.
        request = _Request(message, content, stream, writer, stream.task, self._loop)  # type: ignore[arg-type]
        try:
            self._take_up()
            try:
                response = await self._entry(request, stream.peer)
            finally:
                self._done()
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            # The client has gone, or cannot be told how its response was to go on.
            return
        except Exception:
            # A supervisor: what fails here is told, and ends one stream.
            _log.exception("a request failed outside of the chain")

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection: Any = request.protocol
        connection.busy = True
        connection.body = request.content
        if request.method == "GET":
            connection.reading = asyncio.current_task()
        self._take_up()
        try:
            return await self._entry(request, connection.peer)
        finally:
            connection.busy = False
            connection.reading = None
            self._done()

    def _take_up(self) -> None:
        self._busy += 1
        if self.parting:
            self.quiet.clear()

    def _done(self) -> None:
        self._busy -= 1
        if self.parting and not self._busy:
            self.quiet.set()

    def part(self) -> None:
        """End each connection with the next answer on it."""
        self.parting = True
        for multiplexed in list(self._multiplexed):
            multiplexed.leave()
        if not self._busy:
            self.quiet.set()

    def close_idle(self) -> None:
        """Close the connections on which nothing is being answered."""
        for connection in self.connections:
            if isinstance(connection, Connection) and not connection.busy:
                connection.close()

    def pre_shutdown(self) -> None:
        """Close what waits for a next request."""
        for connection in self.connections:
            connection.close()

    async def shutdown(self, timeout: float | None = None) -> None:
        """Cut off what is still answered, after so many seconds, and close everything."""
        await asyncio.gather(super().shutdown(timeout), *(multiplexed.shutdown(timeout) for multiplexed in self._multiplexed))

    def _forget(self, multiplexed: Http2Connection) -> None:
        self._multiplexed.discard(multiplexed)
        if not self._multiplexed:
            self.left.set()
