"""Turns on the event loop for work of many steps, so that it holds up nobody, however many do such work at once.

One who gives way after each step lets others in between, but a thousand who do so take a thousand steps between two turns of anybody else.
Here all of them share some steps in each pass of the loop: as many as fit into a few milliseconds, which is found out from how long passes
take. Knows nothing of the work.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

_FEWEST_STEPS = 2
"""However long a pass takes: what others do must not keep this work from going on."""
_MOST_STEPS = 24
_PASS_SECONDS = 0.008
_FREE_SECONDS = 0.01
"""So long a pass may have taken before work of a single step waits: writes that are stored together cost less than one by one."""


class Turns:
    """Gives out turns, first come, first served. For one event loop."""

    def __init__(self, *, steps: int = 8, most_steps: int = _MOST_STEPS, clock: Callable[[], float] = time.thread_time) -> None:
        """`steps` are what is done in one pass of the loop at first, `most_steps` when passes are short. `clock` is of the loop's work."""
        self._steps = self._left = steps
        self._most_steps = most_steps
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._renewing = False
        self._clock = clock
        self._began_seconds = 0.0

    async def next(self) -> None:
        """Return when it is the caller's turn to do one step, not before the next pass of the loop. Safe to cancel."""
        loop = self._watch()
        if self._left:
            self._left -= 1
            await asyncio.sleep(0)
        else:
            await self._wait(loop)

    async def short(self) -> None:
        """Return at once while this pass of the loop is short, else when it is the caller's turn to do one step. Safe to cancel."""
        loop = self._watch()
        if self._waiting or self._clock() - self._began_seconds > _FREE_SECONDS:
            await self._wait(loop)

    def _watch(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if not self._renewing:
            self._renewing = True
            self._began_seconds = self._clock()
            loop.call_soon(self._renew, loop)
        return loop

    async def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _renew(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self._clock()
        took_seconds, self._began_seconds = now - self._began_seconds, now
        if took_seconds > _PASS_SECONDS:
            self._steps = max(self._steps // 2, min(self._steps, _FEWEST_STEPS))
        elif took_seconds < _PASS_SECONDS / 2:
            self._steps = min(self._steps + 1, self._most_steps)
        self._left = self._steps
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        self._renewing = self._left < self._steps
        if self._renewing:
            loop.call_soon(self._renew, loop)
