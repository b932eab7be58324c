"""Tables: what `kubectl get` prints, as kube-apiserver makes them for custom resources.

The row of an object is made once and kept with it as bytes; only durations ("5m") are filled in for each answer. Knows no HTTP.
Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/registry/customresource/tableconvertor/tableconvertor.go
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.meta.time import human_duration
from apiserver.registry.jsonpath import JSONPath
from apiserver.registry.partial import partial_bytes, partial_of_metadata

if TYPE_CHECKING:
    from apiserver.meta.resource import ResourceKind
    from apiserver.registry.forms import Form
    from apiserver.registry.stored_object import StoredObject
    from storage.snapshot import Block

NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request "
    "the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration "
    "definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)


class Ages(dict[int, bytes]):
    """Ages as cells at one moment, each written once: objects that were made together share theirs."""

    def __init__(self, now: float) -> None:
        super().__init__()
        self._now = now

    def __missing__(self, moment: int) -> bytes:
        age = self[moment] = b'"%b"' % human_duration(self._now - moment).encode()
        return age


@dataclass(frozen=True, slots=True)
class Row:
    """The encoded row of one object: fixed pieces, and between each two of them a moment (Unix seconds) whose age is filled in."""

    pieces: tuple[bytes, ...]
    moments: tuple[int, ...]

    def parts(self, ages: Ages) -> list[bytes]:
        """The pieces with the ages between them."""
        parts = [self.pieces[0]]
        for moment, piece in zip(self.moments, self.pieces[1:], strict=True):
            parts += (ages[moment], piece)
        return parts


class TableConvertor:
    """The table layout of one kind: its name, then its columns."""

    def __init__(self, kind: ResourceKind) -> None:
        self._columns = tuple((JSONPath(column.json_path), column.type) for column in kind.columns)
        definitions = [{"name": "Name", "type": "string", "format": "name", "description": NAME_DESCRIPTION, "priority": 0}]
        for column in kind.columns:
            description = column.description or f"Custom resource definition column (in JSONPath format): {column.json_path}"
            definitions.append(
                {
                    "name": column.name,
                    "type": column.type,
                    "format": column.format,
                    "description": description,
                    "priority": column.priority,
                }
            )
        self.definitions = orjson.dumps(definitions)
        """The JSON of `columnDefinitions`."""

    def single(self, obj: StoredObject, form: Form, *, headers: bool = True) -> bytes:
        """A table of one object, without a newline."""
        row = b"".join(self._row(obj, form).parts(Ages(time.time())))
        return self._table(form, obj.resource_version, row, headers=headers)

    def bookmark(self, value: bytes, form: Form, *, initial_events_end: bool, headers: bool) -> bytes:
        """A table whose one row is a bookmark (`value`: its encoded object); its cells are empty but for the name, which is too."""
        obj = orjson.loads(value)
        metadata = obj["metadata"]
        cells = orjson.dumps(["", *(_cell(path.find(obj), kind) for path, kind in self._columns)])
        if form.include_object == "Object":
            content = value
        elif form.include_object == "None" and not initial_events_end:
            content = b"null"
        else:
            content = partial_of_metadata(orjson.dumps(metadata), form.version)
        row = b'{"cells":%b,"object":%b}' % (cells, content)
        return self._table(form, metadata["resourceVersion"], row, headers=headers)

    def rows(self, block: Block[StoredObject], form: Form, *, separator: bytes, now: float) -> bytes:
        """The rows of a block as they read at `now` (seconds since the epoch)."""
        ages = Ages(now)
        parts: list[bytes] = []
        for row in self._rows(block, form):
            parts.append(separator)
            parts += row.parts(ages)
        return b"".join(parts[1:])

    def _rows(self, block: Block[StoredObject], form: Form) -> list[Row]:
        if form.include_object == "Object":
            # The rows would hold every object a second time.
            return [self._make_row(obj, form) for obj in block.entries]
        name = f"rows/{form.version}/{form.include_object}"
        rows: list[Row] | None = block.kept.get(name)
        if rows is None:
            rows = block.kept[name] = [self._row(obj, form) for obj in block.entries]
        return rows

    def _row(self, obj: StoredObject, form: Form) -> Row:
        if form.include_object == "Object":
            return self._make_row(obj, form)
        return obj.memo(f"row/{form.version}/{form.include_object}", lambda obj: self._make_row(obj, form))

    def _table(self, form: Form, resource_version: str, row: bytes, *, headers: bool) -> bytes:
        return b'{"kind":"Table","apiVersion":"%b","metadata":{"resourceVersion":"%b"},"columnDefinitions":%b,"rows":[%b]}' % (
            form.meta_api_version.encode(),
            resource_version.encode(),
            self.definitions if headers else b"null",
            row,
        )

    def _make_row(self, obj: StoredObject, form: Form) -> Row:
        value = obj.object()
        pieces: list[bytes] = []
        moments: list[int] = []
        piece = b'{"cells":[' + orjson.dumps(obj.name)
        for path, type_ in self._columns:
            found = path.find(value)
            moment = _moment(found) if type_ == "date" else None
            if moment is None:
                piece += b"," + orjson.dumps(_cell(found, type_))
            else:
                pieces.append(piece + b",")
                moments.append(moment)
                piece = b""
        if form.include_object == "Object":
            content = obj.wire
        elif form.include_object == "None":
            content = b"null"
        else:
            content = partial_bytes(obj, form.version)
        pieces.append(b"".join((piece, b'],"object":', content, b"}")))
        return Row(tuple(pieces), tuple(moments))


def _moment(found: list[Any]) -> int | None:
    if not found or not isinstance(found[0], str):
        return None
    try:
        moment = datetime.fromisoformat(found[0])
    except ValueError:
        return None
    return int(moment.timestamp()) if moment.tzinfo is not None else None


def _cell(found: list[Any], type_: str) -> Any:
    """What a column of this type shows for what its path has found; None where the value is of another type."""
    if not found:
        return None
    value = found[0]
    if type_ == "string":
        return _text(value)
    if value is None or (isinstance(value, bool) and type_ != "boolean"):
        return None
    if type_ == "integer" and isinstance(value, int | float):
        return int(value)
    if type_ == "number" and isinstance(value, int | float):
        return value
    if type_ == "boolean" and isinstance(value, bool):
        return value
    if type_ == "date" and isinstance(value, str):
        return "<invalid>"
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
