"""Claims for persistent volumes: using one that exists, and having one made that lives as long as the pod."""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.core.references import TypedLocalObjectReference, TypedObjectReference
from apiserver.core.resources import VolumeResourceRequirements
from apiserver.meta.label_selector import LabelSelector
from apiserver.meta.markers import AtomicList
from apiserver.meta.object_meta import ObjectMeta
from openapi.model import Model

AccessMode = Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]


class PersistentVolumeClaimVolumeSource(Model):
    """A volume that a claim in the pod's namespace stands for."""

    claim_name: str
    """Name of the claim."""
    read_only: bool | None = None
    """Whether the volume can only be read, whatever its mounts say."""


class PersistentVolumeClaimSpec(Model):
    """What is asked of a persistent volume."""

    access_modes: Annotated[list[AccessMode] | None, AtomicList] = None
    """How the volume is to be mountable: by one node, by one pod, or by many, for reading or for writing."""
    data_source: TypedLocalObjectReference | None = None
    """What the volume is filled with at first: a VolumeSnapshot or another claim in the same namespace."""
    data_source_ref: TypedObjectReference | None = None
    """What the volume is filled with at first: any object that a volume populator knows, from another namespace if allowed."""
    resources: VolumeResourceRequirements | None = None
    """How big the volume must be."""
    selector: LabelSelector | None = None
    """Labels that a volume must have to be taken."""
    storage_class_name: str | None = None
    """Name of the StorageClass that makes the volume."""
    volume_attributes_class_name: str | None = None
    """Name of the VolumeAttributesClass; unlike the storage class it can be changed later, which changes the volume's attributes."""
    volume_mode: Literal["Block", "Filesystem"] | None = None
    """Whether the volume is used with a file system on it (used when nothing is given) or as a raw device."""
    volume_name: str | None = None
    """Name of the PersistentVolume that the claim is bound to."""


class PersistentVolumeClaimTemplate(Model):
    """What a claim that is made for a pod looks like."""

    metadata: ObjectMeta | None = None
    """Labels and annotations of the claim; other fields are rejected."""
    spec: PersistentVolumeClaimSpec
    """What the claim asks for."""


class EphemeralVolumeSource(Model):
    """A volume that is made for the pod by a storage driver and deleted with it."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None
    """The claim that is made, under the name `<pod>-<volume>`, and owned by the pod. It must be given."""
