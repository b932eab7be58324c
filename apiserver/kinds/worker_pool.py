"""WorkerPool: a fleet of identical worker pods that run agent executions in sandboxes.

The pod itself is built by the pool's controller. The template is a curated overlay over it, and the rules here keep a user's edit from
breaking the sandbox: volumes and paths that the runtime owns cannot be taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from apiserver.core import (
    Affinity,
    EnvVar,
    LocalObjectReference,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    VolumeMount,
)
from apiserver.meta.condition import Condition
from apiserver.meta.field_errors import FieldError, invalid, not_found
from apiserver.meta.markers import AtomicList, AtomicMap, ListMap
from apiserver.meta.resource import Column, Int32, Int64, Model, Resource, ScalePaths

SELECTOR_LABEL = "clrk.apoxy.dev/worker-pool"
"""The label that the controller puts on every worker pod; its value is the pool's name."""

APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/worker"
"""The annotation that keeps the sandbox runtime out of AppArmor's way."""

ALWAYS_DROPPED_ENV = frozenset({"POD_NAME", "POD_NAMESPACE", "CLRK_POOL_NAME"})
SOMETIMES_DROPPED_ENV = frozenset({"CLRK_CM_OTLP_ENDPOINT", "CLRK_CM_NATS_ADDR"})

RESERVED_VOLUMES: Mapping[str, str] = {"state": "/var/lib/clrk/state", "run": "/run/clrk", "varlog": "/var/log/clrk"}
"""The runtime's own volumes and where the worker finds them."""

SYSTEM_PATHS = ("/proc", "/dev", "/sys", "/tmp", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/root")

IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]*")


class ImageCacheConfig(Model):
    """How worker nodes cache container images."""

    enabled: bool | None = None
    """Whether images are cached on the worker nodes."""


class WorkerPodMeta(Model):
    """Labels and annotations for the worker pods."""

    labels: dict[str, str] | None = None
    """Labels merged into the worker pods. The pool's own selector label wins where a key is given twice."""
    annotations: dict[str, str] | None = None
    """Annotations merged into the worker pods. The AppArmor annotation of the worker container wins where it is given twice. Changing
    `clrk.apoxy.dev/restartedAt` restarts the pool's pods one after another."""


class WorkerPodTemplate(Model):
    """What may be tuned in the worker pods. All else in the pod (privileges, the scratch volumes of the sandbox runtime, the dispatch port,
    the variables from the downward API) is owned by the controller and cannot be expressed here."""

    image: str = Field(min_length=1)
    """Image of the worker container. It must be a clrk worker image: another one does not start the sandbox runtime."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the kubelet pulls the image: Always, IfNotPresent or Never. The controller uses IfNotPresent when it is not given."""
    image_pull_secrets: Annotated[list[LocalObjectReference] | None, ListMap("name")] = None
    """Secrets of the pool's namespace with which the image is pulled."""
    resources: ResourceRequirements | None = None
    """CPU, memory and other resources that the worker container requests and may use."""
    env: Annotated[list[EnvVar] | None, ListMap("name")] = None
    """Variables added to the worker container behind those from the downward API. POD_NAME, POD_NAMESPACE and CLRK_POOL_NAME are always
    dropped; CLRK_CM_OTLP_ENDPOINT and CLRK_CM_NATS_ADDR are dropped when the controller injects its own."""
    node_selector: Annotated[dict[str, str] | None, AtomicMap] = None
    """Labels that a node must have for worker pods to be scheduled on it."""
    tolerations: Annotated[list[Toleration] | None, AtomicList] = None
    """Taints of nodes that worker pods tolerate."""
    affinity: Affinity | None = None
    """Where worker pods are scheduled in relation to nodes and to other pods."""
    priority_class_name: str | None = None
    """Name of the PriorityClass of the worker pods."""
    topology_spread_constraints: Annotated[list[TopologySpreadConstraint] | None, ListMap("topologyKey", "whenUnsatisfiable")] = None
    """How worker pods are spread over failure domains."""
    service_account_name: str | None = None
    """ServiceAccount under which worker pods run. The controller uses clrk-worker when it is not given."""
    extra_volumes: Annotated[list[Volume] | None, ListMap("name")] = None
    """Volumes added to the worker pods. The names state, run and varlog belong to the sandbox runtime and are rejected."""
    extra_volume_mounts: Annotated[list[VolumeMount] | None, ListMap("mountPath")] = None
    """Mounts added to the worker container, each of a volume declared in extraVolumes. A path that overlaps one of the sandbox runtime or
    of the system is rejected."""
    metadata: WorkerPodMeta | None = None
    """Labels and annotations added to the worker pods."""


class WorkerPoolSpec(Model):
    """What is wanted of a pool."""

    replicas: Int32 = Field(1, ge=0)
    """How many worker pods the pool has."""
    max_executions_per_worker: Int32 | None = Field(None, ge=0)
    """How many agent executions one worker pod runs at the same time, at the most."""
    warm_pool: Int32 | None = Field(None, ge=0)
    """How many sandboxes are started ahead of need and kept ready."""
    image_cache: ImageCacheConfig | None = None
    """How worker nodes cache container images."""
    template: WorkerPodTemplate
    """What may be tuned in the worker pods."""


class WorkerPoolCapacity(Model):
    """How many executions the pool's ready workers can run."""

    max_executions: Int32 | None = Field(None, ge=0)
    """How many executions all ready workers together can run at the same time."""
    available_executions: Int32 | None = Field(None, ge=0)
    """How many more executions the pool can take now."""


class WorkerPoolStatus(Model):
    """What the controller has observed of a pool."""

    observed_generation: Int64 | None = None
    """The generation of the pool that this status was computed for."""
    ready_replicas: Int32 | None = Field(None, ge=0)
    """How many worker pods are ready."""
    active_executions: Int32 | None = Field(None, ge=0)
    """How many agent executions are running in the pool."""
    capacity: WorkerPoolCapacity | None = None
    """How many executions the pool can run, and has room for."""
    conditions: Annotated[list[Condition] | None, ListMap("type")] = None
    """Observations of the pool's state, one of each type."""


class WorkerPool(Resource):
    """WorkerPool is a set of identical worker pods that run agent executions in sandboxes."""

    group: ClassVar[str] = "clrk.apoxy.dev"
    version: ClassVar[str] = "v1alpha1"
    plural: ClassVar[str] = "workerpools"
    short_names: ClassVar[tuple[str, ...]] = ("wp",)
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Replicas", "integer", ".spec.replicas", description="Desired worker pods"),
        Column("Ready", "integer", ".status.readyReplicas", description="Worker pods that are ready"),
        Column("Active", "integer", ".status.activeExecutions", description="Agent executions that are running"),
        Column("Age", "date", ".metadata.creationTimestamp", description="Time since the pool was created"),
        Column("Image", "string", ".spec.template.image", description="Image of the worker container", priority=1),
    )
    scale: ClassVar[ScalePaths | None] = ScalePaths(
        spec_replicas=".spec.replicas",
        status_replicas=".status.readyReplicas",
        selector=lambda pool: f"{SELECTOR_LABEL}={pool['metadata']['name']}",
    )

    spec: WorkerPoolSpec
    """What is wanted of the pool."""
    status: WorkerPoolStatus | None = None
    """What the controller has observed of the pool."""

    def validate_object(self, old: Self | None) -> Iterable[FieldError]:
        """The rules of the template that a schema cannot say."""
        template = self.spec.template
        yield from _image_errors("spec.template.image", template.image)
        for index, volume in enumerate(template.extra_volumes or ()):
            if volume.name in RESERVED_VOLUMES:
                yield invalid(f"spec.template.extraVolumes[{index}].name", volume.name, _RESERVED_NAME)
        declared = {volume.name for volume in template.extra_volumes or ()}
        for index, mount in enumerate(template.extra_volume_mounts or ()):
            path = f"spec.template.extraVolumeMounts[{index}]"
            if mount.name in RESERVED_VOLUMES:
                yield invalid(f"{path}.name", mount.name, _RESERVED_NAME)
            elif mount.name not in declared:
                yield not_found(f"{path}.name", mount.name)
            yield from _mount_path_errors(f"{path}.mountPath", mount.mount_path)

    def warn(self, old: Self | None) -> Iterable[str]:
        """What is accepted but will not have the effect that its author may expect."""
        template = self.spec.template
        for index, variable in enumerate(template.env or ()):
            if variable.name in ALWAYS_DROPPED_ENV:
                yield f"spec.template.env[{index}].name: {variable.name} is set by the controller, this entry is dropped"
            elif variable.name in SOMETIMES_DROPPED_ENV:
                yield f"spec.template.env[{index}].name: {variable.name} is dropped when the controller injects its own"
        metadata = template.metadata
        if metadata and SELECTOR_LABEL in (metadata.labels or {}):
            yield f"spec.template.metadata.labels[{SELECTOR_LABEL}]: set by the controller, this value is replaced"
        if metadata and APPARMOR_ANNOTATION in (metadata.annotations or {}):
            yield f"spec.template.metadata.annotations[{APPARMOR_ANNOTATION}]: set by the controller, this value is replaced"


_RESERVED_NAME = f"is reserved for the sandbox runtime (reserved names: {', '.join(RESERVED_VOLUMES)})"


_TAKEN_PATHS = (
    *((f"{path}/", f"overlaps {path}, which is reserved for the sandbox runtime") for path in RESERVED_VOLUMES.values()),
    *((f"{path}/", f"overlaps the system path {path}") for path in SYSTEM_PATHS),
)


def _image_errors(path: str, image: str) -> Iterator[FieldError]:
    """One error at most: the first rule that the reference breaks, in the words that help to mend it."""
    if "".join(image.split()) != image:
        yield invalid(path, image, "must not contain whitespace")
    elif "://" in image:
        yield invalid(path, image, "must be an image reference without a scheme such as 'https://'")
    elif image.startswith("/") or image.endswith("/"):
        yield invalid(path, image, "must not begin or end with '/'")
    elif "//" in image:
        yield invalid(path, image, "must not contain '//'")
    elif image and not IMAGE.fullmatch(image):
        yield invalid(path, image, f"must match the pattern '^{IMAGE.pattern}$'")


def _mount_path_errors(path: str, mount_path: str) -> Iterator[FieldError]:
    if not mount_path.startswith("/"):
        yield invalid(path, mount_path, "must be an absolute path")
        return
    if mount_path == "/":
        yield invalid(path, mount_path, "must not be the root directory")
        return
    if any(part in ("", ".", "..") for part in mount_path[1:].split("/")):
        yield invalid(path, mount_path, "must be a clean path: no '.', '..', '//' and no trailing '/'")
        return
    whole = f"{mount_path}/"
    for taken, problem in _TAKEN_PATHS:
        # Equal, or one below the other.
        if whole.startswith(taken) or taken.startswith(whole):
            yield invalid(path, mount_path, problem)
            return
