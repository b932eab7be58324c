"""A list as bytes, block by block: what has been made for a block of a snapshot is kept with it and serves every list that holds it.

Metadata is kept as JSON and as deflated JSON, of whole objects only the latter: joining them anew takes a third of what sending them takes,
and kept they would take as much memory as the objects. Tables (which show ages), indented JSON and YAML are made anew.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.meta import protobuf
from apiserver.registry.deflated import Deflated, deflate
from apiserver.registry.partial import partial_bytes, partial_protobuf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apiserver.meta.resource import ResourceKind
    from apiserver.registry.forms import Form
    from apiserver.registry.listing import ObjectList
    from apiserver.registry.stored_object import StoredObject
    from storage.snapshot import Block

_WHOLE = "whole"
_SIZE = "whole/size"
_ITEMS = {"v1": 2, "v1beta1": 1}
"""The number of the field `items` of a PartialObjectMetadataList; `metadata` has the other one."""


class ListBytes:
    """Lists of one kind in one form of JSON, or of their metadata in protobuf."""

    def __init__(self, kind: ResourceKind, form: Form) -> None:
        self._kind = kind
        self._form = form
        self.separator = b"" if form.is_protobuf else b",\n    " if form.pretty else b","
        """What stands between two blocks."""
        self._kept = "" if form.pretty or form.as_ == "Table" else f"{form.media_type}/{form.as_}/{form.version}" if form.as_ else _WHOLE

    @property
    def keeps(self) -> bool:
        """Whether something of a block's bytes is kept with it."""
        return bool(self._kept)

    def envelope(self, listed: ObjectList) -> tuple[bytes, bytes]:
        """What stands before the first item and after the last one. In protobuf it tells the length of them all, so it makes them."""
        form = self._form
        if form.is_protobuf:
            return self._protobuf_envelope(listed)
        if form.as_:
            metadata = _metadata(listed, drop_empty=True)
            if form.as_ == "Table" and form.tables is not None:
                value: dict[str, Any] = {
                    "kind": "Table",
                    "apiVersion": form.meta_api_version,
                    "metadata": metadata,
                    "columnDefinitions": orjson.Fragment(form.tables.definitions),
                    "rows": [],
                }
                if form.pretty:
                    value["columnDefinitions"] = orjson.loads(form.tables.definitions)
            else:
                value = {"kind": form.as_, "apiVersion": form.meta_api_version, "metadata": metadata, "items": []}
        else:
            value = {
                "apiVersion": self._kind.api_version,
                "items": [],
                "kind": self._kind.list_kind,
                "metadata": _metadata(listed, drop_empty=False),
            }
        encoded = orjson.dumps(value, option=orjson.OPT_INDENT_2 if form.pretty else None)
        # Names of kinds, versions and tokens hold no brackets; a description of a column may, but stands before the rows.
        head, _, tail = encoded.rpartition(b"[]")
        if not form.pretty:
            return head + b"[", b"]" + tail + b"\n"
        return (head + b"[\n    ", b"\n  ]" + tail) if listed.objects else (head + b"[", b"]" + tail)

    def _protobuf_envelope(self, listed: ObjectList) -> tuple[bytes, bytes]:
        # The two versions of meta.k8s.io number the same fields differently, and what comes first by number is written first.
        form = self._form
        number = 3 - _ITEMS[form.version]
        metadata = protobuf.embedded(number, protobuf.list_meta(_metadata(listed, drop_empty=True)))
        length = len(metadata) + sum(len(self.items(block)) for block in listed.blocks)
        head, tail = protobuf.envelope_around(form.meta_api_version, form.as_, length)
        return (head + metadata, tail) if number == 1 else (head, metadata + tail)

    def items(self, block: Block[StoredObject]) -> bytes:
        """The items of a block, without what stands before and after them."""
        if self._kept in ("", _WHOLE):
            return self._make(block)
        made: bytes | None = block.kept.get(self._kept)
        if made is None:
            made = block.kept[self._kept] = self._make(block)
        return made

    def pieces(self, block: Block[StoredObject], size_bytes: int) -> Iterator[bytes]:
        """The same, in pieces of about this size if they are joined anew: small ones go through the processor's caches."""
        if self._kept != _WHOLE:
            yield self.items(block)
            return
        step = max(size_bytes * len(block) // self.size_bytes(block), 1)
        for start in range(0, len(block), step):
            if start:
                yield self.separator
            yield self._make(block.part(start, start + step))

    def size_bytes(self, block: Block[StoredObject]) -> int:
        """The length of the items of a block; only for a form that keeps."""
        if self._kept != _WHOLE:
            return len(self.items(block))
        size_bytes: int | None = block.kept.get(_SIZE)
        if size_bytes is None:
            between = len(self.separator) * (len(block) - 1)
            size_bytes = block.kept[_SIZE] = sum([len(obj.wire) for obj in block.entries], between)
        return size_bytes

    def deflated(self, block: Block[StoredObject]) -> Deflated:
        """The items of a block, compressed; only for a form that keeps."""
        name = f"{self._kept}/deflated"
        made: Deflated | None = block.kept.get(name)
        if made is None:
            made = block.kept[name] = deflate(self.items(block))
        return made

    def _make(self, block: Block[StoredObject]) -> bytes:
        form = self._form
        if form.as_ == "Table" and form.tables is not None:
            rows = form.tables.rows(block, form, separator=b"," if not form.pretty else b"\n", now=time.time())
            if not form.pretty:
                return rows
            items = rows.split(b"\n")
        elif form.is_protobuf:
            items = [protobuf.embedded(_ITEMS[form.version], partial_protobuf(obj)) for obj in block.entries]
        elif form.as_:
            items = [partial_bytes(obj, form.version) for obj in block.entries]
        else:
            items = [obj.wire for obj in block.entries]
        if form.pretty:
            items = [orjson.dumps(orjson.loads(item), option=orjson.OPT_INDENT_2).replace(b"\n", b"\n    ") for item in items]
        return self.separator.join(items)


def _metadata(listed: ObjectList, *, drop_empty: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if listed.continue_token or not drop_empty:
        metadata["continue"] = listed.continue_token
    if listed.remaining is not None:
        metadata["remainingItemCount"] = listed.remaining
    metadata["resourceVersion"] = str(listed.revision)
    return metadata
