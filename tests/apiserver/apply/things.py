"""A kind with a field of every shape that apply knows, for tests of apply and, with its loader, of the server."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from apiserver.apply import shape
from apiserver.meta.condition import Condition
from apiserver.meta.resource import Int32, Model, Resource, ScalePaths, describe
from openapi.markers import AtomicList, AtomicMap, ListMap, ListSet, PreserveUnknownFields


class Item(Model):
    """An item that is known by its name."""

    name: str
    """Its name."""
    value: str | None = None
    """A value."""
    tags: Annotated[list[str] | None, ListSet] = None
    """A set inside of an item."""


class Port(Model):
    """An item that is known by two fields, one of which has a default."""

    port: Int32
    """The number."""
    protocol: str = "TCP"
    """The protocol."""
    name: str | None = None
    """A name."""


class Leaf(Model):
    """The innermost object."""

    left: str | None = None
    """One side."""
    right: str | None = None
    """The other side."""


class Branch(Model):
    """An object in an object."""

    leaf: Leaf | None = None
    """What it bears."""
    size: Int32 | None = None
    """How large."""


class ThingSpec(Model):
    """What is wanted of a thing."""

    count: Int32 = 1
    """How many."""
    note: str | None = None
    """Any text."""
    flag: bool | None = None
    """A truth."""
    branch: Branch | None = None
    """Nested objects."""
    items: Annotated[list[Item] | None, ListMap("name")] = None
    """A map list."""
    ports: Annotated[list[Port] | None, ListMap("port", "protocol")] = None
    """A map list with two keys."""
    tags: Annotated[list[str] | None, ListSet] = None
    """A set list."""
    numbers: Annotated[list[Int32] | None, AtomicList] = None
    """An atomic list."""
    options: dict[str, str] | None = None
    """A granular map."""
    groups: dict[str, Branch] | None = None
    """A granular map of objects."""
    selector: Annotated[dict[str, str] | None, AtomicMap] = None
    """An atomic map."""
    extra: Annotated[dict[str, Any] | None, PreserveUnknownFields] = None
    """Anything."""


class ThingStatus(Model):
    """What is known of a thing."""

    ready: Int32 | None = None
    """How many are ready."""
    conditions: Annotated[list[Condition] | None, ListMap("type")] = None
    """Its conditions."""


class Thing(Resource):
    """A thing with every shape of field."""

    group: ClassVar[str] = "example.dev"
    version: ClassVar[str] = "v1"
    plural: ClassVar[str] = "things"
    scale: ClassVar[ScalePaths | None] = ScalePaths(spec_replicas=".spec.count", status_replicas=".status.ready")

    spec: ThingSpec
    status: ThingStatus | None = None


KIND = describe(Thing)
SCHEMA = KIND.schema
SHAPE = shape.compile(SCHEMA)
API_VERSION = KIND.api_version
