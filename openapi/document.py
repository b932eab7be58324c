"""Document: the bytes of one published document and the hash that names this very content; and what both dialects need to make one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from openapi.operations import Operation
from openapi.parameters import Parameter


@dataclass(frozen=True, slots=True)
class Document:
    """One document as it is sent."""

    content: bytes
    """JSON with sorted keys: the same input gives the same bytes in every process."""
    etag: str
    """SHA-512 of the content in upper-case hexadecimal digits, without quotes; it also stands in addresses as `?hash=`."""


def encoded(value: dict[str, Any]) -> Document:
    """Encode a document and hash it."""
    content = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return Document(content, hashlib.sha512(content).hexdigest().upper())


def by_path(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    """Group operations by their address, in order of addresses."""
    grouped: dict[str, list[Operation]] = {}
    for operation in sorted(operations, key=lambda operation: operation.path):
        grouped.setdefault(operation.path, []).append(operation)
    return grouped


def common_parameters(operations: list[Operation]) -> tuple[Parameter, ...]:
    """Return the parameters that every one of these operations takes, which are written once beside them."""
    first, *rest = operations
    return tuple(parameter for parameter in first.parameters if all(parameter in operation.parameters for operation in rest))
