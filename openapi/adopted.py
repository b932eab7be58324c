"""Shared definitions in the words of another server, so that a document that merges theirs with ours has each of them once.

kube-apiserver renames a definition that two servers give differently (`ObjectMeta_v2`), and descriptions are part of it. Words alone
are taken: a type that says something else about which values are valid stays ours, and honestly is another one.
Source: https://github.com/kubernetes/kube-openapi/blob/d427ff9ee9ad/pkg/aggregator/aggregator.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from openapi.definitions import SHARED, TIME

_IDENTITY: Final = "x-kubernetes-group-version-kind"
"""Which kinds a definition is of: each server names its own, and a merge joins them."""


def shared_definitions(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a v2 document of another server says about the types that it shares with us."""
    definitions = document.get("definitions")
    if not isinstance(definitions, dict):
        return {}
    return {name: definitions[name] for name in (*SHARED, TIME) if isinstance(definitions.get(name), dict)}


def adopted(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return our definitions, those in their words that are otherwise the same."""
    return {name: _worded(definition, theirs.get(name)) for name, definition in ours.items()}


def _worded(ours: dict[str, Any], theirs: dict[str, Any] | None) -> dict[str, Any]:
    if theirs is None or _values(ours) != _values(theirs):
        return ours
    identity = {_IDENTITY: ours[_IDENTITY]} if _IDENTITY in ours else {}
    return {key: value for key, value in theirs.items() if key != _IDENTITY} | identity


def _values(schema: Any) -> Any:
    """A schema without what does not say which values are valid."""
    if isinstance(schema, list):
        return sorted((_values(item) for item in schema), key=str)
    if not isinstance(schema, dict):
        return schema
    # A property may be called so, too.
    told = {_IDENTITY} | ({"description"} if isinstance(schema.get("description"), str) else set())
    return {key: _values(value) for key, value in schema.items() if key not in told}
