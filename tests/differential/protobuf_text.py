"""Protobuf answers as text, so that they are compared, normalised and learnt from as the others are.

Nothing is lost: fields come in the order in which they travel, each occurrence of its own, and what is not written in the only way in which
Kubernetes writes it is an error. Two texts are equal only when the bytes are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"

Fields = Mapping[int, tuple[str, Any]]
"""A message's fields by number: a name, and how they are read (`str`, `int`, `bytes` for JSON, "time", or another message)."""

_TYPE_META: Fields = {1: ("apiVersion", str), 2: ("kind", str)}
_OWNER: Fields = {
    1: ("kind", str),
    3: ("name", str),
    4: ("uid", str),
    5: ("apiVersion", str),
    6: ("controller", int),
    7: ("blockOwnerDeletion", int),
}
_MANAGER: Fields = {
    1: ("manager", str),
    2: ("operation", str),
    3: ("apiVersion", str),
    4: ("time", "time"),
    6: ("fieldsType", str),
    7: ("fieldsV1", {1: ("raw", bytes)}),
    8: ("subresource", str),
}
_ENTRY: Fields = {1: ("key", str), 2: ("value", str)}
_OBJECT_META: Fields = {
    1: ("name", str),
    2: ("generateName", str),
    3: ("namespace", str),
    4: ("selfLink", str),
    5: ("uid", str),
    6: ("resourceVersion", str),
    7: ("generation", int),
    8: ("creationTimestamp", "time"),
    9: ("deletionTimestamp", "time"),
    10: ("deletionGracePeriodSeconds", int),
    11: ("labels", _ENTRY),
    12: ("annotations", _ENTRY),
    13: ("ownerReferences", _OWNER),
    14: ("finalizers", str),
    17: ("managedFields", _MANAGER),
}
_PARTIAL: Fields = {1: ("metadata", _OBJECT_META)}
_LIST_META: Fields = {1: ("selfLink", str), 2: ("resourceVersion", str), 3: ("continue", str), 4: ("remainingItemCount", int)}
_CAUSE: Fields = {1: ("reason", str), 2: ("message", str), 3: ("field", str)}
_DETAILS: Fields = {
    1: ("name", str),
    2: ("group", str),
    3: ("kind", str),
    4: ("causes", _CAUSE),
    5: ("retryAfterSeconds", int),
    6: ("uid", str),
}
_STATUS: Fields = {
    1: ("metadata", _LIST_META),
    2: ("status", str),
    3: ("message", str),
    4: ("reason", str),
    5: ("details", _DETAILS),
    6: ("code", int),
}
_GROUP_VERSION: Fields = {1: ("groupVersion", str), 2: ("version", str)}
_GROUP: Fields = {1: ("name", str), 2: ("versions", _GROUP_VERSION), 3: ("preferredVersion", _GROUP_VERSION)}
_RESOURCE: Fields = {
    1: ("name", str),
    2: ("namespaced", int),
    3: ("kind", str),
    4: ("verbs", {1: ("verb", str)}),
    5: ("shortNames", str),
    6: ("singularName", str),
    7: ("categories", str),
    8: ("group", str),
    9: ("version", str),
    10: ("storageVersionHash", str),
}
_KIND: Fields = {1: ("group", str), 2: ("version", str), 3: ("kind", str)}
_SUBRESOURCE_DISCOVERY: Fields = {1: ("subresource", str), 2: ("responseKind", _KIND), 3: ("acceptedTypes", _KIND), 4: ("verbs", str)}
_RESOURCE_DISCOVERY: Fields = {
    1: ("resource", str),
    2: ("responseKind", _KIND),
    3: ("scope", str),
    4: ("singularResource", str),
    5: ("verbs", str),
    6: ("shortNames", str),
    7: ("categories", str),
    8: ("subresources", _SUBRESOURCE_DISCOVERY),
}
_VERSION_DISCOVERY: Fields = {1: ("version", str), 2: ("resources", _RESOURCE_DISCOVERY), 3: ("freshness", str)}
_GROUP_DISCOVERY: Fields = {1: ("metadata", _OBJECT_META), 2: ("versions", _VERSION_DISCOVERY)}
_MESSAGES: Mapping[tuple[str, str], Fields] = {
    ("v1", "Status"): _STATUS,
    ("v1", "APIGroup"): _GROUP,
    ("v1", "APIGroupList"): {1: ("groups", _GROUP)},
    ("v1", "APIResourceList"): {1: ("groupVersion", str), 2: ("resources", _RESOURCE)},
    ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"): {1: ("metadata", _LIST_META), 2: ("items", _GROUP_DISCOVERY)},
    ("meta.k8s.io/v1", "PartialObjectMetadata"): _PARTIAL,
    ("meta.k8s.io/v1beta1", "PartialObjectMetadata"): _PARTIAL,
    ("meta.k8s.io/v1", "PartialObjectMetadataList"): {1: ("metadata", _LIST_META), 2: ("items", _PARTIAL)},
    ("meta.k8s.io/v1beta1", "PartialObjectMetadataList"): {1: ("items", _PARTIAL), 2: ("metadata", _LIST_META)},
}


def text_of(body: bytes) -> str:
    """An answer in its envelope."""
    assert body.startswith(_MAGIC), body[:100]
    parts = dict(_wire(body[len(_MAGIC) :]))
    assert list(parts) == [1, 2, 3, 4], parts
    assert parts[3] == parts[4] == b""
    type_meta = dict(_wire(parts[1]))
    api_version, kind = type_meta[1].decode(), type_meta[2].decode()
    return f'{{"apiVersion":"{api_version}","kind":"{kind}",{_text(parts[2], _MESSAGES[api_version, kind])[1:]}'


def event_text(record: bytes) -> str:
    """A WatchEvent."""
    type_, value = dict(_wire(record)).values()
    ((_, raw),) = _wire(value)
    return f'{{"type":"{type_.decode()}","object":{text_of(raw)}}}'


def records(stream: bytes) -> tuple[list[bytes], bytes]:
    """The whole records of a stream, which come with their length, and the rest."""
    whole = []
    while len(stream) >= 4 and len(stream) >= 4 + (length := int.from_bytes(stream[:4], "big")):
        whole.append(stream[4 : 4 + length])
        stream = stream[4 + length :]
    return whole, stream


def _text(message: bytes, fields: Fields) -> str:
    """A message as JSON whose members come as they travel, also several of one name."""
    members = (f'"{fields[number][0]}":{_value(value, fields[number][1])}' for number, value in _wire(message))
    return f"{{{','.join(members)}}}"


def _value(value: Any, shape: Any) -> str:
    if shape is int:
        assert isinstance(value, int)
        return str(value)
    assert isinstance(value, bytes)
    if shape is str:
        return json.dumps(value.decode())
    if shape is bytes:
        return value.decode()
    if shape == "time":
        return f'"{_time(value)}"'
    return _text(value, shape)


def _time(message: bytes) -> str:
    if not message:
        return "zero"
    (first, seconds), (second, nanos) = _wire(message)
    assert (first, second, nanos) == (1, 2, 0)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _wire(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers, or bytes with a length."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _varint(message, at)
        if tag & 7 == 2:
            assert at + value <= len(message)
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            assert tag & 7 == 0, tag
            yield tag >> 3, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            assert byte or shift == 7, "not the shortest form"
            return value, at
