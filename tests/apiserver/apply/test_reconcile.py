"""What managers own under an older schema, read under a newer one in which more is atomic."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apply import reconcile
from openapi.structural import Schema

TEXT = Schema(type="string")
WORDS = Schema(type="array", items=TEXT)
ATOMIC = Schema(type="object", map_type="atomic", properties={"a": TEXT})
ITEM = Schema(type="object", properties={"name": TEXT, "words": WORDS, "plain": TEXT})
SCHEMA = Schema(
    type="object",
    properties={
        "plain": Schema(type="object", properties={"a": TEXT}),
        "whole": ATOMIC,
        "words": WORDS,
        "items": Schema(type="array", items=ITEM, list_type="map", list_map_keys=("name",)),
        "groups": Schema(type="object", additional_properties=Schema(type="object", properties={"whole": ATOMIC})),
        "raw": Schema(preserve_unknown_fields=True),
    },
)
RECONCILE = reconcile.compile(SCHEMA)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"f:whole": {"f:a": {}}}, {"f:whole": {}}, id="a-map"),
        pytest.param({"f:whole": {".": {}, "f:a": {}}, "f:plain": {"f:a": {}}}, {"f:whole": {}, "f:plain": {"f:a": {}}}, id="with-itself"),
        pytest.param({"f:words": {'v:"x"': {}}}, {"f:words": {}}, id="a-list"),
        pytest.param(
            {"f:items": {'k:{"name":"A"}': {".": {}, "f:words": {'v:"x"': {}}, "f:name": {}}}},
            {"f:items": {'k:{"name":"A"}': {".": {}, "f:words": {}, "f:name": {}}}},
            id="in-an-item",
        ),
        pytest.param({"f:groups": {"f:g": {"f:whole": {"f:a": {}}}}}, {"f:groups": {"f:g": {"f:whole": {}}}}, id="in-a-map-with-free-keys"),
    ],
)
def test_what_has_become_atomic_is_owned_as_a_whole(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert RECONCILE(fields) == expected


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"f:plain": {".": {}, "f:a": {}}, "f:whole": {}, "f:words": {}}, id="fits-already"),
        pytest.param({"f:raw": {"f:whole": {"f:a": {}}}, "f:unknown": {"f:a": {}}}, id="not-described"),
    ],
)
def test_a_set_that_fits_is_returned_itself(fields: dict[str, Any]) -> None:
    assert RECONCILE(fields) is fields
