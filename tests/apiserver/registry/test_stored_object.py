"""The bytes of an object, and what is known of it without reading them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apiserver.meta.resource import describe
from apiserver.registry.stored_object import ObjectCodec, UnreadableObject
from storage.store import KeyValue
from tests.apiserver.gadgets import ClusterGadget, Gadget

UID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def codec() -> ObjectCodec:
    return ObjectCodec(describe(Gadget))


def gadget(**metadata: Any) -> dict[str, Any]:
    metadata = {"uid": UID, "namespace": "ns1", "name": "x", **metadata}
    return {"kind": "Gadget", "apiVersion": "example.dev/v1", "spec": {"replicas": 1}, "metadata": metadata}


def test_clients_get_sorted_json_with_the_resource_version_in_place(codec: ObjectCodec) -> None:
    encoded = codec.encode(gadget(labels={"a": "b"}, ownerReferences=[{"uid": UID}], resourceVersion="5"))
    stored = encoded.stored(KeyValue("k", encoded.value, 17))
    expected = orjson.dumps(gadget(labels={"a": "b"}, ownerReferences=[{"uid": UID}], resourceVersion="17"), option=orjson.OPT_SORT_KEYS)
    assert stored.wire == expected
    assert (stored.namespace, stored.name, stored.uid, stored.labels) == ("ns1", "x", UID, {"a": "b"})
    assert orjson.loads(stored.metadata_wire)["resourceVersion"] == stored.resource_version == "17"


def test_the_stored_form_has_no_resource_version_and_ends_with_a_newline(codec: ObjectCodec) -> None:
    encoded = codec.encode(gadget(resourceVersion="5"))
    stored = encoded.stored(KeyValue("k", encoded.value, 17))
    assert stored.value == encoded.value == orjson.dumps(gadget(), option=orjson.OPT_SORT_KEYS) + b"\n"
    assert codec.decode(KeyValue("k", stored.value, 17)).wire == stored.wire


def test_what_others_wrote_comes_into_the_same_form(codec: ObjectCodec) -> None:
    metadata = b'{"name":"x","uid":"%b","namespace":"ns1"}' % UID.encode()
    foreign = b'{ "metadata":%b,"spec":{"note":"\\u003c"},"kind":"Gadget","apiVersion":"example.dev/v1"}' % metadata
    stored = codec.decode(KeyValue("k", foreign, 3))
    assert stored.content == b',"spec":{"note":"<"}}'
    assert stored.value == codec.encode(stored.object()).value


def test_a_deletion_reports_the_last_state_under_its_own_revision(codec: ObjectCodec) -> None:
    stored = codec.decode(KeyValue("k", codec.encode(gadget()).value, 3))
    later = stored.at(1234)
    assert (later.object()["metadata"]["resourceVersion"], later.value, later.revision) == ("1234", stored.value, 1234)


def test_an_object_that_was_not_stored_has_no_resource_version(codec: ObjectCodec) -> None:
    encoded = codec.encode(gadget())
    stored = encoded.stored(KeyValue("k", encoded.value, 0))
    assert "resourceVersion" not in stored.object()["metadata"]
    assert (stored.value, stored.resource_version) == (encoded.value, "")


def test_keys_are_those_of_kube_apiserver(codec: ObjectCodec) -> None:
    assert codec.key("ns1", "x") == "/registry/example.dev/gadgets/ns1/x"
    assert codec.prefix("ns1") == "/registry/example.dev/gadgets/ns1/"
    assert codec.prefix() == "/registry/example.dev/gadgets/"
    assert ObjectCodec(describe(ClusterGadget)).key("", "x") == "/registry/example.dev/clustergadgets/x"


@pytest.mark.parametrize("value", [b"{", b"[]", b"{}", b'{"metadata":{"name":"x"}}'], ids=["no-json", "list", "empty", "no-uid"])
def test_what_is_no_object_has_an_address_and_is_kept_as_it_is(codec: ObjectCodec, value: bytes) -> None:
    key = codec.key("ns1", "x")
    obj = codec.decode(KeyValue(key, value, 3))
    assert isinstance(obj, UnreadableObject)
    assert (obj.key, obj.revision, obj.namespace, obj.name, obj.value) == (key, 3, "ns1", "x", value)
    newer = codec.encode(gadget()).stored(KeyValue(key, codec.encode(gadget()).value, 4))
    obj.retire(newer)
    assert obj.value == value
    newer.retire(obj)
    assert newer.value == codec.encode(gadget()).value


def test_derived_forms_are_made_once(codec: ObjectCodec) -> None:
    stored = codec.decode(KeyValue("k", codec.encode(gadget()).value, 3))
    assert stored.memo("row", lambda _: object()) is stored.memo("row", lambda _: object())


def test_of_what_changes_nothing_an_object_knows_the_last_few(codec: ObjectCodec) -> None:
    encoded = codec.encode(gadget())
    obj = encoded.stored(KeyValue("k", encoded.value, 17))
    for number in range(100):
        obj.note_unchanged_by(number)
        assert obj.is_unchanged_by(number)
    known = [number for number in range(100) if obj.is_unchanged_by(number)]
    assert known == [96, 97, 98, 99]
