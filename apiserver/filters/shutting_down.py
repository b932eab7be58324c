"""New requests while the server ends: turned away politely, when it was told so, for as long as running ones take to finish.

Then clients that keep a connection, or that a load balancer still sends here, learn to come back elsewhere instead of being refused a
connection. Probes and whoever reads the metrics are answered to the end.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/server/filters/with_retry_after.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_ANSWERED = ("/readyz", "/livez", "/healthz", "/metrics")
_HEADERS = {
    "Cache-Control": "no-cache, private",
    "Content-Type": "text/plain; charset=utf-8",
    "Retry-After": "5",
    "X-Content-Type-Options": "nosniff",
}
_TEXT = b"The apiserver is shutting down, please try again later.\n"


def make(stages: Stages) -> Filter | None:
    """Return the filter that answers 429 and ends the connection once new requests are refused; None when they never are."""
    refusing = stages.refusing
    if refusing is None:
        return None

    async def refuse_new(call: Call, handler: Handler) -> web.StreamResponse:
        if not refusing.is_set() or call.info.path.startswith(_ANSWERED):
            return await handler(call)
        response = web.Response(status=429, body=_TEXT, headers=_HEADERS | {"Audit-Id": call.audit_id})
        response.force_close()
        return response

    return refuse_new
