"""GET of a collection with `watch`: a stream of events, or of WebSocket messages, that begins at once and ends cleanly.

What can be refused is refused before the stream begins; afterwards an error is an ERROR event. The response's head goes out before
anything is waited for. Events are written past aiohttp straight to the connection, as whole chunks or messages; aiohttp ends the response.

A watch that begins with a list is compressed for clients that take gzip, as one gzip file: kube-apiserver begins a new one with each
flush, and some clients stop at the end of the first.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from aiohttp import HttpVersion11, web

from apiserver.endpoints.negotiation import STREAMED, accepts_gzip, negotiate, response_headers
from apiserver.endpoints.websocket import accept_websocket, asks_for_websocket, ignore_messages
from apiserver.meta import errors
from apiserver.meta.options import list_options
from apiserver.registry.errors import api_error
from apiserver.registry.forms import PLAIN, Form
from apiserver.registry.selection import select
from apiserver.registry.watching import Outlet, Watches
from storage.errors import StoreError

if TYPE_CHECKING:
    from apiserver.meta.options import ListOptions
    from apiserver.registry.frames import Framing
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler

MIN_TIMEOUT_SECONDS = 1800.0
"""The default of kube-apiserver's --min-request-timeout."""
_END_SECONDS = 10.0


def make(store: ResourceStore, tables: TableConvertor, watches: Watches, *, min_timeout_seconds: float = MIN_TIMEOUT_SECONDS) -> Handler:
    """The handler that streams the changes of a namespace, or of all of them.

    A watch without a time-out of its own ends after one to two times `min_timeout_seconds`, so that clients do not come back together.
    """

    async def watch(call: Call) -> web.StreamResponse:
        form = _form(call, tables)
        info = call.info
        options = list_options(info.query)
        selection = select(store.kind, info.namespace, info.name, options)
        watches.check(options)
        if not store.cache.ready:
            try:
                await store.cache.fresh()
            except StoreError as error:
                raise api_error(error, store.kind.group_resource) from error
        timeout_seconds = float(options.timeout_seconds or 0) or min_timeout_seconds * (1.0 + random.random())
        serve = partial(watches.serve, selection, form, options, timeout_seconds=timeout_seconds)
        if info.method == "HEAD":
            return web.Response(headers=response_headers(call, _content_type(form)))
        if asks_for_websocket(call):
            return await _send_messages(call, serve)
        return await _stream(call, form, _framing(call, options), serve)

    return watch


def _content_type(form: Form) -> str:
    return f"{form.media_type};stream=watch" if form.is_protobuf else form.media_type


def _framing(call: Call, options: ListOptions) -> Framing:
    if call.http.version < HttpVersion11:
        return "plain"
    # As kube-apiserver: compression is for what a list would send.
    begins_with_list = options.send_initial_events and options.allow_watch_bookmarks
    return "gzip" if begins_with_list and accepts_gzip(call) else "chunked"


async def _stream(call: Call, form: Form, framing: Framing, serve: Callable[[Outlet], Awaitable[None]]) -> web.StreamResponse:
    response = web.StreamResponse(headers=response_headers(call, _content_type(form)))
    if framing == "plain":
        response.force_close()
    else:
        response.enable_chunked_encoding()
    if framing == "gzip":
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
    transport, drain = await _begin(call, response)
    await serve(Outlet(transport, drain, framing))
    if not transport.is_closing():
        try:
            async with asyncio.timeout(_END_SECONDS):
                await response.write_eof()
        except TimeoutError:
            # The client does not even read the end of its watch.
            transport.abort()
    return response


async def _send_messages(call: Call, serve: Callable[[Outlet], Awaitable[None]]) -> web.StreamResponse:
    socket = accept_websocket(call)
    transport, drain = await _begin(call, socket)
    # A client that closes the socket, or goes, ends the connection, and that ends this task.
    reading = asyncio.create_task(ignore_messages(socket), name="ignore messages")
    try:
        await serve(Outlet(transport, drain, "websocket"))
    finally:
        reading.cancel()
        await asyncio.wait([reading])
    if not transport.is_closing():
        await socket.close()
    return socket


async def _begin(call: Call, response: web.StreamResponse) -> tuple[asyncio.WriteTransport, Callable[[], Awaitable[None]]]:
    """Send the head of the response; return the connection, and what waits until it takes more."""
    writer = await response.prepare(call.http)
    transport = call.http.transport
    if writer is None or transport is None:
        raise ConnectionResetError("the client has gone")
    return cast(asyncio.WriteTransport, transport), writer.drain


def _form(call: Call, tables: TableConvertor) -> Form:
    form = negotiate(call, tables=tables)
    if form.media_type == "application/yaml":
        raise errors.not_acceptable(STREAMED)
    if form.as_ == "Table":
        return Form(as_="Table", version=form.version, include_object=form.include_object, tables=tables)
    if form.as_ == "PartialObjectMetadataList":
        # kube-apiserver begins a stream and ends it at its first event.
        message = "you requested PartialObjectMetadataList, but the requested object is not a list (a watch sends single objects)"
        raise errors.APIError(406, "NotAcceptable", message)
    return Form(form.media_type, form.as_, form.version) if form.as_ else PLAIN
