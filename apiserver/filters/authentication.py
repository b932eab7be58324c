"""Finds out who is asking. Whoever nobody knows goes on as anonymous: what that means is decided by authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler


def make(stages: Stages) -> Filter:
    """Return the filter that fills in `call.user`."""
    authenticators = stages.authenticators

    async def authenticate(call: Call, handler: Handler) -> web.StreamResponse:
        for authenticator in authenticators:
            user = await authenticator.authenticate(call)
            if user is not None:
                call.user = user
                break
        return await handler(call)

    return authenticate
