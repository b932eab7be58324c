"""The annotation of client-side apply, for whoever moves from it to server-side apply.

`kubectl apply` without --server-side remembers in an annotation what it applied. When kubectl then applies on the server, what stands there
unchanged is kubectl's own, whoever is in managedFields; and the annotation is kept up, so that it can go back.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/util/managedfields/internal/lastappliedmanager.go
"""

from __future__ import annotations

from typing import Any, Final

from apiserver.apply.applied_fields import applied_fields
from apiserver.apply.checked import checked
from apiserver.apply.compare import compare
from apiserver.apply.field_set import LEAF, FieldSet, difference
from apiserver.apply.shape import Shape
from apiserver.apply.typed import TypedError
from apiserver.meta import json_codec
from openapi.structural import JSON, Schema

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"
"""The field manager for which this holds; any other name opts out."""
_ANNOTATIONS_LIMIT_BYTES: Final = 256 * 1024


def still_applied(live: dict[str, JSON], api_version: str, schema: Schema, shape: Shape) -> FieldSet:
    """The fields of the annotation that the live object has as they were applied; empty when there is no (readable) annotation.

    `shape` is compiled from `schema`.
    """
    try:
        last = json_codec.decode(_annotations(live).get(ANNOTATION, "").encode())
        if last.__class__ is not dict or last.get("apiVersion") != api_version:
            return LEAF
        last = checked(last, schema)
        fields = applied_fields(last, shape)
        for changed in compare(last, live, shape):
            fields = difference(fields, changed)
    except (json_codec.JSONSyntaxError, TypedError):
        return LEAF
    return fields


def keep_up(value: dict[str, Any], applied: dict[str, Any]) -> None:
    """Write what was applied into the annotation of `value` if it has one; one that gets too long is dropped."""
    annotations = _annotations(value)
    if not annotations.get(ANNOTATION):
        return
    config = applied
    if ANNOTATION in _annotations(applied):
        own = {name: text for name, text in _annotations(applied).items() if name != ANNOTATION}
        config = {**applied, "metadata": {**applied["metadata"], "annotations": own}}
    annotations = {**annotations, ANNOTATION: json_codec.encode(config).decode()}
    if sum(len(name.encode()) + len(text.encode()) for name, text in annotations.items()) > _ANNOTATIONS_LIMIT_BYTES:
        del annotations[ANNOTATION]
    value["metadata"]["annotations"] = annotations


def _annotations(value: dict[str, Any]) -> dict[str, str]:
    return value["metadata"].get("annotations") or {}
