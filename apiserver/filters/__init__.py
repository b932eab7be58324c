"""What every request passes, in this order, before an endpoint sees it.

A filter is a function of the call and of what comes next. The chain is bound once, so that a request costs one call per filter.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/server/config.go (DefaultBuildHandlerChain)
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TYPE_CHECKING

from apiserver.filters import (
    access_log,
    audit,
    authentication,
    authorization,
    deadline,
    errors,
    impersonation,
    limits,
    metrics,
    request_info,
    shutting_down,
    tracing,
)
from apiserver.request import ANONYMOUS, UNKNOWN_REQUEST, Call

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Filter, Handler, Peer

CHAIN: tuple[Callable[[Stages], Filter | None], ...] = (
    access_log.make,
    metrics.make,
    audit.make,
    errors.make,
    request_info.make,
    shutting_down.make,
    deadline.make,
    authentication.make,
    tracing.make,
    audit.make_received,
    impersonation.make,
    limits.make,
    authorization.make,
)
"""The makers of the filters, outermost first; one that returns None is switched off."""


def bind(stages: Stages, endpoint: Handler) -> Handler:
    """Return a handler that sends a call through every filter of the chain to the endpoint."""
    handler = endpoint
    for make in reversed(CHAIN):
        stage = make(stages)
        if stage is not None:
            handler = _before(stage, handler)
    return handler


def _before(stage: Filter, following: Handler) -> Handler:
    def passed(call: Call) -> Awaitable[web.StreamResponse]:
        return stage(call, following)

    return passed


def enter(chain: Handler) -> Callable[[web.BaseRequest, Peer], Awaitable[web.StreamResponse]]:
    """Return what a listener calls for each request: it makes the call that goes down the chain."""
    # Random UUIDs cost more than all of the parsing. These differ in the count at their end, and from those of other processes before it.
    digits = f"{random.getrandbits(128):032x}"
    made_here = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-"
    numbers = count(int(digits[21:], 16))

    def handle(http: web.BaseRequest, peer: Peer) -> Awaitable[web.StreamResponse]:
        audit_id = http.headers.get("Audit-Id") or ""
        # The client's own, so that its log and ours can be laid side by side.
        if not audit_id or len(audit_id) > _AUDIT_ID_CHARACTERS or not (audit_id.isascii() and audit_id.isprintable()):
            audit_id = f"{made_here}{next(numbers):012x}"
        return chain(Call(http, UNKNOWN_REQUEST, ANONYMOUS, [], audit_id, peer))

    return handle


_AUDIT_ID_CHARACTERS = 64
