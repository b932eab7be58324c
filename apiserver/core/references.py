"""References: how a part of a pod names another object, a field of the pod itself, or a key in a ConfigMap or Secret."""

from __future__ import annotations

from apiserver.meta.markers import Int32, Int64
from apiserver.meta.quantity import Quantity
from openapi.model import AtomicModel, Model


class LocalObjectReference(AtomicModel):
    """Names an object of a known kind in the same namespace."""

    name: str | None = None
    """Name of the object."""


class TypedLocalObjectReference(AtomicModel):
    """Names an object of any kind in the same namespace."""

    api_group: str | None = None
    """Group of the object's kind; for none, the kind must be of the core group."""
    kind: str
    """Kind of the object."""
    name: str
    """Name of the object."""


class TypedObjectReference(Model):
    """Names an object of any kind, in another namespace if need be."""

    api_group: str | None = None
    """Group of the object's kind; for none, the kind must be of the core group."""
    kind: str
    """Kind of the object."""
    name: str
    """Name of the object."""
    namespace: str | None = None
    """Namespace of the object. Another namespace than one's own needs a ReferenceGrant there."""


class ObjectFieldSelector(AtomicModel):
    """Names a field of the pod."""

    api_version: str | None = None
    """Version in which the field is named; v1 when it is not given."""
    field_path: str
    """Path of the field, as in metadata.name or metadata.labels['app']."""


class ResourceFieldSelector(AtomicModel):
    """Names a request or a limit of a container."""

    container_name: str | None = None
    """Name of the container. Volumes must give it; in variables it is the container itself."""
    divisor: Quantity | None = None
    """Unit in which the value is written, as in 1m or 1Mi; 1 when it is not given."""
    resource: str
    """Which resource, as in limits.memory or requests.cpu."""


class KeyToPath(Model):
    """Puts one key of a ConfigMap or Secret into a file."""

    key: str
    """The key."""
    mode: Int32 | None = None
    """Permissions of the file, 0 to 511 (0777 in octal, which YAML accepts and JSON does not). The volume's defaultMode when it is not
    given."""
    path: str
    """Path of the file within the volume: relative, and without `..`."""
    user: Int64 | None = None
    """User id that owns the file. The volume's defaultUser when it is not given."""
