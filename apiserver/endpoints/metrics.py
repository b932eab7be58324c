"""`/metrics`: what the server has counted. Who may read it is a matter of authorization, as for any path."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiohttp import web

from apiserver.endpoints.negotiation import accept_of, response_headers
from apiserver.meta import errors
from apiserver.metrics.exposition import expose, gauge
from storage.errors import StoreError

if TYPE_CHECKING:
    from apiserver.metrics.exposition import Collect
    from apiserver.request import Call, Handler
    from storage.store import Store

_STORE_SECONDS = 2.0


def make(store: Store, sources: Sequence[Collect]) -> Handler:
    """The handler that tells what the sources have counted, and how large the store is while that can be found out."""

    async def metrics(call: Call) -> web.StreamResponse:
        if call.info.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        size = await _size(store)
        text, media_type = await expose([*sources, *size], accept_of(call))
        return web.Response(body=text, headers=response_headers(call, media_type))

    return metrics


async def _size(store: Store) -> tuple[Collect, ...]:
    try:
        async with asyncio.timeout(_STORE_SECONDS):
            size_bytes = await store.size_bytes()
    except (StoreError, TimeoutError):
        return ()
    return (gauge("apiserver_storage_size_bytes", "Bytes that the store takes on its disk.", lambda: size_bytes),)
