"""A response that is there as a whole: its code, headers and body. What is streamed is `aiohttp.web.StreamResponse`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.helpers import rfc822_formatted_time

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from multidict import CIMultiDict

_WITH_BODY = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE"))


class WholeResponse(web.Response):
    """aiohttp's response, in fewer steps where it is one of the many that go out with a body on a connection that stays."""

    def __init__(self, *, body: bytes, headers: CIMultiDict[str], status: int = 200) -> None:
        """`headers` are its own from now on, and say of what type the body is; `status` allows that there is one."""
        web.StreamResponse.__init__(self, status=status, _real_headers=headers)
        self._body = body

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Write the head, which is kept for the first of the body."""
        body, stays = self._body, request.version == HttpVersion11 and request.keep_alive and self._keep_alive is None
        if not (stays and isinstance(body, bytes) and body and request.method in _WITH_BODY) or self.prepared:
            return await super().prepare(request)
        self._req, self._keep_alive, self._must_be_empty_body = request, True, False
        writer = self._payload_writer = request.writer
        headers = self._headers
        headers[hdrs.CONTENT_LENGTH] = str(len(body))
        headers[hdrs.DATE] = rfc822_formatted_time()
        await request._prepare_hook(self)
        await writer.write_headers(f"HTTP/1.1 {self._status} {self._reason}", headers)
        return writer
