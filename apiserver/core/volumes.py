"""Volume and VolumeMount: what a pod can read and write besides its images, and where its containers find it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from apiserver.core.claims import EphemeralVolumeSource, PersistentVolumeClaimVolumeSource
from apiserver.core.cloud_volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    ScaleIOVolumeSource,
    StorageOSVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from apiserver.core.network_volumes import (
    CephFSVolumeSource,
    FCVolumeSource,
    GlusterfsVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    QuobyteVolumeSource,
    RBDVolumeSource,
)
from apiserver.core.projections import ConfigMapVolumeSource, DownwardAPIVolumeSource, ProjectedVolumeSource, SecretVolumeSource
from apiserver.core.references import LocalObjectReference
from apiserver.meta.markers import Int32, ListSet
from apiserver.meta.quantity import Quantity
from openapi.model import Model


class CSIVolumeSource(Model):
    """A volume that a CSI driver makes for the pod and that lives as long as it does."""

    driver: str
    """Name of the driver, which must be registered in the cluster."""
    fs_type: str | None = None
    """File system to mount; the driver decides when it is not given."""
    node_publish_secret_ref: LocalObjectReference | None = None
    """Secret whose values the driver is given when the volume is mounted and unmounted."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    volume_attributes: dict[str, str] | None = None
    """What the driver is told besides; see its documentation."""


class EmptyDirVolumeSource(Model):
    """A folder that is empty at first and goes with the pod."""

    medium: str | None = None
    """What it is kept on: the node's disk when it is not given, or Memory."""
    mode: Int32 | None = None
    """Permissions of the folder, 0 to 1023 (01777 in octal); 0777 when it is not given. An fsGroup of the pod comes on top."""
    size_limit: Quantity | None = None
    """How much it may hold. In memory, it is bounded by the memory limits of the containers as well."""


class GitRepoVolumeSource(Model):
    """A clone of a git repository. Out of use and off in most clusters: clone in an init container into an emptyDir instead."""

    directory: str | None = None
    """Folder for the clone: relative, without `..`. `.` clones into the volume itself."""
    repository: str
    """Address of the repository."""
    revision: str | None = None
    """Commit to check out."""


class HostPathVolumeSource(Model):
    """A file or folder of the node. A danger to the node: avoid it where anything else will do."""

    path: str
    """Path on the node; a symbolic link is followed."""
    type: Literal["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"] | None = None
    """What must be there, or is made, before the volume is mounted. Nothing is checked when it is not given."""


class ImageVolumeSource(Model):
    """The contents of a container image or another OCI artifact, read-only."""

    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the artifact is pulled. Always for the tag latest or no tag, otherwise IfNotPresent, when it is not given."""
    reference: str | None = None
    """Reference of the artifact, as an image of a container is named."""


class Volume(Model):
    """A volume of a pod: its name and exactly one source."""

    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    """A disk of AWS."""
    azure_disk: AzureDiskVolumeSource | None = None
    """A disk of Azure."""
    azure_file: AzureFileVolumeSource | None = None
    """A file share of Azure."""
    cephfs: CephFSVolumeSource | None = None
    """A CephFS file system. No longer supported."""
    cinder: CinderVolumeSource | None = None
    """A disk of OpenStack."""
    config_map: ConfigMapVolumeSource | None = None
    """Files from a ConfigMap."""
    csi: CSIVolumeSource | None = None
    """Storage that a CSI driver makes for the pod."""
    downward_api: DownwardAPIVolumeSource | None = Field(None, alias="downwardAPI")
    """Files that tell the pod about itself."""
    empty_dir: EmptyDirVolumeSource | None = None
    """A folder that is empty at first and goes with the pod."""
    ephemeral: EphemeralVolumeSource | None = None
    """A volume made by a storage driver for the pod and deleted with it."""
    fc: FCVolumeSource | None = None
    """A disk on Fibre Channel."""
    flex_volume: FlexVolumeSource | None = None
    """A volume that a program on the node attaches. Out of use."""
    flocker: FlockerVolumeSource | None = None
    """A dataset of Flocker. No longer supported."""
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    """A disk of Google Cloud."""
    git_repo: GitRepoVolumeSource | None = None
    """A clone of a git repository. Out of use."""
    glusterfs: GlusterfsVolumeSource | None = None
    """A GlusterFS volume. No longer supported."""
    host_path: HostPathVolumeSource | None = None
    """A file or folder of the node."""
    image: ImageVolumeSource | None = None
    """The contents of an OCI image or artifact."""
    iscsi: ISCSIVolumeSource | None = None
    """A disk on iSCSI."""
    name: str
    """Name of the volume, a DNS label, unique in the pod."""
    nfs: NFSVolumeSource | None = None
    """A folder of an NFS server."""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    """A persistent volume, by a claim in the pod's namespace."""
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    """A disk of a Photon Controller. No longer supported."""
    portworx_volume: PortworxVolumeSource | None = None
    """A Portworx volume."""
    projected: ProjectedVolumeSource | None = None
    """Files from several sources in one folder: Secrets, ConfigMaps, the pod's fields, tokens, certificates."""
    quobyte: QuobyteVolumeSource | None = None
    """A Quobyte volume. No longer supported."""
    rbd: RBDVolumeSource | None = None
    """A block device of Ceph. No longer supported."""
    scale_io: ScaleIOVolumeSource | None = Field(None, alias="scaleIO")
    """A ScaleIO volume. No longer supported."""
    secret: SecretVolumeSource | None = None
    """Files from a Secret."""
    storageos: StorageOSVolumeSource | None = None
    """A StorageOS volume. No longer supported."""
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    """A disk of vSphere."""


class VolumeMount(Model):
    """Where a container finds a volume."""

    bind_mount_options: Annotated[list[str] | None, ListSet] = None
    """Further options of the mount: noexec, nodev or nosuid. Not for image volumes."""
    mount_path: str
    """Path in the container; it must not contain `:`."""
    mount_propagation: Literal["Bidirectional", "HostToContainer", "None"] | None = None
    """Whether mounts made later are seen on the other side: None (used when nothing is given), HostToContainer or Bidirectional."""
    name: str
    """Name of the volume."""
    read_only: bool | None = None
    """Whether the container can only read it."""
    recursive_read_only: str | None = None
    """For a read-only mount, whether mounts below it are read-only as well: Disabled, IfPossible or Enabled."""
    sub_path: str | None = None
    """Path within the volume that is mounted; its root when it is not given."""
    sub_path_expr: str | None = None
    """As subPath, with `$(NAME)` for the container's variables. It excludes subPath."""
