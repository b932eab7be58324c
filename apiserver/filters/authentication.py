"""Finds out who is asking, before anything else of a request is looked at.

Whoever brings nothing is anonymous: what that means is decided by authorization. Whoever brings a proof that does not hold, and no other
that does, is told so: going on as anonymous would hide the mistake.
"""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING

from apiserver.auth import Refusal
from apiserver.meta import errors
from apiserver.meta.errors import APIError

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_log = logging.getLogger(__name__)


def make(stages: Stages) -> Filter:
    """Return the filter that fills in `call.user`, or answers 401."""
    authenticators, anonymous = stages.authenticators, stages.anonymous
    counted = stages.access_metrics
    success, failure, error = (counted.authentication.of(result).observe for result in ("success", "failure", "error"))

    async def authenticate(call: Call, handler: Handler) -> web.StreamResponse:
        began, refusals, user = perf_counter(), None, None
        try:
            for authenticator in authenticators:
                found = await authenticator.authenticate(call)
                if found is None:
                    continue
                if not isinstance(found, Refusal):
                    user = found
                    break
                refusals = [*(refusals or ()), found]
            if user is None and refusals:
                _log.info("%s: %s", call.peer.address, "; ".join(ascii(refusal.reason)[1:-1] for refusal in refusals))
                raise errors.unauthorized()
        except APIError:
            error(perf_counter() - began)
            raise
        user = user or anonymous
        if user is None:
            failure(perf_counter() - began)
        else:
            success(perf_counter() - began)
            counted.note_user(user.name)
            call.user = user
        return await handler(call)

    return authenticate
