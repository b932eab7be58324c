"""Decides whether the client may do what it asks: before anything of the object is looked at."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from apiserver.auth.authorization import refusal
from apiserver.meta.errors import APIError

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_DECISION = "authorization.k8s.io/decision"
_REASON = "authorization.k8s.io/reason"
"""The annotations of audit events that kube-apiserver has for it."""
_RESULTS = {"allow": "allowed", "deny": "denied", "no opinion": "no-opinion"}
"""What metrics call the verdicts."""


def make(stages: Stages) -> Filter:
    """Return the filter that answers 403 to somebody who may not, and 401 to somebody whom nobody knows."""
    decide, attempts = stages.authorization.decide, stages.access_metrics.authorization
    results = {verdict: attempts.of(result).observe for verdict, result in _RESULTS.items()}
    error = attempts.of("error").observe

    async def authorize(call: Call, handler: Handler) -> web.StreamResponse:
        began = perf_counter()
        try:
            decision = await decide(call.user, call.info)
        except APIError:
            error(perf_counter() - began)
            if call.audit is not None:
                call.audit.annotations[_REASON] = "internal error"
            raise
        results[decision.verdict](perf_counter() - began)
        allowed = decision.verdict == "allow"
        if call.audit is not None:
            call.audit.annotations |= {_DECISION: "allow" if allowed else "forbid", _REASON: decision.reason}
        if not allowed:
            raise refusal(call.user, call.info, decision.reason)
        return await handler(call)

    return authorize
