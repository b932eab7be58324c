"""Kubernetes' protobuf for what is no custom resource: metadata alone, failures, and the documents of discovery.

Clients that read nothing but metadata ask for it first, such as the garbage collector.

Messages are written as kube-apiserver writes them, byte for byte: fields in the order of their numbers, a field that is no pointer in Go
also when it is empty, maps sorted by key. Nothing is read here. Knows JSON values only.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/apis/meta/v1/generated.proto
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

_MAGIC = b"k8s\x00"
_VARINT, _BYTES = 0, 2

Encode = Callable[[Any], bytes]


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """A message as it travels: with the magic number, and with its kind around it."""
    head, tail = envelope_around(api_version, kind, len(message))
    return b"".join((head, message, tail))


def envelope_around(api_version: str, kind: str, length: int) -> tuple[bytes, bytes]:
    """What stands before and after a message of this length."""
    type_ = _type_meta({"apiVersion": api_version, "kind": kind})
    return b"".join((_MAGIC, b"\x0a", _delimited(type_), b"\x12", varint(length))), b'\x1a\x00"\x00'


def watch_event(type_: bytes, value: bytes) -> bytes:
    """A WatchEvent; `value` is an object in its envelope."""
    return b"".join((b"\x0a", _delimited(type_), b"\x12", _delimited(b"\x0a" + _delimited(value))))


def status(value: Mapping[str, Any]) -> bytes:
    """A metav1.Status in its envelope."""
    return envelope("v1", "Status", _status(value))


def discovery_document(value: Mapping[str, Any]) -> bytes:
    """An APIGroupList, APIGroup, APIResourceList or APIGroupDiscoveryList in its envelope."""
    return envelope(value["apiVersion"], value["kind"], _DISCOVERY_DOCUMENTS[value["kind"]](value))


def partial_object_metadata(metadata: Mapping[str, Any]) -> bytes:
    """The message PartialObjectMetadata."""
    return b"\x0a" + _delimited(_object_meta(metadata))


def list_meta(metadata: Mapping[str, Any]) -> bytes:
    """The message ListMeta."""
    return _list_meta(metadata)


def embedded(number: int, message: bytes) -> bytes:
    """A message as a field of another one."""
    return _tag(number, _BYTES) + _delimited(message)


def varint(number: int) -> bytes:
    """An integer of up to 64 bits; a negative one takes ten bytes."""
    if 0 <= number < 128:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    digits.append(number)
    return bytes(digits)


@dataclass(frozen=True, slots=True)
class _Field:
    member: str
    tag: bytes
    encode: Encode
    absent: bytes = b""
    """What is written when there is no such member."""
    repeated: bool = False


def _message(*fields: _Field) -> Encode:
    def encode(value: Mapping[str, Any]) -> bytes:
        parts: list[bytes] = []
        for field in fields:
            member = value.get(field.member)
            if member is None:
                parts.append(field.absent)
            elif not field.repeated:
                parts += (field.tag, field.encode(member))
            else:
                for item in sorted(member.items()) if member.__class__ is dict else member:
                    parts += (field.tag, field.encode(item))
        return b"".join(parts)

    return encode


def _always(number: int, member: str, encode: Encode, zero: Any) -> _Field:
    field = _pointer(number, member, encode)
    return _Field(member, field.tag, encode, field.tag + encode(zero))


def _pointer(number: int, member: str, encode: Encode) -> _Field:
    return _Field(member, _tag(number, _VARINT if encode in (varint, _bool) else _BYTES), encode)


def _each(number: int, member: str, encode: Encode) -> _Field:
    return _Field(member, _tag(number, _BYTES), encode, repeated=True)


def _text(number: int, member: str) -> _Field:
    return _always(number, member, _string, "")


def _tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def _delimited(content: bytes) -> bytes:
    return varint(len(content)) + content


def _nested(message: Encode) -> Encode:
    return lambda value: _delimited(message(value))


def _string(text: str) -> bytes:
    return _delimited(text.encode())


def _bool(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _entry(item: tuple[str, str]) -> bytes:
    return _delimited(b"".join((b"\x0a", _string(item[0]), b"\x12", _string(item[1]))))


def _time(text: str) -> bytes:
    """A Time; the zero time is an empty message, and fractions of a second do not travel."""
    if not text or text.startswith("0001-01-01T00:00:00"):
        return b"\x00"
    seconds = int(datetime.fromisoformat(text).timestamp() // 1)
    return _delimited(b"".join((b"\x08", varint(seconds), b"\x10\x00")))


def _fields_v1(fields: Any) -> bytes:
    return _delimited(b"\x0a" + _delimited(orjson.dumps(fields)))


_type_meta = _message(_text(1, "apiVersion"), _text(2, "kind"))
_owner_reference = _message(
    _text(1, "kind"),
    _text(3, "name"),
    _text(4, "uid"),
    _text(5, "apiVersion"),
    _pointer(6, "controller", _bool),
    _pointer(7, "blockOwnerDeletion", _bool),
)
_managed_fields_entry = _message(
    _text(1, "manager"),
    _text(2, "operation"),
    _text(3, "apiVersion"),
    _pointer(4, "time", _time),
    _text(6, "fieldsType"),
    _pointer(7, "fieldsV1", _fields_v1),
    _text(8, "subresource"),
)
_object_meta = _message(
    _text(1, "name"),
    _text(2, "generateName"),
    _text(3, "namespace"),
    _text(4, "selfLink"),
    _text(5, "uid"),
    _text(6, "resourceVersion"),
    _always(7, "generation", varint, 0),
    _always(8, "creationTimestamp", _time, ""),
    _pointer(9, "deletionTimestamp", _time),
    _pointer(10, "deletionGracePeriodSeconds", varint),
    _each(11, "labels", _entry),
    _each(12, "annotations", _entry),
    _each(13, "ownerReferences", _nested(_owner_reference)),
    _each(14, "finalizers", _string),
    _each(17, "managedFields", _nested(_managed_fields_entry)),
)
_list_meta = _message(
    _text(1, "selfLink"),
    _text(2, "resourceVersion"),
    _text(3, "continue"),
    _pointer(4, "remainingItemCount", varint),
)
_status_cause = _message(_text(1, "reason"), _text(2, "message"), _text(3, "field"))
_status_details = _message(
    _text(1, "name"),
    _text(2, "group"),
    _text(3, "kind"),
    _each(4, "causes", _nested(_status_cause)),
    _always(5, "retryAfterSeconds", varint, 0),
    _text(6, "uid"),
)
_status = _message(
    _always(1, "metadata", _nested(_list_meta), {}),
    _text(2, "status"),
    _text(3, "message"),
    _text(4, "reason"),
    _pointer(5, "details", _nested(_status_details)),
    _always(6, "code", varint, 0),
)
_group_version = _message(_text(1, "groupVersion"), _text(2, "version"))
_api_group = _message(
    _text(1, "name"),
    _each(2, "versions", _nested(_group_version)),
    _always(3, "preferredVersion", _nested(_group_version), {}),
)
_verbs = _message(_each(1, "verbs", _string))
_api_resource = _message(
    _text(1, "name"),
    _always(2, "namespaced", _bool, False),
    _text(3, "kind"),
    _pointer(4, "verbs", lambda verbs: _delimited(_verbs({"verbs": verbs}))),
    _each(5, "shortNames", _string),
    _text(6, "singularName"),
    _each(7, "categories", _string),
    _text(8, "group"),
    _text(9, "version"),
    _text(10, "storageVersionHash"),
)
_group_version_kind = _message(_text(1, "group"), _text(2, "version"), _text(3, "kind"))
_subresource_discovery = _message(
    _text(1, "subresource"),
    _pointer(2, "responseKind", _nested(_group_version_kind)),
    _each(4, "verbs", _string),
)
_resource_discovery = _message(
    _text(1, "resource"),
    _pointer(2, "responseKind", _nested(_group_version_kind)),
    _text(3, "scope"),
    _text(4, "singularResource"),
    _each(5, "verbs", _string),
    _each(6, "shortNames", _string),
    _each(7, "categories", _string),
    _each(8, "subresources", _nested(_subresource_discovery)),
)
_version_discovery = _message(_text(1, "version"), _each(2, "resources", _nested(_resource_discovery)), _text(3, "freshness"))
_group_discovery = _message(_always(1, "metadata", _nested(_object_meta), {}), _each(2, "versions", _nested(_version_discovery)))
_DISCOVERY_DOCUMENTS = {
    "APIGroup": _api_group,
    "APIGroupList": _message(_each(1, "groups", _nested(_api_group))),
    "APIGroupDiscoveryList": _message(_always(1, "metadata", _nested(_list_meta), {}), _each(2, "items", _nested(_group_discovery))),
    "APIResourceList": _message(_text(1, "groupVersion"), _each(2, "resources", _nested(_api_resource))),
}
