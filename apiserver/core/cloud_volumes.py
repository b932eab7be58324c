"""Volumes of clouds and of storage products that Kubernetes once had drivers for; most of them are handled by CSI drivers today."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from apiserver.core.references import LocalObjectReference
from apiserver.meta.markers import Int32
from openapi.model import Model


class AWSElasticBlockStoreVolumeSource(Model):
    """A disk of AWS. Handled by the CSI driver ebs.csi.aws.com."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    partition: Int32 | None = None
    """Partition to mount, as the number in its device name; 0 or none for the whole disk."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    volume_id: str = Field(alias="volumeID")
    """Identifier of the disk."""


class AzureDiskVolumeSource(Model):
    """A disk of Azure. Handled by the CSI driver disk.csi.azure.com."""

    caching_mode: Literal["None", "ReadOnly", "ReadWrite"] = "ReadWrite"
    """What the host caches: None, ReadOnly or ReadWrite."""
    disk_name: str
    """Name of the disk."""
    disk_uri: str = Field(alias="diskURI")
    """Address of the disk."""
    fs_type: str = "ext4"
    """File system to mount."""
    kind: Literal["Dedicated", "Managed", "Shared"] = "Shared"
    """What the disk belongs to: Shared (many disks in a storage account), Dedicated (one in its account) or Managed."""
    read_only: bool | None = None
    """Whether the volume can only be read."""


class AzureFileVolumeSource(Model):
    """A file share of Azure. Handled by the CSI driver file.csi.azure.com."""

    read_only: bool | None = None
    """Whether the volume can only be read."""
    secret_name: str
    """Secret with the name and key of the storage account."""
    share_name: str
    """Name of the share."""


class CinderVolumeSource(Model):
    """A disk of OpenStack. Handled by the CSI driver cinder.csi.openstack.org."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    secret_ref: LocalObjectReference | None = None
    """Secret with what is needed to reach OpenStack."""
    volume_id: str = Field(alias="volumeID")
    """Identifier of the disk."""


class FlexVolumeSource(Model):
    """A volume that a program on the node attaches. Out of use: write a CSI driver instead."""

    driver: str
    """Name of the driver."""
    fs_type: str | None = None
    """File system to mount; the driver decides when it is not given."""
    options: dict[str, str] | None = None
    """What the driver is told besides."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    secret_ref: LocalObjectReference | None = None
    """Secret whose values the driver is given."""


class FlockerVolumeSource(Model):
    """A dataset of Flocker, by name or by identifier. No longer supported by Kubernetes."""

    dataset_name: str | None = None
    """Name of the dataset, kept as its metadata."""
    dataset_uuid: str | None = Field(None, alias="datasetUUID")
    """Identifier of the dataset."""


class GCEPersistentDiskVolumeSource(Model):
    """A disk of Google Cloud. Handled by the CSI driver pd.csi.storage.gke.io."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    partition: Int32 | None = None
    """Partition to mount, as the number in its device name; 0 or none for the whole disk."""
    pd_name: str
    """Name of the disk."""
    read_only: bool | None = None
    """Whether the volume can only be read."""


class PhotonPersistentDiskVolumeSource(Model):
    """A disk of a Photon Controller. No longer supported by Kubernetes."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    pd_id: str = Field(alias="pdID")
    """Identifier of the disk."""


class PortworxVolumeSource(Model):
    """A Portworx volume. Handled by the CSI driver pxd.portworx.com."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    volume_id: str = Field(alias="volumeID")
    """Identifier of the volume."""


class ScaleIOVolumeSource(Model):
    """A ScaleIO volume. No longer supported by Kubernetes."""

    fs_type: str = "xfs"
    """File system to mount."""
    gateway: str
    """Address of ScaleIO's gateway."""
    protection_domain: str | None = None
    """Protection domain of the storage."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    secret_ref: LocalObjectReference
    """Secret with the user and password."""
    ssl_enabled: bool | None = None
    """Whether the gateway is spoken to over TLS."""
    storage_mode: str = "ThinProvisioned"
    """How space is given out: ThickProvisioned or ThinProvisioned."""
    storage_pool: str | None = None
    """Pool in the protection domain."""
    system: str
    """Name of the storage system."""
    volume_name: str | None = None
    """Name of a volume that exists."""


class StorageOSVolumeSource(Model):
    """A StorageOS volume. No longer supported by Kubernetes."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    secret_ref: LocalObjectReference | None = None
    """Secret with what is needed to reach StorageOS."""
    volume_name: str | None = None
    """Name of the volume in its namespace."""
    volume_namespace: str | None = None
    """Namespace of the volume in StorageOS; the pod's namespace when it is not given."""


class VsphereVirtualDiskVolumeSource(Model):
    """A disk of vSphere. Handled by the CSI driver csi.vsphere.vmware.com."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    storage_policy_id: str | None = Field(None, alias="storagePolicyID")
    """Identifier of the storage policy."""
    storage_policy_name: str | None = None
    """Name of the storage policy."""
    volume_path: str
    """Path of the disk."""
