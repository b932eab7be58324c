"""Watch events as bytes: a line of JSON or a record of protobuf for each, and several of them packed into one chunk of a response.

Made once for all watchers that want the same form. A piece that many connections share must be complete, so what frames it is put on here:
a chunk of HTTP/1.1, compressed or not, or a message of RFC 6455 for each event. Nothing else here knows the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import orjson

from apiserver.meta import protobuf
from apiserver.registry.deflated import Deflated, deflate
from apiserver.registry.partial import partial_bytes, partial_of_metadata, partial_protobuf

if TYPE_CHECKING:
    from apiserver.meta.errors import APIError
    from apiserver.meta.resource import ResourceKind
    from apiserver.registry.forms import Form
    from apiserver.registry.stored_object import StoredObject
    from storage.snapshot import Block

Framing = Literal["plain", "chunked", "gzip", "websocket"]
"""What stands around events on a connection: nothing, a chunk around each piece, a chunk around each compressed piece of one gzip file, or
a message around each event."""

ADDED = b"ADDED"
MODIFIED = b"MODIFIED"
DELETED = b"DELETED"
_BOOKMARK = b"BOOKMARK"
_ERROR = b"ERROR"
_TEXT, _BINARY = b"\x81", b"\x82"
_INITIAL_EVENTS_END = b'"annotations":{"k8s.io/initial-events-end":"true"},'


@dataclass(frozen=True, slots=True)
class Pack:
    """Several events as they go to a connection."""

    data: bytes
    segment: Deflated | None = None
    """What is in it, when that is a piece of a gzip file."""


class Frames:
    """The events of one kind in one form."""

    def __init__(self, kind: ResourceKind, form: Form, framing: Framing) -> None:
        self._form = form
        self._tables = form.tables if form.as_ == "Table" else None
        self._partial = form.as_ == "PartialObjectMetadata"
        self._protobuf = form.is_protobuf
        self._framing = framing
        self._bookmark_head = b'{"apiVersion":%b,"kind":%b,"metadata":' % (orjson.dumps(kind.api_version), orjson.dumps(kind.kind))
        self.has_headers = self._tables is not None
        """Whether the first event of each watcher differs from the others: it has the columns of the table."""
        self._kept = f"added/{form.media_type}/{form.as_}/{form.version}" if framing == "gzip" and self._tables is None else ""

    def event(self, type_: bytes, obj: StoredObject, *, headers: bool = False) -> bytes:
        """One event; `type_` is ADDED, MODIFIED or DELETED of this module."""
        if self._tables is not None:
            return self._line(type_, self._tables.single(obj, self._form, headers=headers))
        if self._protobuf:
            return self._record(type_, self._in_envelope(partial_protobuf(obj)))
        if self._partial:
            return self._line(type_, partial_bytes(obj, self._form.version))
        return self._line(type_, obj.wire)

    def bookmark(self, revision: int, *, initial_events_end: bool = False, headers: bool = False) -> bytes:
        """The event that says: everything up to `revision` has been delivered; and if asked so: all that existed has."""
        metadata = b'{%b"resourceVersion":"%d"}' % (_INITIAL_EVENTS_END if initial_events_end else b"", revision)
        if self._protobuf:
            return self._record(_BOOKMARK, self._in_envelope(protobuf.partial_object_metadata(orjson.loads(metadata))))
        if self._partial:
            return self._line(_BOOKMARK, partial_of_metadata(metadata, self._form.version))
        value = b"".join((self._bookmark_head, metadata, b"}"))
        if self._tables is not None:
            value = self._tables.bookmark(value, self._form, initial_events_end=initial_events_end, headers=headers)
        return self._line(_BOOKMARK, value)

    def error(self, error: APIError) -> bytes:
        """The event that ends a watch; a Status in every form."""
        if self._protobuf:
            return self._record(_ERROR, protobuf.status(error.to_status()))
        return self._line(_ERROR, orjson.dumps(error.to_status()))

    def added(self, block: Block[StoredObject]) -> Pack | None:
        """The events of all objects of a block; None for a form of which nothing is kept with blocks.

        Compressed only: what is sent as it is would take as much memory again as the objects.
        """
        if not self._kept:
            return None
        pack: Pack | None = block.kept.get(self._kept)
        if pack is None:
            pack = block.kept[self._kept] = self.pack([self.event(ADDED, obj) for obj in block.entries])
        return pack

    def pack(self, events: Sequence[bytes]) -> Pack:
        """Several events in one piece."""
        if self._framing == "gzip":
            segment = deflate(b"".join(events))
            return Pack(chunk(segment.data), segment)
        return Pack(chunk(*events) if self._framing == "chunked" else b"".join(events))

    def _line(self, type_: bytes, value: bytes) -> bytes:
        line = b"".join((b'{"type":"', type_, b'","object":', value, b"}\n"))
        return line if self._framing != "websocket" else b"".join((_TEXT, _message_length(len(line)), line))

    def _record(self, type_: bytes, value: bytes) -> bytes:
        record = protobuf.watch_event(type_, value)
        head = _BINARY + _message_length(len(record)) if self._framing == "websocket" else len(record).to_bytes(4, "big")
        return head + record

    def _in_envelope(self, message: bytes) -> bytes:
        return protobuf.envelope(self._form.meta_api_version, "PartialObjectMetadata", message)


def chunk(*parts: bytes) -> bytes:
    """Bytes as one chunk of an HTTP/1.1 body."""
    return b"".join((b"%x\r\n" % sum(map(len, parts)), *parts, b"\r\n"))


def _message_length(length: int) -> bytes:
    """The length of a message that is not masked, as a server sends it.

    Source: https://www.rfc-editor.org/rfc/rfc6455#section-5.2
    """
    if length < 126:
        return bytes((length,))
    return b"\x7e" + length.to_bytes(2, "big") if length < 65536 else b"\x7f" + length.to_bytes(8, "big")
