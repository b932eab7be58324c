"""Turns on the event loop for work of many steps, so that it holds up nobody, however many do such work at once.

One who gives way after each step lets others in between, but a thousand who do so take a thousand steps between two turns of anybody else.
Here all of them share a few steps in each pass of the loop. Knows nothing of the work.
"""

from __future__ import annotations

import asyncio
from collections import deque

_STEPS = 8
"""In one pass: with steps of some tenths of a millisecond the loop is held for a few milliseconds."""


class Turns:
    """Gives out turns, first come, first served. For one event loop."""

    def __init__(self, *, steps: int = _STEPS) -> None:
        """`steps` are what is done in one pass of the loop."""
        self._steps = steps
        self._left = steps
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._renewing = False

    async def next(self) -> None:
        """Return when it is the caller's turn to do one step, not before the next pass of the loop. Safe to cancel."""
        loop = asyncio.get_running_loop()
        if not self._renewing:
            self._renewing = True
            loop.call_soon(self._renew, loop)
        if self._left:
            self._left -= 1
            await asyncio.sleep(0)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _renew(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = self._steps
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        self._renewing = self._left < self._steps
        if self._renewing:
            loop.call_soon(self._renew, loop)
