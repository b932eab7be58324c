"""Two small kinds for tests of the server: the loader finds them, as it finds the kinds of anybody's package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

from pydantic import Field

from apiserver.meta.resource import Column, Int32, Model, Resource, ScalePaths


class GadgetSpec(Model):
    """What is wanted of a gadget."""

    replicas: Int32 = Field(1, ge=0)
    """How many."""
    color: Literal["red", "green", "blue"] | None = None
    """Which color."""
    note: str | None = None
    """Any text."""


class GadgetStatus(Model):
    """What is known of a gadget."""

    ready_replicas: Int32 | None = None
    """How many are ready."""
    phase: str | None = None
    """Where it stands."""


class Gadget(Resource):
    """A thing with replicas."""

    group: ClassVar[str] = "example.dev"
    version: ClassVar[str] = "v1"
    plural: ClassVar[str] = "gadgets"
    short_names: ClassVar[tuple[str, ...]] = ("gd",)
    categories: ClassVar[tuple[str, ...]] = ("all",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Replicas", "integer", ".spec.replicas"),
        Column("Age", "date", ".metadata.creationTimestamp"),
    )
    scale: ClassVar[ScalePaths | None] = ScalePaths(spec_replicas=".spec.replicas", status_replicas=".status.readyReplicas")

    spec: GadgetSpec
    status: GadgetStatus | None = None

    def warn(self, old: Self | None) -> Iterable[str]:
        """Tell of a color that is out of fashion."""
        if self.spec.color == "blue":
            yield 'spec.color: "blue" is out of fashion'


class ClusterGadget(Resource):
    """A gadget outside of namespaces, without a status."""

    group: ClassVar[str] = "example.dev"
    version: ClassVar[str] = "v1"
    plural: ClassVar[str] = "clustergadgets"
    scope: ClassVar[Literal["Namespaced", "Cluster"]] = "Cluster"

    spec: GadgetSpec
