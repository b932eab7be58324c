"""Finds out what a request asks for, once for all that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.meta import errors
from apiserver.request import parse_request

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler


_QUERY_CHARACTERS = 64 * 1024
"""Taking apart more would keep others waiting, before it is known who asks. Go reads a query faster, and up to a megabyte of it."""


def make(stages: Stages) -> Filter:
    """Return the filter that fills in `call.info`."""

    async def find_request_info(call: Call, handler: Handler) -> web.StreamResponse:
        target = call.http.raw_path
        # The parser lets bytes that are no UTF-8 through as lone surrogates; no key, message or log could hold them.
        if not target.isascii() and not _is_text(target):
            raise errors.bad_request("the request's address is not UTF-8")
        if len(target) > _QUERY_CHARACTERS and len(target.partition("?")[2]) > _QUERY_CHARACTERS:
            raise errors.bad_request(f"the request's query is longer than {_QUERY_CHARACTERS} characters")
        call.info = parse_request(call.http.method, target)
        return await handler(call)

    return find_request_info


def _is_text(target: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in target)
