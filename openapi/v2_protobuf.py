"""The v2 document as protobuf: the only form in which kubectl asks for it.

The messages are gnostic's OpenAPI v2. What is written here is the part of them that our documents use, as tables: a member's number and how
its value is encoded. Members whose names begin with `x-` are extensions, whose values travel as YAML, of which JSON is a part.
Source: https://github.com/google/gnostic-models/blob/v0.7.0/openapiv2/OpenAPIv2.proto
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from openapi.document import Document

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The Content-Type of the answer: clients refuse the form below in it, since `@` may not stand in a media type."""

ACCEPTED: Final = (MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
"""How clients ask for it in Accept; kubectl uses the second."""

_Encoder = Callable[[int, Any], bytes]
"""Takes the member's number and its value, returns the member with its tag."""

_Fields = Mapping[str, tuple[int, _Encoder]]

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def encoded(document: Document) -> Document:
    """Return the protobuf form of a v2 document; its bytes are determined by those of the document."""
    content = _DOCUMENT(orjson.loads(document.content))
    return Document(content, hashlib.sha512(content).hexdigest().upper())


def _varint(value: int) -> bytes:
    encoded_value = bytearray()
    while value > 0x7F:
        encoded_value.append(value & 0x7F | 0x80)
        value >>= 7
    encoded_value.append(value)
    return bytes(encoded_value)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _delimited(number: int, content: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(content)) + content


def _text(number: int, value: str) -> bytes:
    return _delimited(number, value.encode())


def _whole(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(value)


def _double(number: int, value: float) -> bytes:
    return _tag(number, _FIXED64) + struct.pack("<d", value)


def _any(number: int, value: Any) -> bytes:
    return _delimited(number, _delimited(2, orjson.dumps(value)))


def _repeated(encoder: _Encoder) -> _Encoder:
    return lambda number, values: b"".join(encoder(number, value) for value in values)


def _wrapped(number_inside: int, encoder: _Encoder) -> _Encoder:
    """A message of which only the one member matters."""
    return lambda number, value: _delimited(number, encoder(number_inside, value))


def _named(encoder: _Encoder) -> _Encoder:
    """Members of a map, each a message of name and value."""
    return lambda number, values: b"".join(_delimited(number, _text(1, name) + encoder(2, value)) for name, value in values.items())


class _Message:
    """A message with the given members."""

    def __init__(self, extensions: int = 0) -> None:
        self.fields: _Fields = {}
        self.extensions = extensions
        """Number of the member that holds extensions; 0 if it has none."""

    def __call__(self, value: dict[str, Any]) -> bytes:
        content = b""
        extensions = b""
        for key, member in value.items():
            if key.startswith("x-"):
                extensions += _delimited(self.extensions, _text(1, key) + _any(2, member))
            else:
                number, encoder = self.fields[key]
                content += encoder(number, member)
        return content + extensions

    def at(self, number: int, value: dict[str, Any]) -> bytes:
        """The message as a member of another one."""
        return _delimited(number, self(value))


def _type(number: int, value: str) -> bytes:
    return _delimited(number, _text(1, value))


_SCHEMA: Final = _Message(extensions=31)
_SCHEMA.fields = {
    "$ref": (1, _text),
    "format": (2, _text),
    "description": (4, _text),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _whole),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _whole),
    "maxLength": (11, _whole),
    "minLength": (12, _whole),
    "pattern": (13, _text),
    "maxItems": (14, _whole),
    "minItems": (15, _whole),
    "maxProperties": (17, _whole),
    "minProperties": (18, _whole),
    "required": (19, _repeated(_text)),
    "enum": (20, _repeated(_any)),
    "additionalProperties": (21, _wrapped(1, _SCHEMA.at)),
    "type": (22, _type),
    "items": (23, _wrapped(1, _SCHEMA.at)),
    "properties": (25, _wrapped(1, _named(_SCHEMA.at))),
}

_BODY: Final = _Message(extensions=6)
_BODY.fields = {"description": (1, _text), "name": (2, _text), "in": (3, _text), "required": (4, _whole), "schema": (5, _SCHEMA.at)}

_QUERY: Final = _Message(extensions=23)
_QUERY.fields = {"in": (2, _text), "description": (3, _text), "name": (4, _text), "type": (6, _text), "uniqueItems": (20, _whole)}

_PATH: Final = _Message(extensions=22)
_PATH.fields = {
    "required": (1, _whole),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (5, _text),
    "uniqueItems": (19, _whole),
}

_REFERENCE: Final = _Message()
_REFERENCE.fields = {"$ref": (1, _text)}


def _parameter(number: int, value: dict[str, Any]) -> bytes:
    place = value["in"]
    if place == "body":
        return _delimited(number, _BODY.at(1, value))
    return _delimited(number, _delimited(2, _QUERY.at(3, value) if place == "query" else _PATH.at(4, value)))


def _parameter_or_reference(number: int, value: dict[str, Any]) -> bytes:
    return _delimited(number, _REFERENCE.at(2, value) if "$ref" in value else _parameter(1, value))


_RESPONSE: Final = _Message(extensions=5)
_RESPONSE.fields = {"description": (1, _text), "schema": (2, _wrapped(1, _SCHEMA.at))}

_OPERATION: Final = _Message(extensions=13)
_OPERATION.fields = {
    "tags": (1, _repeated(_text)),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _repeated(_text)),
    "consumes": (7, _repeated(_text)),
    "parameters": (8, _repeated(_parameter_or_reference)),
    "responses": (9, _wrapped(1, _named(_wrapped(1, _RESPONSE.at)))),
    "schemes": (10, _repeated(_text)),
}

_PATH_ITEM: Final = _Message(extensions=10)
_PATH_ITEM.fields = {
    "get": (2, _OPERATION.at),
    "put": (3, _OPERATION.at),
    "post": (4, _OPERATION.at),
    "delete": (5, _OPERATION.at),
    "patch": (8, _OPERATION.at),
    "parameters": (9, _repeated(_parameter_or_reference)),
}

_INFO: Final = _Message(extensions=7)
_INFO.fields = {"title": (1, _text), "version": (2, _text)}

_API_KEY: Final = _Message(extensions=5)
_API_KEY.fields = {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}

_DOCUMENT: Final = _Message(extensions=16)
_DOCUMENT.fields = {
    "swagger": (1, _text),
    "info": (2, _INFO.at),
    "paths": (8, _wrapped(2, _named(_PATH_ITEM.at))),
    "definitions": (9, _wrapped(1, _named(_SCHEMA.at))),
    "parameters": (10, _wrapped(1, _named(_parameter))),
    "security": (12, _repeated(_wrapped(1, _named(_wrapped(1, _repeated(_text)))))),
    "securityDefinitions": (13, _wrapped(1, _named(_wrapped(2, _API_KEY.at)))),
}
