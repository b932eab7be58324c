"""ObjectMeta as a decoder sees it: which members exist, of which type, and how they look once they are read and written again.

Upstream reads `metadata` of every custom resource into the Go type and writes it back, so that unknown members and empty values go, and
times become canonical. Here a table says the same, and the work is done in place. What the members *mean* is checked elsewhere.
Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/apiserver/schema/objectmeta/algorithm.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from openapi import rfc3339
from openapi.structural import JSON

Unknown = list[list[str]]
"""Paths of unknown fields, each as segments from the innermost outwards, so that nobody builds a path until there is one to report."""

MOST_UNKNOWN: Final = 1000
"""About how many unknown fields are reported: all are removed, but a body can hold a million of them."""


class MetadataTypeError(ValueError):
    """Metadata whose type is wrong: the whole text is Go's, and belongs into a 400."""


_Reader = Callable[[JSON, str, str], JSON]
"""Takes a value that is not null, the Go struct and the path in it; returns what is kept (None: nothing), or raises MetadataTypeError."""

_GO_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def _mismatch(value: JSON, struct: str, path: str, wanted: str) -> MetadataTypeError:
    got = _GO_NAMES[value.__class__]
    where = f"Go struct field {struct}.{path}" if path else "Go value"
    return MetadataTypeError(f"json: cannot unmarshal {got} into {where} of type {wanted}")


def _string(value: JSON, struct: str, path: str) -> JSON:
    if value.__class__ is not str:
        raise _mismatch(value, struct, path, "string")
    return value or None


def _kept_string(value: JSON, struct: str, path: str) -> JSON:
    _string(value, struct, path)
    return value


def _typed_string(go_type: str) -> _Reader:
    def read(value: JSON, struct: str, path: str) -> JSON:
        if value.__class__ is not str:
            raise _mismatch(value, struct, path, go_type)
        return value or None

    return read


def _boolean(value: JSON, struct: str, path: str) -> JSON:
    if value.__class__ is not bool:
        raise _mismatch(value, struct, path, "bool")
    return value


def _kept_int64(value: JSON, struct: str, path: str) -> JSON:
    if value.__class__ is float and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if value.__class__ is not int:
        problem = str(_mismatch(value, struct, path, "int64"))
        raise MetadataTypeError(problem.replace("number into", f"number {value!r} into") if value.__class__ is float else problem)
    return value


def _int64(value: JSON, struct: str, path: str) -> JSON:
    return _kept_int64(value, struct, path) or None


def _time(value: JSON, struct: str, path: str) -> JSON:
    if value.__class__ is not str:
        raise _mismatch(value, struct, path, "string")
    try:
        return rfc3339.canonical(value)
    except ValueError as error:
        raise MetadataTypeError(str(error)) from error


def _any(value: JSON, struct: str, path: str) -> JSON:
    return value


def _strings(value: JSON, struct: str, path: str) -> JSON:
    """A list of strings; null is the empty string, as in Go."""
    if value.__class__ is not list:
        raise _mismatch(value, struct, path, "[]string")
    for index, item in enumerate(value):
        if item.__class__ is not str:
            if item is not None:
                raise _mismatch(item, struct, path, "string")
            value[index] = ""
    return value or None


def _string_map(value: JSON, struct: str, path: str) -> JSON:
    if value.__class__ is not dict:
        raise _mismatch(value, struct, path, "map[string]string")
    for key, item in value.items():
        if item.__class__ is not str:
            if item is not None:
                first = min(key for key, item in value.items() if item is not None and item.__class__ is not str)
                raise _mismatch(value[first], struct, path, "string")
            value[key] = ""
    return value or None


_STRUCTS: Final[dict[str, dict[str, _Reader]]] = {
    "OwnerReference": {
        "apiVersion": _kept_string,
        "kind": _kept_string,
        "name": _kept_string,
        "uid": _typed_string("types.UID"),
        "controller": _boolean,
        "blockOwnerDeletion": _boolean,
    },
    "ManagedFieldsEntry": {
        "manager": _string,
        "operation": _typed_string("v1.ManagedFieldsOperationType"),
        "apiVersion": _string,
        "time": _time,
        "fieldsType": _string,
        "fieldsV1": _any,
        "subresource": _string,
    },
    "ObjectMeta": {
        "name": _string,
        "generateName": _string,
        "namespace": _string,
        "selfLink": _string,
        "uid": _typed_string("types.UID"),
        "resourceVersion": _string,
        "generation": _int64,
        "creationTimestamp": _time,
        "deletionTimestamp": _time,
        "deletionGracePeriodSeconds": _kept_int64,
        "labels": _string_map,
        "annotations": _string_map,
        "finalizers": _strings,
    },
}
_REQUIRED_STRINGS: Final = ("apiVersion", "kind", "name", "uid")
"""Members of an owner reference that Go writes even when they are empty."""
_LISTS: Final = {"ownerReferences": "OwnerReference", "managedFields": "ManagedFieldsEntry"}
_OBJECT_META: Final = _STRUCTS["ObjectMeta"]
_CLASSES: Final[dict[str, type]] = {
    **dict.fromkeys(_OBJECT_META, str),
    **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), int),
    **dict.fromkeys(("labels", "annotations"), dict),
    **dict.fromkeys(("finalizers", *_LISTS), list),
}
_NOTHING: Final[dict[str, JSON]] = {}


def normalize_metadata(holder: dict[str, Any], old: dict[str, Any] | None = None) -> Unknown | None:
    """Bring `holder["metadata"]` into the form in which Kubernetes keeps it; return its unknown members, already removed.

    Works in place. A null or absent metadata is removed. What is shared with the metadata of `old`, which has been normalized, stays as it
    is.

    Raises:
        MetadataTypeError: a member has the wrong type. The value may be half done then.
    """
    metadata = holder.get("metadata")
    if metadata is None:
        holder.pop("metadata", None)
        return None
    if metadata.__class__ is not dict:
        raise _mismatch(metadata, "", "", "v1.ObjectMeta")
    before: dict[str, JSON] = _NOTHING if old is None else old.get("metadata") or _NOTHING
    if metadata is before:
        return None
    gone: list[str] = []
    unknown: Unknown = []
    errors: dict[str, MetadataTypeError] = {}
    for key, item in metadata.items():
        if item is before.get(key) and item is not None:
            continue
        read = _OBJECT_META.get(key)
        if item is None and (read is not None or key in _LISTS):
            gone.append(key)
            continue
        try:
            if read is not None:
                kept = read(item, "ObjectMeta", key)
            elif key in _LISTS:
                kept, inner = _list_of(item, _LISTS[key], key)
                unknown.extend([*path, key] for path in inner)
            else:
                if len(unknown) < MOST_UNKNOWN:
                    unknown.append([key])
                gone.append(key)
                continue
        except MetadataTypeError as error:
            errors[key] = error
            continue
        if kept is None:
            gone.append(key)
        elif kept is not item:
            metadata[key] = kept
    if errors:
        raise errors[min(errors)]  # Go meets the members in sorted order
    for key in gone:
        del metadata[key]
    return [[*path, "metadata"] for path in unknown] if unknown else None


def normalize_stored_metadata(holder: dict[str, Any]) -> None:
    """The same for what lies in the store, whoever wrote it: members of the wrong type are removed, as upstream does.

    Raises:
        MetadataTypeError: the metadata is no object.
    """
    metadata = holder.get("metadata")
    try:
        normalize_metadata(holder)
    except MetadataTypeError:
        if metadata.__class__ is not dict:
            raise
        holder["metadata"] = {key: item for key, item in metadata.items() if _is_sound(key, item)}


def is_sound_at_a_glance(metadata: dict[str, JSON]) -> bool:
    """Whether nothing but known members of the right type is there; what is in lists is not looked at."""
    for key, item in metadata.items():
        if item.__class__ is not _CLASSES.get(key):
            return False
    labels: dict[str, JSON] = metadata.get("labels", _NOTHING)
    return {item.__class__ for item in labels.values()} <= {str}


def _is_sound(key: str, item: JSON) -> bool:
    try:
        normalize_metadata({"metadata": {key: item}})
    except MetadataTypeError:
        return False
    return True


def _list_of(value: JSON, struct: str, path: str) -> tuple[JSON, Unknown]:
    if value.__class__ is not list:
        raise _mismatch(value, "ObjectMeta", path, f"[]v1.{struct}")
    members = _STRUCTS[struct]
    unknown: Unknown = []
    for index, entry in enumerate(value):
        if entry is None:
            entry = value[index] = {}
        if entry.__class__ is not dict:
            raise _mismatch(entry, "ObjectMeta", path, f"v1.{struct}")
        for key in sorted(entry):
            item, read = entry[key], members.get(key)
            if read is None:
                if len(unknown) < MOST_UNKNOWN:
                    unknown.append([key, f"[{index}]"])
                kept = None
            else:
                kept = None if item is None else read(item, struct, f"{path}.{key}")
            if kept is None:
                del entry[key]
            elif kept is not item:
                entry[key] = kept
        if struct == "OwnerReference":
            for key in _REQUIRED_STRINGS:
                entry.setdefault(key, "")
    return value or None, unknown
