"""How many requests are worked on at once. Watches do not count; `system:masters` are counted but never turned away, as upstream.

Nothing queues here: a request over the limit is answered at once, so that memory stays bounded and clients back off.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/server/filters/maxinflight.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.auth import SYSTEM_MASTERS
from apiserver.meta import errors
from apiserver.request import is_long_running

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_READ_ONLY = frozenset(("get", "list", "watch"))


@dataclass(frozen=True, slots=True)
class InFlightLimits:
    """The flags of kube-apiserver, with its defaults; 0 switches a limit off."""

    max_requests_in_flight: int = 400
    """Requests that read."""
    max_mutating_requests_in_flight: int = 200
    """Requests that write."""


def make(stages: Stages) -> Filter:
    """Return the filter that answers 429 when too many requests are in flight."""
    max_reading = stages.limits.max_requests_in_flight
    max_writing = stages.limits.max_mutating_requests_in_flight
    reading = writing = 0

    async def limit_in_flight(call: Call, handler: Handler) -> web.StreamResponse:
        nonlocal reading, writing
        if is_long_running(call.info):
            return await handler(call)
        if call.info.verb in _READ_ONLY:
            if 0 < max_reading <= reading:
                _turn_away(call)
            reading += 1
            try:
                return await handler(call)
            finally:
                reading -= 1
        if 0 < max_writing <= writing:
            _turn_away(call)
        writing += 1
        try:
            return await handler(call)
        finally:
            writing -= 1

    return limit_in_flight


def _turn_away(call: Call) -> None:
    if SYSTEM_MASTERS not in call.user.groups:
        raise errors.too_many_requests("Too many requests, please try again later.", retry_after_seconds=1)
