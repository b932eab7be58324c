"""JSON patch (RFC 6902), with the corners in which kube-apiserver's library differs from it.

Those are: an index below zero counts from the end; `replace` of a member that an object does not have adds it; a pointer need not begin
with a slash; a missing `value` is null. The package jsonpatch does none of these, and copies the whole document.
Source: https://www.rfc-editor.org/rfc/rfc6902 and https://github.com/evanphx/json-patch/blob/v4.12.0/patch.go
"""

from __future__ import annotations

import re
from typing import Any, Final

from apiserver.meta import json_codec
from openapi.json_values import copy, identical

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""How much all `copy` operations of a patch may add together: as much as a whole request."""

_INDEX = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class PatchError(ValueError):
    """An operation cannot be done on this value."""


def apply(value: Any, operations: list[dict[str, Any] | None]) -> Any:
    """Return what the operations make of `value`, which is changed in place; they themselves are not, and can be applied again.

    Operations can nest a value deeper than any of them is: no deeper than a body may be, so that what walks the result may recurse.

    Raises:
        PatchError: an operation cannot be done, a test fails, or too much is copied. The value is half done then.
        JSONSyntaxError: the result, or what is copied, is nested too deep.
    """
    document = [value]
    copied_bytes = 0
    for operation in operations:
        operation = operation or {}
        kind, path = operation.get("op"), operation.get("path")
        if kind not in ("add", "remove", "replace", "move", "test", "copy"):
            raise PatchError(f"Unexpected kind: {kind or 'unknown'}")
        if path is None:
            raise PatchError(f"{kind} operation is missing its path")
        if kind == "add":
            _add(document, path, copy(operation.get("value")))
        elif kind == "remove":
            _remove(document, path)
        elif kind == "replace":
            _replace(document, path, copy(operation.get("value")))
        elif kind == "test":
            if not identical(_get(document, path) if path else document[0], operation.get("value")):
                raise PatchError(f"testing value {path} failed")
        else:
            source = operation.get("from")
            if source is None:
                raise PatchError(f"{kind} operation is missing its from")
            if kind == "move":
                moved = _get(document, source)
                _remove(document, source)
                _add(document, path, moved)
            else:
                found = _get(document, source)
                json_codec.check_depth(found)
                copied_bytes += len(json_codec.encode(found)) - 1
                if copied_bytes > MAX_COPIED_BYTES:
                    raise PatchError(
                        f"Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, "
                        f"exceeding the limit {MAX_COPIED_BYTES}"
                    )
                _add(document, path, copy(found))
    json_codec.check_depth(document[0])
    return document[0]


def _find(document: list[Any], path: str) -> tuple[Any, str]:
    """The container that a pointer leads into, and the key there."""
    steps = path.split("/")
    if len(steps) < 2:
        raise PatchError(f"doc is missing path: {path}")
    container = document[0]
    for step in steps[1:-1]:
        container = _member(container, _unescape(step), path)
        if container.__class__ is not dict and container.__class__ is not list:
            raise PatchError(f"doc is missing path: {path}")
    return container, _unescape(steps[-1])


def _member(container: Any, key: str, path: str) -> Any:
    """A member, None when an object does not have it."""
    if container.__class__ is dict:
        return container.get(key)
    return container[_index(key, len(container), path)]


def _get(document: list[Any], path: str) -> Any:
    container, key = _find(document, path)
    return _member(container, key, path)


def _add(document: list[Any], path: str, added: Any) -> None:
    container, key = _find(document, path)
    if container.__class__ is dict:
        container[key] = added
    elif key == "-":
        container.append(added)
    else:
        container.insert(_index(key, len(container) + 1, path), added)


def _remove(document: list[Any], path: str) -> None:
    container, key = _find(document, path)
    if container.__class__ is list:
        del container[_index(key, len(container), path)]
    elif key in container:
        del container[key]
    else:
        raise PatchError(f"Unable to remove nonexistent key: {key}")


def _replace(document: list[Any], path: str, wanted: Any) -> None:
    if not path:
        if wanted.__class__ is not dict and wanted.__class__ is not list:
            raise PatchError("replace operation value must be object or array")
        document[0] = wanted
        return
    container, key = _find(document, path)
    if container.__class__ is list:
        container[_index(key, len(container), path)] = wanted
    else:
        container[key] = wanted


def _index(key: str, size: int, path: str) -> int:
    """A place in a list; below zero it counts from the end."""
    index = int(key) if _INDEX.fullmatch(key) else size
    if not -size <= index < size:
        raise PatchError(f"invalid index {key} in path: {path}")
    return index + size if index < 0 else index


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~") if "~" in step else step
