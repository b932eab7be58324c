"""ResourceRequirements: what a container, or a volume, is given of CPU, memory, storage and devices."""

from __future__ import annotations

from typing import Annotated

from apiserver.meta.markers import ListMap
from apiserver.meta.quantity import Quantity
from openapi.model import Model


class ResourceClaim(Model):
    """Names one of the pod's resource claims for use in a container."""

    name: str
    """Name of an entry in the pod's resourceClaims."""
    request: str | None = None
    """Which of the claim's requests is used; all of them when it is not given."""


class ResourceRequirements(Model):
    """What a container is given."""

    claims: Annotated[list[ResourceClaim] | None, ListMap("name")] = None
    """Claims of devices (dynamic resource allocation) that the container uses. They must be declared in the pod."""
    limits: dict[str, Quantity] | None = None
    """The most that the container may use, by resource name, as in `memory: 1Gi`."""
    requests: dict[str, Quantity] | None = None
    """What is set aside for the container, by resource name; what is not given is taken from the limit. A request is not above its
    limit."""


class VolumeResourceRequirements(Model):
    """How big a volume is."""

    limits: dict[str, Quantity] | None = None
    """The greatest size, by resource name, as in `storage: 10Gi`."""
    requests: dict[str, Quantity] | None = None
    """The least size, by resource name; what is not given is taken from the limit."""
