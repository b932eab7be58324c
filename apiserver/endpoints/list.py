"""GET of a collection.

A small list is one response; a large one is streamed in the blocks of the snapshot it is read from, as fast as the client takes them, so
that a request holds no more than some blocks. When the client takes gzip, lists above 128 KiB are compressed, from segments that are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import orjson
from aiohttp import HttpVersion11, web
from isal import isal_zlib

from apiserver.endpoints.negotiation import accepts_gzip, check_shape, negotiate, response_headers, yaml_bytes
from apiserver.meta.options import list_options
from apiserver.registry.deflated import Deflated, deflate, gzip_member
from apiserver.registry.errors import api_error
from apiserver.registry.forms import Form
from apiserver.registry.list_bytes import ListBytes
from apiserver.registry.listing import ObjectList, list_objects
from apiserver.registry.selection import select
from apiserver.response import WholeResponse
from storage.errors import StoreError

if TYPE_CHECKING:
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.stored_object import StoredObject
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler
    from apiserver.turns import Turns
    from storage.snapshot import Block

GZIP_ABOVE_BYTES = 128 * 1024
"""As kube-apiserver: smaller answers are sent as they are."""
_BYTES_PER_STEP = 256 * 1024
_OBJECTS_PER_YAML_STEP = 32


def make(store: ResourceStore, tables: TableConvertor) -> Handler:
    """The handler that lists a namespace, or all of them."""

    async def list_(call: Call) -> web.StreamResponse:
        form = negotiate(call, tables=tables)
        info = call.info
        options = list_options(info.query)
        try:
            listed = await list_objects(store, select(store.kind, info.namespace, info.name, options), options)
        except StoreError as error:
            raise api_error(error, store.kind.group_resource) from error
        return await respond_list(call, form, store, listed)

    return list_


async def respond_list(call: Call, form: Form, store: ResourceStore, listed: ObjectList) -> web.StreamResponse:
    """Answer with a list in the form that the client wants.

    Raises:
        APIError: 406 for the form of a single object.
    """
    check_shape(call, form, is_list=True)
    if call.info.method == "HEAD":
        return web.Response(headers=response_headers(call, form.media_type))
    if form.media_type == "application/yaml":
        return await _send_yaml(call, form, _yaml(store, form, listed), store.turns)
    body = ListBytes(store.kind, form)
    if form.is_protobuf:
        await _make(body.items, listed, store.turns)
    head, tail = body.envelope(listed)
    parts = [head]
    size = len(head) + len(tail)
    for number, block in enumerate(listed.blocks):
        if size > GZIP_ABOVE_BYTES or (body.keeps and size + body.size_bytes(block) > GZIP_ABOVE_BYTES):
            break
        items = body.items(block)
        parts += (body.separator, items) if number else (items,)
        size += len(items)
    else:
        if size <= GZIP_ABOVE_BYTES:
            parts.append(tail)
            return WholeResponse(body=b"".join(parts), headers=response_headers(call, form.media_type))
    compress = accepts_gzip(call)
    if body.keeps:
        return await _send_kept(call, form, body, listed, store.turns, compress=compress)
    return await _stream(call, form, _made(body, listed), store.turns, compress=compress)


async def _make(make: Callable[[Block[StoredObject]], object], listed: ObjectList, turns: Turns) -> None:
    for block in listed.blocks:
        await turns.next()
        make(block)


async def _send_kept(call: Call, form: Form, body: ListBytes, listed: ObjectList, turns: Turns, *, compress: bool) -> web.StreamResponse:
    """Send what is kept with the blocks, or joined from them piece by piece; how long all of it is is known first."""
    await _make(body.deflated if compress else body.size_bytes, listed, turns)
    headers = response_headers(call, form.media_type)
    pieces: Iterable[bytes]
    if compress:
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
        pieces = compressed = gzip_member(_segments(body, listed))
        size_bytes = sum(map(len, compressed))
    else:
        pieces = _pieces(body, listed)
        around = sum(map(len, body.envelope(listed))) + len(body.separator) * (len(listed.blocks) - 1)
        size_bytes = sum(map(body.size_bytes, listed.blocks), around)
    headers["Content-Length"] = str(size_bytes)
    response = web.StreamResponse(headers=headers)
    await response.prepare(call.http)
    for piece in pieces:
        # Encrypting takes its time, and aiohttp waits only when the transport is full: others get their turn in between.
        for start in range(0, len(piece), _BYTES_PER_STEP):
            await turns.next()
            await response.write(memoryview(piece)[start : start + _BYTES_PER_STEP])
    await response.write_eof()
    return response


def _pieces(body: ListBytes, listed: ObjectList) -> Iterator[bytes]:
    head, tail = body.envelope(listed)
    yield head
    for number, block in enumerate(listed.blocks):
        if number:
            yield body.separator
        yield from body.pieces(block, _BYTES_PER_STEP)
    yield tail


def _segments(body: ListBytes, listed: ObjectList) -> Iterator[Deflated]:
    head, tail = body.envelope(listed)
    separator = deflate(body.separator)
    yield deflate(head)
    for number, block in enumerate(listed.blocks):
        if number:
            yield separator
        yield body.deflated(block)
    yield deflate(tail)


async def _made(body: ListBytes, listed: ObjectList) -> AsyncIterator[bytes]:
    for piece in _pieces(body, listed):
        yield piece


async def _send_yaml(call: Call, form: Form, pieces: AsyncIterator[bytes], turns: Turns) -> web.StreamResponse:
    begun: list[bytes] = []
    size = 0
    async for piece in pieces:
        begun.append(piece)
        size += len(piece)
        if size > GZIP_ABOVE_BYTES:
            return await _stream(call, form, _continued(begun, pieces), turns, compress=accepts_gzip(call))
    return WholeResponse(body=b"".join(begun), headers=response_headers(call, form.media_type))


async def _continued(begun: list[bytes], pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for piece in begun:
        yield piece
    async for piece in pieces:
        yield piece


async def _yaml(store: ResourceStore, form: Form, listed: ObjectList) -> AsyncIterator[bytes]:
    """YAML, made in a thread and some objects at a time: it takes a thousand times as long as JSON."""
    body = ListBytes(store.kind, Form(as_=form.as_, version=form.version, include_object=form.include_object, tables=form.tables))
    head, tail = body.envelope(listed)
    envelope = orjson.loads(head + tail)
    name = "rows" if form.as_ == "Table" else "items"
    if not listed.objects:
        yield yaml_bytes(envelope)
        return
    keys = sorted(envelope)
    at = keys.index(name)
    before, after = ({key: envelope[key] for key in part} for part in (keys[:at], keys[at + 1 :]))
    yield (yaml_bytes(before) if before else b"") + f"{name}:\n".encode()
    for block in listed.blocks:
        for start in range(0, len(block), _OBJECTS_PER_YAML_STEP):
            yield await asyncio.to_thread(_yaml_items, body, block.part(start, start + _OBJECTS_PER_YAML_STEP))
    if after:
        yield yaml_bytes(after)


def _yaml_items(body: ListBytes, block: Block[StoredObject]) -> bytes:
    return yaml_bytes(orjson.loads(b"[" + body.items(block) + b"]"))


async def _stream(call: Call, form: Form, pieces: AsyncIterator[bytes], turns: Turns, *, compress: bool = False) -> web.StreamResponse:
    """Send pieces as they are made, with back-pressure."""
    headers = response_headers(call, form.media_type)
    compressor = None
    if compress:
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
        compressor = isal_zlib.compressobj(1, isal_zlib.DEFLATED, 16 + isal_zlib.MAX_WBITS)
    response = web.StreamResponse(headers=headers)
    if call.http.version >= HttpVersion11:
        response.enable_chunked_encoding()
    await response.prepare(call.http)
    async for piece in pieces:
        data = compressor.compress(piece) if compressor is not None else piece
        if data:
            await response.write(data)
        await turns.next()
    await response.write_eof(compressor.flush() if compressor is not None else b"")
    return response
