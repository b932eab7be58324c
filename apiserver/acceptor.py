"""Takes connections from a listening socket, some at a time: one after the other while those that there are have to wait for their turns.

What the system has ready comes in one pass of the loop otherwise, half a thousand connections, and the handshakes of all of them are to be
done at the same time. A client that does not go on with its handshake holds up nobody.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apiserver.turns import Turns

_log = logging.getLogger(__name__)

_ACCEPTED_PER_PASS = 4
_ACCEPT_AGAIN_SECONDS = 0.5


class Acceptor:
    """Takes connections from a socket, which is listening, until `stop`."""

    def __init__(self, listening: socket.socket, connect: Callable[[socket.socket], Awaitable[object]], turns: Turns) -> None:
        self._listening = listening
        self._connect = connect
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._shaking: dict[asyncio.Task[None], socket.socket] = {}
        self._resumption: asyncio.TimerHandle | None = None
        self.succeeded = 0
        """How many handshakes have led to a connection."""
        self.failed = 0
        self._loop.add_reader(listening, self._accept)

    @property
    def going_on(self) -> int:
        """How many handshakes are going on."""
        return len(self._shaking)

    def _accept(self) -> None:
        """Take what is there, up to a share of this pass, but one at least. In one step, so that no connection is ever taken by nobody."""
        for number in range(_ACCEPTED_PER_PASS):
            if number and not self._turns.free:
                return
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

    def stop(self) -> None:
        """Accept no more. Handshakes that have begun go on. May be called twice."""
        self._loop.remove_reader(self._listening)
        if self._resumption is not None:
            self._resumption.cancel()
            self._resumption = None

    async def _shake(self, accepted: socket.socket) -> None:
        try:
            await self._connect(accepted)
            self.succeeded += 1
        except OSError as error:  # of TLS too
            self.failed += 1
            _log.debug("a handshake failed: %s", error)

    async def close(self) -> None:
        """Break off the handshakes that go on."""
        for accepted in self._shaking.values():
            # As if the client had: what has been built around the connection is torn down by its owners.
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        if self._shaking:
            await asyncio.wait(self._shaking)
