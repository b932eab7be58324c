"""Tables: paths, cells, ages."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apiserver.meta.resource import describe
from apiserver.registry.forms import Form
from apiserver.registry.jsonpath import JSONPath
from apiserver.registry.stored_object import ObjectCodec, StoredObject
from apiserver.registry.table import TableConvertor
from storage.snapshot import Block
from storage.store import KeyValue
from tests.apiserver.gadgets import Gadget

VALUE = {
    "spec": {"a.b": 1, "list": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}], "none": None},
    "metadata": {"name": "n"},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["n"]),
        (r".spec.a\.b", [1]),
        (".spec['a.b']", [1]),
        (".spec.list[0].status", ["True"]),
        (".spec.list[-1].type", ["Old"]),
        (".spec.list[7].type", []),
        (".spec.list[*].type", ["Ready", "Old"]),
        ('.spec.list[?(@.type=="Ready")].status', ["True"]),
        (".spec.list[?(@.type != 'Ready')].status", ["False"]),
        (".spec.list[?(@.status)].type", ["Ready", "Old"]),
        (".spec.none", [None]),
        (".spec.missing.deeper", []),
        (".metadata.name.deeper", []),
    ],
)
def test_path_finds(path: str, found: list[Any]) -> None:
    assert JSONPath(path).find(VALUE) == found


@pytest.mark.parametrize("path", ["spec", ".spec[", ".spec..a", ".a[1:2]", ".a[?(@.b>1)]"])
def test_path_that_is_not_understood_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="cannot read the JSONPath"):
        JSONPath(path)


def stored(spec: dict[str, Any], *, created: str = "2026-01-01T00:00:00Z") -> StoredObject:
    codec = ObjectCodec(describe(Gadget))
    metadata = {"name": "g", "namespace": "ns1", "uid": "u", "creationTimestamp": created}
    value = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": metadata, "spec": spec}
    return codec.decode(KeyValue(codec.key("ns1", "g"), codec.encode(value).value, 7))


def row_of(tables: TableConvertor, obj: StoredObject, now: float) -> dict[str, Any]:
    block = Block([obj.key], [obj])
    row: dict[str, Any] = orjson.loads(tables.rows(block, Form(as_="Table", tables=tables), separator=b",", now=now))
    return row


@pytest.mark.parametrize(
    ("spec", "cell"), [({"replicas": 3}, 3), ({}, None), ({"replicas": 2.0}, 2), ({"replicas": "3"}, None), ({"replicas": True}, None)]
)
def test_cell_has_the_type_of_its_column(spec: dict[str, Any], cell: int | None) -> None:
    """T054."""
    tables = TableConvertor(describe(Gadget))
    row = row_of(tables, stored(spec), 1767225600.0 + 300)
    assert row["cells"] == ["g", cell, "5m"]


def test_age_grows_while_the_other_cells_are_kept() -> None:
    tables = TableConvertor(describe(Gadget))
    obj = stored({"replicas": 1})
    assert [row_of(tables, obj, 1767225600.0 + age)["cells"][2] for age in (1, 61, 3600)] == ["1s", "61s", "60m"]


def test_moment_that_is_none_is_no_age() -> None:
    tables = TableConvertor(describe(Gadget))
    row = row_of(tables, stored({}, created="yesterday"), 0.0)
    assert row["cells"][2] == "<invalid>"
