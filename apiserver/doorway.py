"""Stands between a socket and its TLS: what has come waits there for its turn.

The loop calls us for every socket that has something to read, one after the other, before anything else is done: a thousand handshakes,
requests or ends of connections in one pass. To decrypt and to act on what has come takes a tenth of a millisecond and more; to leave
it in its buffer, and to read no more from this socket meanwhile, takes some microseconds.
"""

from __future__ import annotations

import asyncio
import asyncio.sslproto
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    from apiserver.turns import Turns

_FAREWELL_BYTES = 32
"""More than the alert that ends TLS takes, and less than any request."""


class Doorway(asyncio.BufferedProtocol):
    """The socket's protocol; behind it is the loop's own protocol for TLS."""

    def __init__(self, tls: Any, shaken: asyncio.Future[None], turns: Turns, connected: set[Doorway]) -> None:
        """`tls` and `shaken` come from `tls_protocol`; it is one of `connected` until its connection is lost."""
        self._tls = tls
        self._shaken = shaken
        self._turns = turns
        self._connected = connected
        self._transport: asyncio.Transport
        # Its own buffer, into which nothing else is written while what is there waits.
        self.get_buffer = tls.get_buffer  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the client's first word."""
        self._transport = transport  # type: ignore[assignment] # uvloop's is none by class
        self._connected.add(self)
        self._tls.connection_made(transport)

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has come, or have it wait."""
        if self._turns.free:
            self._tls.buffer_updated(nbytes)
        else:
            self._transport.pause_reading()
            # What may be a request goes before those who come or leave.
            self._turns.queue(self._take, nbytes, urgent=self._shaken.done() and nbytes > _FAREWELL_BYTES)

    def _take(self, nbytes: int) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._tls.buffer_updated(nbytes)

    def eof_received(self) -> bool:
        """Take that no more comes, or have it wait."""
        self._turns.call(self._end)
        return True  # the transport stays until TLS has been told

    def _end(self) -> None:
        if not self._transport.is_closing():
            self._tls.eof_received()
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell at once: nothing can be written any more. What that means for those above has its turn there."""
        self._connected.discard(self)
        self._tls.connection_lost(exc)

    @property
    def unsent(self) -> bool:
        """Whether the client has not taken all that it was sent."""
        return self._transport.get_write_buffer_size() > 0

    def cut(self) -> None:
        """End the connection, whatever waits."""
        self._transport.abort()

    def pause_writing(self) -> None:
        """Have those above write no more for now."""
        self._tls.pause_writing()

    def resume_writing(self) -> None:
        """Have them go on."""
        self._tls.resume_writing()


def tls_protocol(
    loop: asyncio.AbstractEventLoop,
    protocol: asyncio.BaseProtocol,
    context: ssl.SSLContext,
    *,
    handshake_seconds: float,
    shutdown_seconds: float,
) -> tuple[Any, asyncio.Future[None]]:
    """Return the protocol that the loop itself would put between a socket that it has accepted and `protocol`, and what its handshake ends.

    Neither loop offers it by a public name; both know it by the same one.
    """
    shaken: asyncio.Future[None] = loop.create_future()
    made = _tls_class(loop)(
        loop,
        protocol,
        context,
        shaken,
        server_side=True,
        ssl_handshake_timeout=handshake_seconds,
        ssl_shutdown_timeout=shutdown_seconds,
    )
    return made, shaken


def _tls_class(loop: asyncio.AbstractEventLoop) -> Any:
    if type(loop).__module__.startswith("uvloop"):
        from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

        return SSLProtocol
    return asyncio.sslproto.SSLProtocol
