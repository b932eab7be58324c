"""Finds out who is asking, before anything else of a request is looked at.

Whoever brings nothing is anonymous: what that means is decided by authorization. Whoever brings a proof that does not hold, and no other
that does, is told so: going on as anonymous would hide the mistake.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from apiserver.auth import Refusal
from apiserver.meta import errors

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_log = logging.getLogger(__name__)


def make(stages: Stages) -> Filter:
    """Return the filter that fills in `call.user`, or answers 401."""
    authenticators, anonymous = stages.authenticators, stages.anonymous

    async def authenticate(call: Call, handler: Handler) -> web.StreamResponse:
        refusals = None
        for authenticator in authenticators:
            user = await authenticator.authenticate(call)
            if user is None:
                continue
            if not isinstance(user, Refusal):
                call.user = user
                return await handler(call)
            refusals = [*(refusals or ()), user]
        if refusals:
            _log.info("%s: %s", call.peer.address, "; ".join(ascii(refusal.reason)[1:-1] for refusal in refusals))
            raise errors.unauthorized()
        if anonymous is not None:
            call.user = anonymous
        return await handler(call)

    return authenticate
