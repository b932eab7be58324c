"""LocalWorker: one provisioned backup worker that runs beside the data it reads.

A LocalWorker is a namespaced thing: it holds one workspace's credential and reaches one set of sources. Backups are policies about data and
get a group of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, Self

from apiserver.meta.condition import Condition
from apiserver.meta.field_errors import FieldError, invalid
from apiserver.meta.markers import ListMap
from apiserver.meta.resource import Column, Model, Resource
from apiserver.meta.validation import dns1123_subdomain_errors


class LocalWorkerSpec(Model):
    """What is wanted of a worker."""

    image: str | None = None
    """Image of the worker. The operator uses the version that it was built against when it is not given."""
    config_secret_ref: str | None = None
    """Name of a Secret in the worker's namespace that holds config.yaml. It is a Secret since the file carries the worker's key and the
    passwords of its sources."""


class LocalWorkerStatus(Model):
    """What the operator has observed of a worker."""

    conditions: Annotated[list[Condition] | None, ListMap("type")] = None
    """Observations of the worker's state, one of each type. A running pod is not yet a working worker: the condition Polling says whether
    it asks for work."""


class LocalWorker(Resource):
    """LocalWorker is one provisioned worker with the credential that it polls for work with."""

    group: ClassVar[str] = "worker.saved.sh"
    version: ClassVar[str] = "v1alpha1"
    plural: ClassVar[str] = "localworkers"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Image", "string", ".spec.image", description="Image of the worker"),
        Column("Config", "string", ".spec.configSecretRef", description="Secret that holds the worker's configuration"),
        Column("Polling", "string", '.status.conditions[?(@.type=="Polling")].status', description="Whether the worker asks for work"),
        Column("Age", "date", ".metadata.creationTimestamp", description="Time since the worker was created"),
    )

    spec: LocalWorkerSpec
    """What is wanted of the worker."""
    status: LocalWorkerStatus | None = None
    """What the operator has observed of the worker."""

    def validate_object(self, old: Self | None) -> Iterable[FieldError]:
        """A reference to a Secret must be a name that a Secret can have."""
        reference = self.spec.config_secret_ref
        if reference is not None:
            for problem in dns1123_subdomain_errors(reference):
                yield invalid("spec.configSecretRef", reference, problem)
