"""The listener: TCP, TLS and HTTP/1.1 around one function that answers requests, from the first connection to the last."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from apiserver.acceptor import Acceptor
from apiserver.connection import Entry, Listener
from apiserver.doorway import Doorway, tls_protocol
from apiserver.listening_socket import bind
from apiserver.metrics.exposition import counter
from apiserver.turns import Turns

if TYPE_CHECKING:
    import socket
    import ssl

    from apiserver.config import ListenConfig
    from apiserver.metrics.exposition import Collect

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 2.0
_CUT_SECONDS = 0.01
_LOOK_SECONDS = 0.01
_LINGER_SECONDS = 0.5


class Server:
    """Accepts connections from `start` to `stop`."""

    def __init__(self, config: ListenConfig, tls: ssl.SSLContext, *, bound: socket.socket | None = None) -> None:
        """`bound` is a socket that has the address already, shared with other processes."""
        self._config = config
        self._tls = tls
        self._socket = bound
        self._turns = Turns()
        self._doorways: set[Doorway] = set()
        self._acceptor: Acceptor | None = None
        self._listener: Listener | None = None

    def bind(self) -> int:
        """Take the address, and return its port. Connections wait until `start`.

        Raises:
            StartupError: the address is taken, or not one of this machine.
        """
        if self._socket is None:
            self._socket = bind(self._config)
        return int(self._socket.getsockname()[1])

    async def start(self, entry: Entry, turns: Turns | None = None) -> None:
        """Accept connections on the address that `bind` took; `entry` answers each request of a peer.

        `turns` are shared with whatever else runs on this loop.
        """
        assert self._socket is not None
        self._turns = turns or self._turns
        self._listener = Listener(entry, self._config, self._turns)
        self._socket.listen(self._config.backlog)
        self._acceptor = Acceptor(self._socket, self._connect, self._turns)

    async def _connect(self, accepted: socket.socket) -> None:
        assert self._listener is not None
        loop = asyncio.get_running_loop()
        tls, shaken = tls_protocol(
            loop, self._listener.accept(), self._tls, handshake_seconds=self._config.handshake_seconds, shutdown_seconds=_CLOSE_SECONDS
        )
        _, doorway = await loop.connect_accepted_socket(lambda: Doorway(tls, shaken, self._turns, self._doorways), accepted)
        try:
            await shaken
        except BaseException:
            doorway.cut()
            raise

    @property
    def handshakes(self) -> int:
        """How many connections have been accepted and cannot be used yet."""
        return self._acceptor.going_on if self._acceptor is not None else 0

    def metrics(self) -> tuple[Collect, ...]:
        """What is told of handshakes: those that have succeeded are as many as connections."""
        return (
            counter("clrk_tls_handshakes_total", "TLS handshakes that have led to a connection.", self._succeeded),
            counter("apiserver_tls_handshake_errors_total", "TLS handshakes that have failed.", self._failed),
        )

    def _succeeded(self) -> int:
        return self._acceptor.succeeded if self._acceptor is not None else 0

    def _failed(self) -> int:
        return self._acceptor.failed if self._acceptor is not None else 0

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
                self._accept_no_more()
                await self._listener.left.wait()
                await self._listener.quiet.wait()
        except TimeoutError:
            if not self._listener.quiet.is_set():
                _log.warning("requests were still running %g seconds after the signal to stop; they are cut off", timeout_seconds)
        finally:
            self._accept_no_more()
            await self._acceptor.close()
            self._listener.pre_shutdown()
            seconds = _CLOSE_SECONDS if self._listener.quiet.is_set() else _CUT_SECONDS
            await self._listener.shutdown(seconds)
            await self._cut_off(after_seconds=seconds)

    async def _cut_off(self, *, after_seconds: float) -> None:
        """Cut the connections that are left, when their clients have taken what they were sent, or have had the time for it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(after_seconds):
                while any(doorway.unsent for doorway in self._doorways):  # noqa: ASYNC110 - nobody tells of it
                    await asyncio.sleep(_LOOK_SECONDS)
        for doorway in list(self._doorways):
            doorway.cut()
        await asyncio.sleep(0)  # until they are told
