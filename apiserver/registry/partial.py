"""An object's metadata alone, as a PartialObjectMetadata: in JSON cut out of the bytes that are kept for the object, not encoded again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from apiserver.meta import protobuf

if TYPE_CHECKING:
    from apiserver.registry.stored_object import StoredObject

_HEADS = {
    "v1": b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":',
    "v1beta1": b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1","metadata":',
}


def partial_bytes(obj: StoredObject, version: str) -> bytes:
    """The PartialObjectMetadata of an object as one piece of JSON; `version` of meta.k8s.io is v1 or v1beta1."""
    return b"".join((_HEADS[version], obj.metadata_wire, b"}"))


def partial_of_metadata(metadata: bytes, version: str) -> bytes:
    """The PartialObjectMetadata of encoded metadata."""
    return b"".join((_HEADS[version], metadata, b"}"))


def partial_protobuf(obj: StoredObject) -> bytes:
    """The PartialObjectMetadata of an object as a message of protobuf, without an envelope: it is the same in every version."""
    return protobuf.partial_object_metadata(orjson.loads(obj.metadata_wire))
