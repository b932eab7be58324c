"""The protobuf form says what the document says. Numbers of members are those of gnostic's OpenAPIv2.proto."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from openapi import v2, v2_protobuf
from openapi.document import Document
from openapi.published import PublishedResource
from openapi.structural import Schema

OWN = {name: Schema(type="string") for name in ("apiVersion", "kind", "metadata")}
SCHEMA = Schema(
    type="object",
    description="ümlaut",
    properties=OWN
    | {
        "spec": Schema(
            type="number", format="double", minimum=-1.5, maximum=7, exclusive_minimum=True, exclusive_maximum=True, multiple_of=0.5
        ),
        "text": Schema(type="string", min_length=0, max_length=300, pattern="^a$", enum=("a", "b")),
        "list": Schema(type="array", items=Schema(type="string"), min_items=1, max_items=2, list_type="set", list_type_declared=True),
        "map": Schema(type="object", additional_properties=Schema(int_or_string=True), min_properties=1, max_properties=2),
    },
    required=("spec", "text"),
)
THING = PublishedResource("a.example", "v1", "Thing", "ThingList", "things", True, SCHEMA, True, True)


def members(content: bytes) -> Iterator[tuple[int, Any]]:
    """The members of a message: number, and a whole number, a double or bytes."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = content[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(content):
        tag = varint()
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            yield number, varint()
        elif wire_type == 1:
            position += 8
            yield number, struct.unpack("<d", content[position - 8 : position])[0]
        else:
            size = varint()
            position += size
            yield number, content[position - size : position]


def only(content: bytes, number: int) -> Any:
    (value,) = [value for found, value in members(content) if found == number]
    return value


def named(content: bytes, number: int) -> dict[str, bytes]:
    """The members of a map, by name."""
    return {only(entry, 1).decode(): only(entry, 2) for found, entry in members(content) if found == number}


@pytest.fixture(scope="module")
def swagger() -> Document:
    return v2.document([THING], title="t", version="v1")


@pytest.fixture(scope="module")
def content(swagger: Document) -> bytes:
    return v2_protobuf.encoded(swagger).content


def test_it_has_every_path_definition_and_parameter(swagger: Document, content: bytes) -> None:
    document = json.loads(swagger.content)
    assert set(named(only(content, 8), 2)) == set(document["paths"])
    assert set(named(only(content, 9), 1)) == set(document["definitions"])
    assert set(named(only(content, 10), 1)) == set(document["parameters"])
    assert only(content, 1) == b"2.0"


def test_every_fact_of_a_schema_is_there(content: bytes) -> None:
    thing = named(only(content, 9), 1)["example.a.v1.Thing"]
    assert only(thing, 4).decode() == "ümlaut"
    assert [value for number, value in members(thing) if number == 19] == [b"spec", b"text"]
    properties = named(only(thing, 25), 1)
    number, text = dict(members(properties["spec"])), properties["text"]
    assert {key: number[key] for key in (2, 6, 7, 8, 9, 10)} == {2: b"double", 6: 0.5, 7: 7.0, 8: 1, 9: -1.5, 10: 1}
    assert only(number[22], 1) == b"number"
    assert (only(text, 11), only(text, 12), only(text, 13)) == (300, 0, b"^a$")
    assert [only(value, 2) for found, value in members(text) if found == 20] == [b'"a"', b'"b"']
    listed, mapped = properties["list"], properties["map"]
    assert (only(listed, 14), only(listed, 15), only(mapped, 17), only(mapped, 18)) == (2, 1, 2, 1)
    assert only(only(only(only(listed, 23), 1), 22), 1) == b"string"
    assert only(named(listed, 31)["x-kubernetes-list-type"], 2) == b'"set"'
    assert only(named(only(only(mapped, 21), 1), 31)["x-kubernetes-int-or-string"], 2) == b"true"
    assert only(properties["metadata"], 1) == b"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def test_a_kind_can_be_found_by_its_group_version_kind(content: bytes) -> None:
    """T012: kubectl looks it up in this form."""
    thing = named(only(content, 9), 1)["example.a.v1.Thing"]
    identity = orjson.loads(only(named(thing, 31)["x-kubernetes-group-version-kind"], 2))
    assert identity == [{"group": "a.example", "kind": "Thing", "version": "v1"}]


def test_operations_with_their_parameters_bodies_and_answers(content: bytes) -> None:
    item = named(only(content, 8), 2)["/apis/a.example/v1/namespaces/{namespace}/things/{name}"]
    patch = only(item, 8)
    assert [value for number, value in members(patch) if number == 7] == [
        b"application/json-patch+json",
        b"application/merge-patch+json",
        b"application/apply-patch+yaml",
    ]
    assert only(patch, 5) == b"patchAExampleV1NamespacedThing"
    responses = named(only(patch, 9), 1)
    assert set(responses) == {"200", "401"}
    assert only(only(only(only(responses["200"], 1), 2), 1), 1) == b"#/definitions/example.a.v1.Thing"
    name = next(members(next(value for number, value in members(item) if number == 9)))[1]
    path_parameter = dict(members(only(only(name, 2), 4)))
    assert path_parameter == {1: 1, 2: b"path", 3: b"name of the Thing", 4: b"name", 5: b"string", 19: 1}
    body = next(value for number, value in members(only(item, 3)) if number == 8)
    assert only(only(only(body, 1), 1), 4) == 1


def test_a_member_that_has_no_number_is_a_fault_and_not_left_out() -> None:
    with pytest.raises(KeyError, match="unheard"):
        v2_protobuf.encoded(Document(orjson.dumps({"unheard": 1}), ""))
