"""What the documents are made from: one frozen description of each resource that is served."""

from __future__ import annotations

from dataclasses import dataclass

from openapi.structural import Schema


@dataclass(frozen=True, slots=True)
class PublishedResource:
    """One resource in one version, as far as its documents go."""

    group: str
    version: str
    kind: str
    list_kind: str
    plural: str
    namespaced: bool
    schema: Schema
    """The whole object. What it says about apiVersion, kind and metadata is replaced by Kubernetes' shared definitions."""
    has_status: bool
    has_scale: bool
    selectable_fields: tuple[str, ...] = ()
    """JSON paths as in `.spec.image`, besides metadata.name and metadata.namespace."""
