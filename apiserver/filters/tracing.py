"""A span for each request that is sampled. Behind authentication: who asks decides whether a trace that they name is gone on with.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/filters/traces.go
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from apiserver.meta.errors import APIError

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_CLIENT_HAS_GONE = 499


def make(stages: Stages) -> Filter | None:
    """Return the filter that begins and ends spans, or None when nobody wants them."""
    if stages.tracer is None:
        return None
    begin = stages.tracer.begin

    async def trace(call: Call, handler: Handler) -> web.StreamResponse:
        span, code = begin(call), 500
        try:
            response = await handler(call)
            code = response.status
        except APIError as error:
            code = error.code
            raise
        except (asyncio.CancelledError, ConnectionError):
            code = _CLIENT_HAS_GONE
            raise
        finally:
            span.end(code)
        return response

    return trace
