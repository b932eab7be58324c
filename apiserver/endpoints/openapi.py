"""`/openapi/v2` and `/openapi/v3`: the published documents, with the caching headers that make clients fetch each content once.

All documents are made together on first use, once, in a thread; in a cluster once more, with the cluster's words for shared types. The v2
document comes as protobuf too, which is all that kubectl asks for; the others are JSON, and a client that takes nothing else gets 406.
Source: https://github.com/kubernetes/kube-openapi/blob/d427ff9ee9ad/pkg/handler3/handler.go and pkg/handler/handler.go
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from aiohttp import web
from isal import igzip

from apiserver.endpoints.negotiation import accept_of, accepts_gzip, parse_accept, response_headers
from apiserver.meta import errors
from openapi import v2, v2_protobuf, v3
from openapi.operations import discovery_operations

if TYPE_CHECKING:
    from apiserver.meta.resource import ResourceKind
    from apiserver.request import Call, Handler
    from openapi.document import Document

_YEAR_SECONDS = 365 * 86400
_GZIP_ABOVE_BYTES = 1400
"""What fits into one packet gains nothing; the threshold of the handler that upstream uses for these documents."""
_JSON = "application/json"
_INDEX = "v3"


@dataclass(frozen=True, slots=True)
class _Published:
    """A document in one media type, plain and compressed. All its media types have the same hash."""

    content: bytes
    compressed: bytes
    hash: str


_Content = dict[str, _Published]
"""A document by media type."""


class Documents:
    """All documents of one server. Nothing is made before somebody asks."""

    def __init__(self, kinds: Sequence[ResourceKind], *, title: str, version: str) -> None:
        self._resources = [kind.published for kind in kinds]
        self._title = title
        self._version = version
        self._shared_words: Mapping[str, Any] = {}
        self._making: asyncio.Future[dict[str, _Content]] | None = None
        self.made_at = ""
        """When the documents were made, as a header writes it; empty before."""

    def adopt(self, definitions: Mapping[str, Any]) -> None:
        """Use the words of these definitions for shared types from now on, in the document that is merged with the one they are from."""
        if definitions != self._shared_words:
            self._shared_words = definitions
            self._making = None

    async def get(self, name: str) -> _Content:
        """Return the document at `/openapi/<name>`. Others share the making; cancelling one of them does not end it."""
        if self._making is None:
            self.made_at = formatdate(time.time(), usegmt=True)
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make, self._shared_words))
        return (await asyncio.shield(self._making))[name]

    def _make(self, shared_words: Mapping[str, Any]) -> dict[str, _Content]:
        by_version = v3.documents(self._resources, title=self._title, version=self._version)
        all_of_it = v2.document(self._resources, title=self._title, version=self._version, shared_words=shared_words)
        found = {f"{_INDEX}/{name}": {_JSON: _published(document)} for name, document in by_version.items()}
        found[_INDEX] = {_JSON: _published(v3.index(by_version))}
        as_protobuf = _Published(*_sizes(v2_protobuf.encoded(all_of_it).content), all_of_it.etag)
        found["v2"] = {_JSON: _published(all_of_it)} | dict.fromkeys(v2_protobuf.ACCEPTED, as_protobuf)
        return found


def _published(document: Document) -> _Published:
    return _Published(*_sizes(document.content), document.etag)


def _sizes(content: bytes) -> tuple[bytes, bytes]:
    return content, igzip.compress(content)


def make(documents: Documents, kinds: Sequence[ResourceKind]) -> dict[str, Handler]:
    """The handlers of the documents by path."""
    described = [operation.path.strip("/") for operation in discovery_operations(dict.fromkeys(kind.group for kind in kinds))]
    described += [f"apis/{kind.group}/{kind.version}" for kind in kinds]
    names = ["v2", _INDEX, *(f"{_INDEX}/{name}" for name in dict.fromkeys(described))]
    return {f"/openapi/{name}": _handler(documents, name) for name in names}


def _handler(documents: Documents, name: str) -> Handler:
    async def answer(call: Call) -> web.Response:
        if call.info.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        content = await documents.get(name)
        media_type = _JSON if name == _INDEX else _choose(accept_of(call), content)
        published = content[media_type]
        etag = f'"{published.hash}"'
        headers = response_headers(call, v2_protobuf.MEDIA_TYPE if media_type in v2_protobuf.ACCEPTED else media_type)
        headers["ETag"] = etag
        headers["Last-Modified"] = documents.made_at
        if name != _INDEX:
            headers["Vary"] = "Accept"
        wanted = call.info.query.get("hash", [""])[0] if name.startswith(f"{_INDEX}/") else ""
        if wanted and wanted != published.hash:
            headers["Location"] = f"/openapi/{name}?hash={published.hash}"
            return web.Response(status=301, headers=headers)
        if wanted:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = formatdate(time.time() + _YEAR_SECONDS, usegmt=True)
        if _matches(call.http.headers.get("If-None-Match", ""), etag):
            del headers["Content-Type"]
            return web.Response(status=304, headers=headers)
        body = published.content
        if len(body) > _GZIP_ABOVE_BYTES:
            headers.add("Vary", "Accept-Encoding")
            if accepts_gzip(call):
                headers["Content-Encoding"] = "gzip"
                body = published.compressed
        return web.Response(body=body, headers=headers)

    return answer


def _choose(accept: str, content: _Content) -> str:
    """The media type of the first clause that names one there is.

    Raises:
        APIError: 406.
    """
    for clause in parse_accept(accept or "*/*"):
        for media_type in content:
            if clause.accepts(media_type):
                return media_type
    raise errors.not_acceptable(list(content))


def _matches(if_none_match: str, etag: str) -> bool:
    """Whether a list of entity tags has this one; weak ones count, as they do for reading (RFC 9110)."""
    return if_none_match == "*" or any(tag.strip().removeprefix("W/") == etag for tag in if_none_match.split(","))
