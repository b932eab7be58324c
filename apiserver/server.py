"""The listener: TCP, TLS and HTTP/1.1 around one function that answers requests.

The low-level `aiohttp.web.Server`: no routing, no middlewares, no access log of its own. What the HTTP parser refuses is answered as a
Status too. A connection knows its peer's certificate from the handshake on; whether that counts is judged for each request, far below.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http_exceptions import LineTooLong
from multidict import CIMultiDict

from apiserver.config import StartupError
from apiserver.meta.errors import APIError
from apiserver.request import NO_PEER, ON_PREPARE, Peer
from apiserver.tls import presented_certificates

if TYPE_CHECKING:
    import ssl

    from aiohttp.streams import StreamReader

    from apiserver.config import ListenConfig

_log = logging.getLogger(__name__)

Entry = Callable[[web.BaseRequest, Peer], Awaitable[web.StreamResponse]]
_CLOSE_SECONDS = 2.0
_CUT_SECONDS = 0.01
_LINGER_SECONDS = 0.5
_ACCEPTED_PER_TURN = 4
_HANDSHAKES_TOGETHER = 32
_PATIENCE_SECONDS = 0.01
_ACCEPT_AGAIN_SECONDS = 0.5


class Connection(web.RequestHandler):
    """One connection: whom it is with, and whether a request is being answered on it."""

    def __init__(self, listener: _Listener, **settings: Any) -> None:
        super().__init__(listener, **settings)
        self.listener = listener
        self.peer = NO_PEER
        self.busy = False
        self.body: StreamReader | None = None
        """That of the request that was taken up last."""
        self.reading: asyncio.Task[object] | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the certificate that the client has shown."""
        tls = transport.get_extra_info("ssl_object")
        certificate, intermediates = presented_certificates(tls) if tls is not None else (None, ())
        address = transport.get_extra_info("peername")
        self.peer = Peer(certificate, f"{address[0]}:{address[1]}" if address else "", intermediates)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End a read, above all a watch, that nobody waits for any more. A write is finished: its client may ask what became of it."""
        super().connection_lost(exc)
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


def _status_body(code: int, message: str) -> bytes:
    return orjson.dumps(APIError(code, "BadRequest" if code < 500 else "InternalError", message).to_status()) + b"\n"


class _Request(web.BaseRequest):
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        # aiohttp adds a Server header to every response, and knows no way to leave it out: kube-apiserver has none.
        headers = response.headers
        del headers[hdrs.SERVER]
        # What follows a declined request for another protocol is not to be read as anything.
        declined = self._message.upgrade and response.status != 101
        if self.protocol.listener.parting or declined:  # type: ignore[attr-defined]
            headers[hdrs.CONNECTION] = "close"
            response.force_close()

        if on_prepare := self.get(ON_PREPARE):
            on_prepare(response)

class _Listener(web.Server):
    """aiohttp's server, with our connections, and a count of the requests that are being answered."""

    def __init__(self, entry: Entry, config: ListenConfig) -> None:
        super().__init__(self._answer, request_factory=self._make)
        self._entry = entry
        self.max_header_bytes = config.max_header_bytes
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
        self.parting = False
        """Whether each answer ends its connection."""
        self.quiet = asyncio.Event()
        """Set while no request is being answered, which is not kept up to date before `parting`."""
        self._busy = 0

    def __call__(self) -> Connection:
        return Connection(self, loop=self._loop, **self._settings)

    def _make(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> _Request:
        if message.method == "UNKNOWN":
            # aiohttp's stand-in for what its parser has refused says HTTP/1.0; we speak 1.1 to everybody.
            message = message._replace(version=HttpVersion11)
        return _Request(message, payload, protocol, writer, task, self._loop)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection: Any = request.protocol
        connection.busy = True
        connection.body = request.content
        if request.method == "GET":
            connection.reading = asyncio.current_task()
        self._busy += 1
        if self.parting:
            self.quiet.clear()
        try:
            return await self._entry(request, connection.peer)
        finally:
            connection.busy = False
            connection.reading = None
            self._busy -= 1
            if self.parting and not self._busy:
                self.quiet.set()

    def part(self) -> None:
        """End each connection with the next answer on it."""
        self.parting = True
        if not self._busy:
            self.quiet.set()

    def close_idle(self) -> None:
        """Close the connections on which nothing is being answered."""
        for connection in self.connections:
            if isinstance(connection, Connection) and not connection.busy:
                connection.close()


def _notice_dead_peers(listening: socket.socket, seconds: int) -> None:
    """Ask idle peers for a sign of life, and give up on those who owe one, or an acknowledgement, for so long. Accepted sockets inherit it.

    Source: https://man7.org/linux/man-pages/man7/tcp.7.html (TCP_KEEPIDLE, TCP_USER_TIMEOUT)
    """
    idle = max(seconds // 3, 1)
    probes = 8
    interval = max((seconds - idle) // probes, 1)
    options = {"TCP_KEEPIDLE": idle, "TCP_KEEPALIVE": idle, "TCP_KEEPINTVL": interval, "TCP_KEEPCNT": probes}
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (options | {"TCP_USER_TIMEOUT": seconds * 1000}).items():
        if hasattr(socket, name):  # macOS calls the first one by the second name, and has no TCP_USER_TIMEOUT
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class _Acceptor:
    """Takes connections from a listening socket, and shakes hands with some at a time.

    What the system has ready comes in one turn of the loop otherwise: half a thousand handshakes of a millisecond each, before which nobody
    else is served. A client that does not go on with its handshake holds others up for a moment only.
    """

    def __init__(self, listening: socket.socket, connect: Callable[[socket.socket], Awaitable[object]]) -> None:
        self._listening = listening
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._shaking: dict[asyncio.Task[None], socket.socket] = {}
        self._resumption: asyncio.TimerHandle | None = None
        self._loop.add_reader(listening, self._accept)

    @property
    def handshakes(self) -> int:
        """How many are going on."""
        return len(self._shaking)

    def _accept(self) -> None:
        """Take what is there, up to a share of this turn. In one step, so that no connection is ever taken by nobody."""
        for _ in range(_ACCEPTED_PER_TURN):
            try:
                accepted, _address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("cannot accept connections: %s", error)
                self._pause(_ACCEPT_AGAIN_SECONDS)
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._shake(accepted), name="handshake")
            self._shaking[task] = accepted
            task.add_done_callback(self._done)
        if len(self._shaking) >= _HANDSHAKES_TOGETHER:
            # When clients take their time, the next ones come in all the same, some hundreds in a second.
            self._pause(_PATIENCE_SECONDS)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._resumption = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        if self._resumption is not None:
            self._resumption.cancel()
            self._resumption = None
            self._loop.add_reader(self._listening, self._accept)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._shaking[task]
        if len(self._shaking) < _HANDSHAKES_TOGETHER:
            self._resume()

    def stop(self) -> None:
        """Accept no more. Handshakes that have begun go on. May be called twice."""
        self._loop.remove_reader(self._listening)
        if self._resumption is not None:
            self._resumption.cancel()
            self._resumption = None

    async def _shake(self, accepted: socket.socket) -> None:
        try:
            await self._connect(accepted)
        except OSError as error:  # of TLS too
            _log.debug("a handshake failed: %s", error)

    async def close(self) -> None:
        """Break off the handshakes that go on."""
        for accepted in self._shaking.values():
            # As if the client had: what has been built around the connection is torn down by its owners.
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        if self._shaking:
            await asyncio.wait(self._shaking)


class Server:
    """Accepts connections from `start` to `stop`."""

    def __init__(self, config: ListenConfig, tls: ssl.SSLContext) -> None:
        self._config = config
        self._tls = tls
        self._socket: socket.socket | None = None
        self._acceptor: _Acceptor | None = None
        self._listener: _Listener | None = None

    def bind(self) -> int:
        """Take the address, and return its port. Connections wait until `start`.

        Raises:
            StartupError: the address is taken, or not one of this machine.
        """
        host, port = self._config.bind_address, self._config.secure_port
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._config.dead_peer_seconds:
                _notice_dead_peers(self._socket, self._config.dead_peer_seconds)
            if family == socket.AF_INET6:
                # `::` means every address, IPv4 as well, as in Go.
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self._socket.bind(address)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            if self._socket is not None:
                self._socket.close()
            raise StartupError(f"cannot listen on {host} port {port}: {reason}") from error
        return int(self._socket.getsockname()[1])

    async def start(self, entry: Entry) -> None:
        """Accept connections on the address that `bind` took; `entry` answers each request of a peer."""
        assert self._socket is not None
        self._listener = _Listener(entry, self._config)
        self._socket.setblocking(False)
        self._socket.listen(self._config.backlog)
        self._acceptor = _Acceptor(self._socket, self._connect)

    async def _connect(self, accepted: socket.socket) -> None:
        assert self._listener is not None
        await asyncio.get_running_loop().connect_accepted_socket(
            self._listener,
            accepted,
            ssl=self._tls,
            ssl_handshake_timeout=self._config.handshake_seconds,
            ssl_shutdown_timeout=_CLOSE_SECONDS,
        )

    @property
    def handshakes(self) -> int:
        """How many connections have been accepted and cannot be used yet."""
        return self._acceptor.handshakes if self._acceptor is not None else 0

    def _accept_no_more(self) -> None:
        assert self._acceptor is not None
        assert self._socket is not None
        if self._socket.fileno() >= 0:
            self._acceptor.stop()
            self._socket.close()

    def part(self) -> None:
        """End each connection with the next answer on it: new ones lead elsewhere by now.

        A client may send a request into an idle connection while that is being closed, and cannot know then what became of it. So those
        that are in use end with answers that clients wait for, and `stop` lingers before it closes the others: above all those of
        watches that have just ended, which their clients take up again.
        """
        assert self._listener is not None
        self._listener.part()

    async def stop(self, *, timeout_seconds: float, accept_until_quiet: bool = False) -> None:
        """Accept no more connections, finish the running requests, and close. What takes longer than the time-out is cut off.

        With `accept_until_quiet` connections are accepted for as long as that takes; each serves one request, or none.
        Cancelling it cuts everything off at once.
        """
        assert self._acceptor is not None
        assert self._listener is not None
        linger_seconds = _LINGER_SECONDS if self._listener.parting else 0.0
        if not accept_until_quiet:
            self._accept_no_more()
        self._listener.part()
        if not linger_seconds:
            self._listener.close_idle()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._listener.quiet.wait()
                await asyncio.sleep(linger_seconds)
                await self._listener.quiet.wait()
        except TimeoutError:
            _log.warning("requests were still running %g seconds after the signal to stop; they are cut off", timeout_seconds)
        finally:
            self._accept_no_more()
            await self._acceptor.close()
            self._listener.pre_shutdown()
            await self._listener.shutdown(_CLOSE_SECONDS if self._listener.quiet.is_set() else _CUT_SECONDS)
