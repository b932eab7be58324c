"""Normalizing: bring a decoded object into the form in which Kubernetes keeps it, in one walk and in place.

What kube-apiserver does in four passes over a custom resource (prune unknown fields, drop nulls, apply defaults, read metadata) is one
here, compiled once per schema into closures. A value of the wrong type is left alone: to name it is the validator's task.
Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/apiserver/schema/
(pruning, defaulting, objectmeta)
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Protocol

from openapi.object_meta import MOST_UNKNOWN, MetadataTypeError, Unknown, normalize_metadata
from openapi.structural import ABSENT, JSON, Schema

__all__ = ["MetadataTypeError", "Normalize", "compile"]

_EXACT_FLOAT: Final = 2.0**53 - 1
"""Beyond this an integral float is no integer for Kubernetes either."""
_TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})


class Normalize(Protocol):
    """A compiled schema's normalizer."""

    def __call__(self, value: dict[str, Any], *, old: dict[str, Any] | None = None, report: list[str] | None = None) -> None:
        """Prune unknown fields, drop nulls where none may be, fill defaults, print integral floats as integers, tidy metadata. In place.

        `old` has been normalized already: what `value` shares with it (the same objects at the same names) is not walked again.

        `report` receives the paths of what was unknown, those in metadata first, else sorted, as in `spec.env[1].nmae`: all of
        them, or about MOST_UNKNOWN if there are more.

        Raises:
            MetadataTypeError: metadata has a member of the wrong type; the text is upstream's. The value may be half done then.
        """


_Walk = Callable[[Any, Any], Unknown | None]
"""Takes a container and what stands in its place in `old`; returns the paths of what was unknown."""


class _Node:
    """What a parent must know about a child: how to walk it, and what a null means there."""

    __slots__ = ("default", "drops_null", "has_default", "on_dict", "on_list", "takes_numbers")

    def __init__(self, schema: Schema | None) -> None:
        default = None if schema is None or schema.default is ABSENT else schema.default
        nullable = schema is None or schema.nullable
        self.has_default = default is not None
        self.takes_numbers = schema is None or schema.type in ("integer", "number", "")
        """Elsewhere a float stays one, so that the message about its type names the type that was sent."""
        self.drops_null = not nullable
        self.default: JSON = default
        if schema is None:
            self.on_dict: _Walk = _remove_all
            self.on_list: _Walk = _strip_list
            return
        self.on_dict = _object_walk(schema)
        self.on_list = _list_walk(schema)
        if default.__class__ is dict or default.__class__ is list:
            # Defaults apply inside defaults too; what they fill in is the same every time.
            self.default = deepcopy(default)
            (self.on_dict if default.__class__ is dict else self.on_list)(self.default, None)

    def fresh_default(self) -> JSON:
        return deepcopy(self.default) if self.default.__class__ in (dict, list) else self.default


def compile(schema: Schema) -> Normalize:
    """Compile the schema of a whole object: its apiVersion and kind are left alone, its metadata is read as ObjectMeta."""
    walk = _object_walk(replace(schema, embedded_resource=False), root=True)

    def normalize(value: dict[str, Any], *, old: dict[str, Any] | None = None, report: list[str] | None = None) -> None:
        metadata = normalize_metadata(value, old)
        unknown = walk(value, old)
        if report is not None:
            for paths in (metadata, unknown):
                if paths:
                    report.extend(sorted(map(_join, paths)))

    return normalize


def _join(path: list[str]) -> str:
    """Segments from the innermost outwards become the path as upstream writes it."""
    text = ""
    for segment in reversed(path):
        text += segment if segment.startswith("[") or not text else f".{segment}"
    return text


def _integral(value: float) -> JSON:
    return int(value) if value.is_integer() and -_EXACT_FLOAT <= value <= _EXACT_FLOAT else value


def _object_walk(schema: Schema, *, root: bool = False) -> _Walk:
    """Return the walk over a dict where this schema stands (whatever its type: a dict in the wrong place loses its members too)."""
    nodes = {name: _Node(child) for name, child in schema.properties.items() if not (root and name in _TYPE_META)}
    defaults = tuple((name, node.default, node) for name, node in nodes.items() if node.has_default)
    others = _Node(schema.additional_properties) if schema.additional_properties is not None else None
    keeps_unknown = schema.preserve_unknown_fields
    type_meta: frozenset[str] = _TYPE_META if root or schema.embedded_resource else frozenset()
    embedded = schema.embedded_resource
    if not nodes and others is None and not keeps_unknown and not type_meta:
        return _remove_all
    lookup = nodes.get

    def walk(value: dict[str, Any], old: JSON) -> Unknown | None:
        before = old if old.__class__ is dict else None
        unknown: Unknown | None = None
        gone: list[str] | None = None
        if embedded:
            unknown = _embedded_metadata(value)
        for key, item in value.items():
            node = lookup(key, others)
            kind = item.__class__
            if node is None:
                if key in type_meta:
                    continue
                if keeps_unknown:
                    if kind is float:
                        value[key] = _integral(item)
                    elif kind is dict or kind is list:
                        _integral_floats(item)
                    continue
                if unknown is None:
                    unknown = []
                if gone is None:
                    gone = []
                if len(unknown) < MOST_UNKNOWN:
                    unknown.append([key])
                gone.append(key)
                continue
            if kind is str or kind is int or kind is bool:
                continue
            previous = None
            if before is not None:
                previous = before.get(key)
                if item is previous and item is not None:
                    continue
            if kind is dict:
                inner = node.on_dict(item, previous)
            elif kind is list:
                inner = node.on_list(item, previous)
            elif kind is float:
                if node.takes_numbers:
                    value[key] = _integral(item)
                continue
            else:
                if node.drops_null:
                    if node.has_default:
                        value[key] = node.fresh_default()
                    else:
                        if gone is None:
                            gone = []
                        gone.append(key)
                continue
            if inner is not None:
                for path in inner:
                    path.append(key)
                if unknown is None:
                    unknown = inner
                elif len(unknown) < MOST_UNKNOWN:
                    unknown.extend(inner)
        if gone is not None:
            for key in gone:
                del value[key]
        for key, default, node in defaults:
            if key not in value:
                value[key] = default if default.__class__ is str or default.__class__ is int else node.fresh_default()
        return unknown

    return walk


def _embedded_metadata(value: dict[str, Any]) -> Unknown | None:
    return normalize_metadata(value) if "metadata" in value else None


def _list_walk(schema: Schema) -> _Walk:
    if schema.items is None:
        return _keep_list if schema.preserve_unknown_fields else _strip_list
    node = _Node(schema.items)
    on_dict, on_list = node.on_dict, node.on_list
    fills_null = node.drops_null and node.has_default

    def walk(value: list[Any], _: JSON) -> Unknown | None:
        unknown: Unknown | None = None
        for index, item in enumerate(value):
            kind = item.__class__
            if kind is str or kind is int:
                continue
            if kind is dict:
                inner = on_dict(item, None)
            elif kind is list:
                inner = on_list(item, None)
            else:
                if kind is float:
                    if node.takes_numbers:
                        value[index] = _integral(item)
                elif item is None and fills_null:
                    value[index] = node.fresh_default()
                continue
            if inner is not None:
                for path in inner:
                    path.append(f"[{index}]")
                if unknown is None:
                    unknown = inner
                elif len(unknown) < MOST_UNKNOWN:
                    unknown.extend(inner)
        return unknown

    return walk


def _remove_all(value: dict[str, Any], _: JSON) -> Unknown | None:
    unknown = [[key] for key in islice(value, MOST_UNKNOWN)]
    value.clear()
    return unknown or None


def _strip_list(value: list[Any], _: JSON) -> Unknown | None:
    """Empty the objects in a list that no schema describes; however deep it is, it is walked without recursion."""
    unknown: Unknown = []
    pending: list[tuple[list[Any], list[str]]] = [(value, [])]
    while pending:
        items, outer = pending.pop()
        for index, item in enumerate(items):
            if item.__class__ is dict:
                unknown.extend([key, f"[{index}]", *outer] for key in islice(item, max(0, MOST_UNKNOWN - len(unknown))))
                item.clear()
            elif item.__class__ is list:
                pending.append((item, [f"[{index}]", *outer]))
            elif item.__class__ is float:
                items[index] = _integral(item)
    return unknown or None


def _keep_list(value: list[Any], _: JSON) -> Unknown | None:
    _integral_floats(value)
    return None


def _integral_floats(value: Any) -> None:
    """Turn integral floats into integers below a container, without recursion."""
    pending = [value]
    while pending:
        container = pending.pop()
        for key, item in container.items() if container.__class__ is dict else enumerate(container):
            if item.__class__ is float:
                container[key] = _integral(item)
            elif item.__class__ is dict or item.__class__ is list:
                pending.append(item)
