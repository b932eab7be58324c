"""Turns on the event loop, so that no pass of it takes long, however many want something at once.

A thousand connections that have something to read, a thousand requests, a thousand watchers that begin: each of them takes a fraction of a
millisecond, and all of them together a second, before which nobody else is served. Here they share the passes of the loop. While a pass
is short everybody goes on at once; when it has become long the others wait for one of the next, first come, first served, but single steps
before those of long work. Time is CPU time of the loop's thread: what others take on a busy machine makes no pass longer.
Knows nothing of the work.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

_FEWEST_STEPS = 2
"""However long a pass takes: what others do must not keep long work from going on."""
_MOST_STEPS = 24
_PASS_SECONDS = 0.008
"""The steps in a pass are halved when it takes longer."""
_FREE_SECONDS = 0.008
"""So long a pass may have taken before what comes waits: requests that go the same way together cost less than one by one."""
_CALLS_SECONDS = 0.003
"""For calls that have waited, at the beginning of a pass."""
_CALLS_PER_STEP = 4
"""What they set going takes its time later in the pass."""


_Call = tuple[Context, Callable[..., object], tuple[Any, ...]]


class Turns:
    """Gives out turns. For one event loop."""

    def __init__(self, *, steps: int = 8, most_steps: int = _MOST_STEPS, clock: Callable[[], float] = time.thread_time) -> None:
        """`steps` are what is done in one pass of the loop at first, `most_steps` when passes are short. `clock` is of the loop's work."""
        self._steps = self._left = steps
        self._most_steps = most_steps
        self._single: deque[asyncio.Future[None]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._urgent: deque[_Call] = deque()
        self._calls: deque[_Call] = deque()
        self._renewing = False
        self._clock = clock
        self._began_seconds = 0.0

    async def next(self) -> None:
        """Return when it is the caller's turn for one step of long work, not before the next pass of the loop. Safe to cancel."""
        loop = self._watch()
        if self._left:
            self._left -= 1
            await asyncio.sleep(0)
        else:
            await _turn(loop, self._waiting)

    async def short(self) -> None:
        """Return at once while this pass of the loop is short, else when it is the caller's turn for a single step. Safe to cancel."""
        if not self._renewing:
            self._watch()
        if self._single or self._clock() - self._began_seconds > _FREE_SECONDS:
            await _turn(asyncio.get_running_loop(), self._single)

    @property
    def free(self) -> bool:
        """Whether no call waits, and this pass of the loop is short."""
        if self._urgent or self._calls:
            return False
        if not self._renewing:  # what each request comes by is spelled out: calls of our own would cost more than the clock
            self._watch()
        return self._clock() - self._began_seconds <= _FREE_SECONDS

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Call it at once while that is `free`, else when it is its turn."""
        if self.free:
            function(*args)
        else:
            self.queue(function, *args)

    def queue(self, function: Callable[..., object], *args: Any, urgent: bool = False) -> None:
        """Call it when it is its turn, not before the next pass of the loop, in the caller's context; what is urgent before the rest."""
        self._watch()
        (self._urgent if urgent else self._calls).append((copy_context(), function, args))

    def _watch(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if not self._renewing:
            self._renewing = True
            self._began_seconds = self._clock()
            loop.call_soon(self._renew, loop)
        return loop

    def _renew(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a pass: give out its turns, and come again as long as anybody takes one."""
        now = self._clock()
        took_seconds, self._began_seconds = now - self._began_seconds, now
        if took_seconds > _PASS_SECONDS:
            self._steps = max(self._steps // 2, min(self._steps, _FEWEST_STEPS))
        elif took_seconds < _PASS_SECONDS / 2:
            self._steps = min(self._steps + 1, self._most_steps)
        left = _give(self._single, self._steps)
        self._left = _give(self._waiting, max(left, min(self._steps, _FEWEST_STEPS)))
        self._renewing = bool(self._left < self._steps or self._single or self._urgent or self._calls)
        if self._renewing:
            loop.call_soon(self._renew, loop)
        for _ in range(_CALLS_PER_STEP * self._steps):
            calls = self._urgent or self._calls
            if not calls:
                return
            context, function, args = calls.popleft()
            try:
                context.run(function, *args)
            except Exception as error:
                # As the loop itself does it with what it calls.
                loop.call_exception_handler({"message": f"{function} has failed", "exception": error})
            if self._clock() - now > _CALLS_SECONDS:
                return


async def _turn(loop: asyncio.AbstractEventLoop, waiting: deque[asyncio.Future[None]]) -> None:
    turn: asyncio.Future[None] = loop.create_future()
    waiting.append(turn)
    await turn


def _give(waiting: deque[asyncio.Future[None]], left: int) -> int:
    """Give so many turns to those who wait, and return how many nobody wanted."""
    while left and waiting:
        turn = waiting.popleft()
        if not turn.done():
            turn.set_result(None)
            left -= 1
    return left
