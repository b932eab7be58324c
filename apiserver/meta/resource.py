"""Resource: what a kind is to its author, and ResourceKind: what the server derives from it, once.

A kind is one class below Resource: class variables name it, fields give its shape, two optional methods its own rules. `describe` checks
all of it and returns the frozen description from which routes, discovery, documents, tables, validation and storage keys follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from apiserver.meta.errors import GroupResource
from apiserver.meta.object_meta import ObjectMeta
from apiserver.meta.quantity import Quantity
from openapi.from_model import schema_of
from openapi.markers import Int32, Int64, IntOrString
from openapi.model import Model
from openapi.published import PublishedResource
from openapi.structural import ABSENT, Schema

if TYPE_CHECKING:
    from apiserver.meta.field_errors import FieldError

__all__ = ["Column", "Int32", "Int64", "IntOrString", "Model", "Quantity", "Resource", "ResourceKind", "ScalePaths", "describe"]

_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`, beside Name, which every table begins with."""

    name: str
    type: Literal["integer", "number", "string", "boolean", "date"]
    """`date` is shown as the time that has passed since."""
    json_path: str
    """Where the value is, in kubectl's JSONPath without braces, as in `.spec.replicas`."""
    description: str = ""
    priority: int = 0
    """Above 0: shown with `-o wide` only."""
    format: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """What the `scale` subresource reads and writes."""

    spec_replicas: str
    """Path of the wanted number, below `.spec`."""
    status_replicas: str
    """Path of the observed number, below `.status`."""
    selector: Callable[[Mapping[str, Any]], str] | None = None
    """Makes, from the object's JSON, the label selector that finds its pods. A HorizontalPodAutoscaler needs it."""


class Resource(Model):
    """The base of every kind."""

    group: ClassVar[str]
    """As in `example.com`: a domain that its author owns."""
    version: ClassVar[str]
    """As in `v1alpha1`."""
    plural: ClassVar[str]
    """The resource's name in addresses: lower case."""
    singular: ClassVar[str] = ""
    """Empty: the kind in lower case."""
    list_kind: ClassVar[str] = ""
    """Empty: the kind with `List` behind it."""
    short_names: ClassVar[tuple[str, ...]] = ()
    categories: ClassVar[tuple[str, ...]] = ()
    """Groups such as `all`, by which `kubectl get` finds several resources."""
    scope: ClassVar[Literal["Namespaced", "Cluster"]] = "Namespaced"
    columns: ClassVar[tuple[Column, ...]] = (Column("Age", "date", ".metadata.creationTimestamp"),)
    scale: ClassVar[ScalePaths | None] = None
    """None: no `scale` subresource."""
    selectable_fields: ClassVar[tuple[str, ...]] = ()
    """Paths, as in `.spec.image`, that field selectors may name besides metadata.name and metadata.namespace."""

    api_version: str | None = None
    """Group and version in which this object is written, as in `example.com/v1`."""
    kind: str | None = None
    """Kind of this object, in CamelCase."""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    """What the object says about itself: its names, its history, its owners."""

    def validate_object(self, old: Self | None) -> Iterable[FieldError]:
        """Yield what is wrong with the object beyond its schema. `old` is what it replaces, None on a create.

        Not called for an update that leaves the spec as it was: an object that was once accepted must stay writable.
        """
        return ()

    def warn(self, old: Self | None) -> Iterable[str]:
        """Yield what the client is told in Warning headers about an object that is accepted."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class ResourceKind:
    """All that the server knows of one kind. Made once; compared by identity."""

    model: type[Resource]
    group: str
    version: str
    kind: str
    list_kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    namespaced: bool
    schema: Schema
    """The whole object: apiVersion, kind, metadata (ObjectMeta in full) and the kind's own fields."""
    columns: tuple[Column, ...]
    """Without Name, which comes first by itself."""
    scale: ScalePaths | None
    selectable_fields: tuple[str, ...]
    """As declared, with a leading dot."""
    has_status: bool

    @property
    def api_version(self) -> str:
        """`group/version`, as objects carry it."""
        return f"{self.group}/{self.version}"

    @property
    def group_resource(self) -> GroupResource:
        """The name that error messages use."""
        return GroupResource(self.group, self.plural)

    @property
    def published(self) -> PublishedResource:
        """What the OpenAPI documents are made from."""
        return PublishedResource(
            group=self.group,
            version=self.version,
            kind=self.kind,
            list_kind=self.list_kind,
            plural=self.plural,
            namespaced=self.namespaced,
            schema=self.schema,
            has_status=self.has_status,
            has_scale=self.scale is not None,
            selectable_fields=self.selectable_fields,
        )


def describe(model: type[Resource]) -> ResourceKind:
    """Derive the description of a kind from its class.

    Raises:
        TypeError: the class cannot be served; the text says what to change.
    """
    kind = model.__name__
    for name, pattern in (("group", _GROUP), ("version", _VERSION), ("plural", _LABEL)):
        value = getattr(model, name, None)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise TypeError(f"{kind}: the class variable {name} must be a string that matches {pattern.pattern!r}, not {value!r}")
    if not _KIND.fullmatch(kind):
        raise TypeError(f"{kind}: the name of the class is the kind and must be in CamelCase")
    if model.scope not in ("Namespaced", "Cluster"):
        raise TypeError(f"{kind}: scope must be 'Namespaced' or 'Cluster', not {model.scope!r}")
    described = ResourceKind(
        model=model,
        group=model.group,
        version=model.version,
        kind=kind,
        list_kind=model.list_kind or f"{kind}List",
        plural=model.plural,
        singular=model.singular or kind.lower(),
        short_names=tuple(model.short_names),
        categories=tuple(model.categories),
        namespaced=model.scope == "Namespaced",
        schema=_whole_object(model),
        columns=tuple(model.columns),
        scale=model.scale,
        selectable_fields=tuple(model.selectable_fields),
        has_status="status" in model.model_fields,
    )
    _check_paths(described)
    return described


def _whole_object(model: type[Resource]) -> Schema:
    """The model's schema. That metadata is always there in Python must not write an empty one into objects."""
    redeclared = {"api_version", "kind", "metadata"} & set(model.__annotations__)
    if redeclared:
        raise TypeError(f"{model.__name__}: {', '.join(sorted(redeclared))} cannot be declared anew: every kind has the same")
    schema = schema_of(model)
    metadata = replace(schema.properties["metadata"], default=ABSENT)
    return replace(schema, properties={**schema.properties, "metadata": metadata})


def _check_paths(described: ResourceKind) -> None:
    """Refuse paths that lead nowhere, which would otherwise show as empty columns or a scale that does nothing."""
    for column in described.columns:
        if not column.json_path.startswith("."):
            raise TypeError(f"{described.kind}: the path of column {column.name} must begin with a dot: {column.json_path!r}")
    for path in described.selectable_fields:
        if _at(described, path).type not in ("string", "integer", "boolean"):
            raise TypeError(f"{described.kind}: the selectable field {path} must be a string, an integer or a boolean")
    if described.scale is None:
        return
    for path, below in ((described.scale.spec_replicas, ".spec."), (described.scale.status_replicas, ".status.")):
        if not path.startswith(below) or _at(described, path).type != "integer":
            raise TypeError(f"{described.kind}: the scale path {path} must lead to an integer below {below[:-1]}")


def _at(described: ResourceKind, path: str) -> Schema:
    """The schema at a path of plain names."""
    schema = described.schema
    for name in path.removeprefix(".").split("."):
        if name not in schema.properties:
            raise TypeError(f"{described.kind}: there is no field {path}")
        schema = schema.properties[name]
    return schema
