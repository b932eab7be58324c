"""Counts requests, with what became of them and how long that took."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_CLIENT_HAS_GONE = 499


def make(stages: Stages) -> Filter | None:
    """Return the filter that counts each request, or None when nobody wants to know."""
    if stages.metrics is None:
        return None
    record = stages.metrics.record

    async def count(call: Call, handler: Handler) -> web.StreamResponse:
        began = perf_counter()
        try:
            response = await handler(call)
        except BaseException:
            # Its client has gone; a watch that had begun was all right until then.
            record(call, 200 if call.http.writer.output_size else _CLIENT_HAS_GONE, perf_counter() - began)
            raise
        record(call, response.status, perf_counter() - began, response)
        return response

    return count
