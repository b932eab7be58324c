"""EnvVar: an environment variable of a container and where its value comes from."""

from __future__ import annotations

from apiserver.core.references import ObjectFieldSelector, ResourceFieldSelector
from openapi.model import AtomicModel, Model


class ConfigMapKeySelector(AtomicModel):
    """Names a key of a ConfigMap."""

    key: str
    """The key."""
    name: str | None = None
    """Name of the ConfigMap."""
    optional: bool | None = None
    """Whether the container starts even if the ConfigMap or the key is missing."""


class SecretKeySelector(AtomicModel):
    """Names a key of a Secret."""

    key: str
    """The key; it must be a valid one."""
    name: str | None = None
    """Name of the Secret."""
    optional: bool | None = None
    """Whether the container starts even if the Secret or the key is missing."""


class FileKeySelector(AtomicModel):
    """Names a variable in a file of variables."""

    key: str
    """Name of the variable in the file."""
    optional: bool | None = None
    """Whether the container starts even if the file or the variable is missing. Otherwise it does not start."""
    path: str
    """Path of the file within the volume: relative, and without `..`."""
    volume_name: str
    """Name of the volume that holds the file; it need not be mounted in the container."""


class EnvVarSource(Model):
    """Where the value of a variable comes from: exactly one of these."""

    config_map_key_ref: ConfigMapKeySelector | None = None
    """A key of a ConfigMap in the pod's namespace."""
    field_ref: ObjectFieldSelector | None = None
    """A field of the pod: metadata.name, metadata.namespace, a label or annotation by its key, spec.nodeName, spec.serviceAccountName,
    status.hostIP, status.podIP and the like."""
    file_key_ref: FileKeySelector | None = None
    """A variable in a file that lies in a volume of the pod."""
    resource_field_ref: ResourceFieldSelector | None = None
    """A limit or request of the container: of cpu, memory or ephemeral-storage."""
    secret_key_ref: SecretKeySelector | None = None
    """A key of a Secret in the pod's namespace."""


class EnvVar(Model):
    """An environment variable of a container."""

    name: str
    """Name of the variable: printable ASCII without `=`."""
    value: str | None = None
    """Value of the variable. `$(NAME)` stands for the value of a variable set before, `$$` for a single `$`; an unknown name stays as it
    is written."""
    value_from: EnvVarSource | None = None
    """Where the value comes from instead. It cannot be given together with a value."""
