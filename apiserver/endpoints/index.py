"""`/`: the addresses that do not belong to one object, for people and for clients that find their way from here.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/server/routes/index.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from apiserver.endpoints.negotiation import response_headers
from apiserver.meta import errors

if TYPE_CHECKING:
    from apiserver.request import Call, Handler


def make(paths: Iterable[str]) -> Handler:
    """Return the handler that lists these paths, sorted."""
    body = orjson.dumps({"paths": sorted(paths)}, option=orjson.OPT_INDENT_2)

    async def answer(call: Call) -> web.Response:
        if call.info.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        return web.Response(body=body, headers=response_headers(call, "application/json"))

    return answer
