"""How a connection is left without losing a request to it. Knows its limit, what its client has begun, and that what is sent can be held.

Go's clients give up a request that has chosen a connection, and has no stream on it yet, when they hear just then that the connection takes
no more. Its body is closed by then, and a proxy has it only once: `cannot rewind body after connection loss`. So they are told when there
is no such request. A client that has as many streams open as it may has none: whoever comes next takes another connection. To get there,
what would end a stream is held, and the limit is lowered to a little more than what is open and what comes. Either that is reached, or
nothing comes for a while. Then the farewell is said, and what was held is sent.

Source: golang.org/x/net v0.57.0: http2/transport.go (awaitOpenSlotForStreamLocked, cleanupWriteRequest); net/http/transport.go (rewindBody)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from apiserver.http2.connection import Http2Connection

_QUIET_SECONDS: Final = 0.15
_HELD_SECONDS: Final = 3.0
_UNUSED_SECONDS: Final = 0.5
_FAREWELL_SECONDS: Final = 1.0
_UNHEARD_SECONDS: Final = 5.0


class Farewell:
    """The end of one connection, from the wish to leave it to the moment when it may be closed."""

    def __init__(self, connection: Http2Connection, *, used: bool) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._holding = self._said = False
        self._open = self._limit = self._begun = 0
        self._limited_at = 0.0
        # Who has opened a connection has done so for a request, and others may wait for it as well.
        self._step = self._loop.call_later(0.0 if used else _UNUSED_SECONDS, self._hold)
        self._deadline: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """The connection is lost."""
        self._step.cancel()
        if self._deadline is not None:
            self._deadline.cancel()

    def begun(self) -> None:
        """The client begins a stream."""
        if not self._holding and not self._said:
            self._hold()
        if self._holding:
            self._open += 1
            self._begun += 1
            if self._is_full():
                self._say()

    def given_up(self) -> None:
        """The client has given up a stream."""
        self._open -= 1

    def acknowledged(self) -> None:
        """The client keeps to the limit. A while is as long as it needs to say so: it may be busy."""
        if self._holding:
            self._look_after(max(_QUIET_SECONDS, 2 * (self._loop.time() - self._limited_at)))

    def heard(self) -> None:
        """The client has answered what was sent behind the farewell."""
        if self._said:
            self._step.cancel()
            self._step = self._loop.call_later(_FAREWELL_SECONDS, self._connection.leave_when_idle)

    def _hold(self) -> None:
        self._step.cancel()
        self._holding = True
        self._open, limit = self._connection.hold()
        self._deadline = self._loop.call_later(_HELD_SECONDS, self._say)
        self._set_limit(limit)

    def _set_limit(self, streams: int) -> None:
        self._limit, self._begun = streams, 0
        self._limited_at = self._loop.time()
        self._connection.limit(streams)

    def _look_after(self, seconds: float) -> None:
        self._step.cancel()
        self._step = self._loop.call_later(seconds, self._look, seconds)

    def _is_full(self) -> bool:
        return self._open >= self._limit and self._connection.keeps_to_limit

    def _look(self, seconds: float) -> None:
        # What comes in a while is far more than what has just chosen the connection.
        limit = self._open + 1 + 2 * self._begun
        if limit < self._limit:
            self._set_limit(limit)
        elif self._begun:
            self._begun = 0
            self._look_after(seconds)
        else:
            self._say()

    def _say(self) -> None:
        self.cancel()
        self._holding, self._said = False, True
        self._connection.say_farewell()
        self._step = self._loop.call_later(_UNHEARD_SECONDS, self._connection.leave_when_idle)
