"""Decides whether the client may do what it asks: before anything of the object is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.meta.errors import APIError

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_DECISION = "authorization.k8s.io/decision"
"""The annotation of audit events that kube-apiserver has for it."""


def make(stages: Stages) -> Filter:
    """Return the filter that answers 403 to somebody who may not, and 401 to somebody whom nobody knows."""
    check = stages.authorization.check

    async def authorize(call: Call, handler: Handler) -> web.StreamResponse:
        if call.audit is None:
            await check(call.user, call.info)
            return await handler(call)
        try:
            await check(call.user, call.info)
        except APIError:
            call.audit.annotations[_DECISION] = "forbid"
            raise
        call.audit.annotations[_DECISION] = "allow"
        return await handler(call)

    return authorize
