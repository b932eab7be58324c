"""What the filters are made of: one object, put together in `app.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from apiserver.metrics.attempts import AccessMetrics
from apiserver.turns import Turns

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.audit.log import AuditLog
    from apiserver.auth import Authenticator
    from apiserver.auth.authorization import Authorization
    from apiserver.filters.access_log import AccessLog
    from apiserver.filters.deadline import Deadlines
    from apiserver.filters.limits import InFlight, InFlightLimits
    from apiserver.meta.errors import APIError
    from apiserver.metrics.requests import RequestMetrics
    from apiserver.request import Call, User
    from apiserver.tracing import Tracer


@dataclass(frozen=True, slots=True)
class Stages:
    """The parts of the chain that are not the same in every server."""

    authenticators: tuple[Authenticator, ...]
    """Asked in order; the first who knows the client wins."""
    authorization: Authorization
    """Decides what they may do."""
    limits: InFlightLimits
    in_flight: InFlight
    deadlines: Deadlines
    respond_error: Callable[[Call, APIError], web.StreamResponse]
    """Writes a Status in the form that the client asked for."""
    turns: Turns = field(default_factory=Turns)
    """Shared by all that runs on the loop."""
    anonymous: User | None = None
    """Who those are that prove nothing; None: nobody, and they may do nothing but what everybody may."""
    access_log: AccessLog | None = None
    """None: requests are not logged."""
    audit_log: AuditLog | None = None
    """None: there is none."""
    tracer: Tracer | None = None
    """None: there are no spans."""
    access_metrics: AccessMetrics = field(default_factory=AccessMetrics)
    """What became of authentication, authorization and impersonation."""
    metrics: RequestMetrics | None = None
    """None: requests are not counted."""
    refusing: asyncio.Event | None = None
    """Set when new requests are to be turned away; None: they never are."""
