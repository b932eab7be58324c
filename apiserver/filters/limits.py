"""How many requests are worked on at once. Watches do not count; `system:masters` are counted but never turned away, as upstream.

A request over the limit is answered at once, so that memory stays bounded and clients back off. One within it goes on at once, or in one of
the next passes of the loop when this one has become long (`apiserver/turns.py`); whoever asks for health or documents waits for nobody.
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


@dataclass(slots=True)
class InFlight:
    """How many requests are being worked on."""

    reading: int = 0
    writing: int = 0

    def by_kind(self) -> dict[str, float]:
        """The same under the names that metrics have."""
        return {"readOnly": self.reading, "mutating": self.writing}


def make(stages: Stages) -> Filter:
    """Return the filter that answers 429 when too many requests are in flight."""
    max_reading = stages.limits.max_requests_in_flight
    max_writing = stages.limits.max_mutating_requests_in_flight
    in_flight, turns = stages.in_flight, stages.turns

    async def limit_in_flight(call: Call, handler: Handler) -> web.StreamResponse:
        if is_long_running(call.info):
            return await handler(call)
        if call.info.verb in _READ_ONLY:
            if 0 < max_reading <= in_flight.reading:
                _turn_away(call)
            in_flight.reading += 1
            try:
                if call.info.is_resource_request:
                    await turns.short()
                return await handler(call)
            finally:
                in_flight.reading -= 1
        if 0 < max_writing <= in_flight.writing:
            _turn_away(call)
        in_flight.writing += 1
        try:
            await turns.short()
            return await handler(call)
        finally:
            in_flight.writing -= 1

    return limit_in_flight


def _turn_away(call: Call) -> None:
    if SYSTEM_MASTERS not in call.user.groups:
        raise errors.too_many_requests("Too many requests, please try again later.", retry_after_seconds=1)
