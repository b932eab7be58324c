"""No request takes longer than its time, except watches, which end themselves.

A timer per request would cost more than reading an object from memory. All requests have the same time, so those in flight are kept in the
order of their arrival, and one task looks at the oldest once a second. Only a request that brings its own, shorter `timeout` has a timer.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/filters/request_deadline.go
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from apiserver.meta import errors
from apiserver.meta.time import parse_duration
from apiserver.request import is_long_running

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_PROBLEM = "request did not complete within the allotted timeout"


@dataclass(slots=True, eq=False)
class _Running:
    task: asyncio.Task[object]
    deadline: float
    expired: bool = False


@dataclass(slots=True, eq=False)
class Deadlines:
    """The requests in flight, oldest first. `run` must be running for them to be cut off."""

    timeout_seconds: float = 60.0
    """How long a request may take, as kube-apiserver's --request-timeout."""
    look_every_seconds: float = 1.0
    """How much longer it may take in fact."""
    _running: dict[_Running, None] = field(default_factory=dict)

    def begin(self) -> _Running:
        """Note that the current task has begun to answer a request."""
        task = asyncio.current_task()
        assert task is not None
        running = _Running(task, time.monotonic() + self.timeout_seconds)
        self._running[running] = None
        return running

    def end(self, running: _Running) -> None:
        """Note that the request has been answered, or given up."""
        del self._running[running]

    async def run(self) -> None:
        """Cut off what has run out of time, for ever."""
        while True:
            await asyncio.sleep(self.look_every_seconds)
            now = time.monotonic()
            for running in self._running:
                if running.deadline > now:
                    break
                if not running.expired:
                    running.expired = True
                    running.task.cancel()


def make(stages: Stages) -> Filter:
    """Return the filter that answers 504 for a request that is out of time, and 400 for a `timeout` that cannot be read."""
    deadlines = stages.deadlines

    async def hold_to_deadline(call: Call, handler: Handler) -> web.StreamResponse:
        if is_long_running(call.info):
            return await handler(call)
        if call.info.query and call.info.query.get("timeout", [""])[0]:
            own_seconds = parse_duration_seconds(call.info.query["timeout"][0])
            if 0 < own_seconds < deadlines.timeout_seconds:
                try:
                    async with asyncio.timeout(own_seconds) as own:
                        return await handler(call)
                except TimeoutError:
                    if own.expired():
                        raise errors.timeout(_PROBLEM, retry_after_seconds=0) from None
                    raise
        running = deadlines.begin()
        try:
            return await handler(call)
        except asyncio.CancelledError:
            if running.expired and not running.task.uncancel():
                raise errors.timeout(_PROBLEM, retry_after_seconds=0) from None
            raise
        finally:
            deadlines.end(running)

    return hold_to_deadline


def parse_duration_seconds(text: str) -> float:
    """Read the parameter `timeout`.

    Raises:
        APIError: 400, with Go's words, for what is no duration.
    """
    try:
        return parse_duration(text)
    except ValueError as error:
        raise errors.bad_request(f"invalid timeout specified in the request URL - {error}") from error
