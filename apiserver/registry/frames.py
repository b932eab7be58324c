"""Watch events as bytes: one line of JSON for each, and several lines packed into one chunk of a response.

Made once for all watchers that want the same form. The framing of a chunk is HTTP/1.1's, since a frame that many connections share must be
complete; nothing else here knows the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from apiserver.registry.partial import partial_bytes, partial_of_metadata

if TYPE_CHECKING:
    from apiserver.meta.errors import APIError
    from apiserver.meta.resource import ResourceKind
    from apiserver.registry.forms import Form
    from apiserver.registry.stored_object import StoredObject

ADDED = b'{"type":"ADDED","object":'
MODIFIED = b'{"type":"MODIFIED","object":'
DELETED = b'{"type":"DELETED","object":'
_BOOKMARK = b'{"type":"BOOKMARK","object":'
_ERROR = b'{"type":"ERROR","object":'
_END = b"}\n"
_INITIAL_EVENTS_END = b'"annotations":{"k8s.io/initial-events-end":"true"},'


class Frames:
    """The events of one kind in one form."""

    def __init__(self, kind: ResourceKind, form: Form, *, chunked: bool) -> None:
        self._form = form
        self._tables = form.tables if form.as_ == "Table" else None
        self._partial = form.as_ == "PartialObjectMetadata"
        self._chunked = chunked
        self._bookmark_head = b'{"apiVersion":%b,"kind":%b,"metadata":' % (orjson.dumps(kind.api_version), orjson.dumps(kind.kind))
        self.has_headers = self._tables is not None
        """Whether the first event of each watcher differs from the others: it has the columns of the table."""

    def event(self, type_: bytes, obj: StoredObject, *, headers: bool = False) -> bytes:
        """One event; `type_` is ADDED, MODIFIED or DELETED of this module."""
        if self._tables is not None:
            return b"".join((type_, self._tables.single(obj, self._form, headers=headers), _END))
        if self._partial:
            return b"".join((type_, partial_bytes(obj, self._form.version), _END))
        return b"".join((type_, obj.wire, _END))

    def bookmark(self, revision: int, *, initial_events_end: bool = False, headers: bool = False) -> bytes:
        """The event that says: everything up to `revision` has been delivered; and if asked so: all that existed has."""
        metadata = b'{%b"resourceVersion":"%d"}' % (_INITIAL_EVENTS_END if initial_events_end else b"", revision)
        if self._partial:
            return b"".join((_BOOKMARK, partial_of_metadata(metadata, self._form.version), _END))
        value = b"".join((self._bookmark_head, metadata, b"}"))
        if self._tables is not None:
            value = self._tables.bookmark(value, self._form, initial_events_end=initial_events_end, headers=headers)
        return b"".join((_BOOKMARK, value, _END))

    def error(self, error: APIError) -> bytes:
        """The event that ends a watch; a Status in every form."""
        return b"".join((_ERROR, orjson.dumps(error.to_status()), _END))

    def pack(self, events: Sequence[bytes]) -> bytes:
        """Several events as they go to a connection."""
        if not self._chunked:
            return b"".join(events)
        return b"".join((b"%x\r\n" % sum(map(len, events)), *events, b"\r\n"))
