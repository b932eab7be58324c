"""`/openapi/v2` and `/openapi/v3`: the published documents with the caching headers that make clients fetch each content once.

The documents are made on first use, once, in a thread. JSON only: a client that takes nothing but protobuf gets 406.
Source: https://github.com/kubernetes/kube-openapi/tree/master/pkg/handler3
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING

from aiohttp import web
from isal import igzip

from apiserver.endpoints.negotiation import accepts_gzip, parse_accept, response_headers
from apiserver.meta import errors
from openapi import v2, v3

if TYPE_CHECKING:
    from apiserver.meta.resource import ResourceKind
    from apiserver.request import Call, Handler
    from openapi.document import Document

_YEAR_SECONDS = 365 * 86400
_GZIP_ABOVE_BYTES = 1400
"""What fits into one packet gains nothing; the threshold of the handler that upstream uses for these documents."""


@dataclass(frozen=True, slots=True)
class _Published:
    """A document, plain and compressed."""

    document: Document
    compressed: bytes

    @property
    def etag(self) -> str:
        return f'"{self.document.etag}"'


class Documents:
    """All documents of one server. Nothing is made before somebody asks."""

    def __init__(self, kinds: Sequence[ResourceKind], *, title: str, version: str) -> None:
        self._resources = [kind.published for kind in kinds]
        self._title = title
        self._version = version
        self._making: asyncio.Future[dict[str, _Published]] | None = None
        self._made_at = ""

    async def get(self, name: str) -> _Published | None:
        """Return the document at `/openapi/<name>`, or None."""
        if self._making is None:
            self._made_at = formatdate(time.time(), usegmt=True)
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        return (await asyncio.shield(self._making)).get(name)

    @property
    def made_at(self) -> str:
        """When the documents were made, as a header writes it."""
        return self._made_at

    def _make(self) -> dict[str, _Published]:
        by_version = v3.documents(self._resources, title=self._title, version=self._version)
        found = {"v2": v2.document(self._resources, title=self._title, version=self._version), "v3": v3.index(by_version)}
        found.update((f"v3/{name}", document) for name, document in by_version.items())
        return {name: _Published(document, igzip.compress(document.content)) for name, document in found.items()}


def make(documents: Documents, kinds: Sequence[ResourceKind]) -> dict[str, Handler]:
    """The handlers of the documents by path."""
    names = ["v2", "v3", "v3/apis"]
    for kind in kinds:
        names += (f"v3/apis/{kind.group}", f"v3/apis/{kind.group}/{kind.version}")
    return {f"/openapi/{name}": _handler(documents, name) for name in dict.fromkeys(names)}


def _handler(documents: Documents, name: str) -> Handler:
    async def answer(call: Call) -> web.Response:
        if call.info.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        if name != "v3" and not _takes_json(call.http.headers.get("Accept", "")):
            raise errors.not_acceptable(["application/json"])
        published = await documents.get(name)
        if published is None:
            raise errors.path_not_found()
        headers = response_headers(call, "application/json")
        headers["ETag"] = published.etag
        headers["Last-Modified"] = documents.made_at
        if name != "v3":
            headers["Vary"] = "Accept"
        wanted = call.info.query.get("hash", [""])[0] if name.startswith("v3/") else ""
        if wanted and wanted != published.document.etag:
            headers["Location"] = f"/openapi/{name}?hash={published.document.etag}"
            return web.Response(status=301, headers=headers)
        if wanted:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = formatdate(time.time() + _YEAR_SECONDS, usegmt=True)
        if _matches(call.http.headers.get("If-None-Match", ""), published.etag):
            del headers["Content-Type"]
            return web.Response(status=304, headers=headers)
        body = published.document.content
        if len(body) > _GZIP_ABOVE_BYTES:
            headers.add("Vary", "Accept-Encoding")
            if accepts_gzip(call):
                headers["Content-Encoding"] = "gzip"
                body = published.compressed
        return web.Response(body=body, headers=headers)

    return answer


def _takes_json(accept: str) -> bool:
    return not accept or any(clause.accepts("application/json") for clause in parse_accept(accept))


def _matches(if_none_match: str, etag: str) -> bool:
    """Whether a list of entity tags has this one; weak ones count, as they do for reading (RFC 9110)."""
    return if_none_match == "*" or any(tag.strip().removeprefix("W/") == etag for tag in if_none_match.split(","))
