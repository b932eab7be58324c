"""Volumes on file servers and storage networks: NFS, iSCSI, Fibre Channel, Ceph, Gluster, Quobyte."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from apiserver.core.references import LocalObjectReference
from apiserver.meta.markers import AtomicList, Int32
from openapi.model import Model


class NFSVolumeSource(Model):
    """A folder that an NFS server exports."""

    path: str
    """Path that the server exports."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    server: str
    """Name or address of the server."""


class ISCSIVolumeSource(Model):
    """A disk reached over iSCSI."""

    chap_auth_discovery: bool | None = None
    """Whether discovery is authenticated with CHAP."""
    chap_auth_session: bool | None = None
    """Whether the session is authenticated with CHAP."""
    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    initiator_name: str | None = None
    """Name of the initiator. Given together with iscsiInterface, a new interface is made for the connection."""
    iqn: str
    """Qualified name of the target."""
    iscsi_interface: str = "default"
    """Interface that is used; `default` is TCP."""
    lun: Int32
    """Number of the unit at the target."""
    portals: Annotated[list[str] | None, AtomicList] = None
    """Further portals of the target, as address or address:port."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    secret_ref: LocalObjectReference | None = None
    """Secret with the CHAP credentials."""
    target_portal: str
    """Portal of the target, as address or address:port; the port is needed if it is not 860 or 3260."""


class FCVolumeSource(Model):
    """A disk reached over Fibre Channel, named by target and unit or by its world wide identifier."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    lun: Int32 | None = None
    """Number of the unit at the target."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    target_wwns: Annotated[list[str] | None, AtomicList] = Field(None, alias="targetWWNs")
    """World wide names of the targets."""
    wwids: Annotated[list[str] | None, AtomicList] = None
    """World wide identifiers of the disk, instead of targetWWNs and lun."""


class CephFSVolumeSource(Model):
    """A CephFS file system. No longer supported by Kubernetes: use a CSI driver."""

    monitors: Annotated[list[str], AtomicList]
    """Addresses of Ceph's monitors."""
    path: str | None = None
    """Folder that is mounted; `/` when it is not given."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    secret_file: str | None = None
    """File on the node with the user's key; /etc/ceph/user.secret when it is not given."""
    secret_ref: LocalObjectReference | None = None
    """Secret with the user's key, instead of secretFile."""
    user: str | None = None
    """User of Ceph; admin when it is not given."""


class RBDVolumeSource(Model):
    """A block device of Ceph. No longer supported by Kubernetes: use a CSI driver."""

    fs_type: str | None = None
    """File system to mount; ext4 when it is not given."""
    image: str
    """Name of the image."""
    keyring: str = "/etc/ceph/keyring"
    """File on the node with the user's keys."""
    monitors: Annotated[list[str], AtomicList]
    """Addresses of Ceph's monitors."""
    pool: str = "rbd"
    """Pool that holds the image."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    secret_ref: LocalObjectReference | None = None
    """Secret with the user's key, instead of the keyring."""
    user: str = "admin"
    """User of Ceph."""


class GlusterfsVolumeSource(Model):
    """A GlusterFS volume. No longer supported by Kubernetes."""

    endpoints: str
    """Name of the Endpoints object that lists the servers."""
    path: str
    """Name of the Gluster volume."""
    read_only: bool | None = None
    """Whether the volume can only be read."""


class QuobyteVolumeSource(Model):
    """A Quobyte volume. No longer supported by Kubernetes."""

    group: str | None = None
    """Group as which the volume is accessed; none when it is not given."""
    read_only: bool | None = None
    """Whether the volume can only be read."""
    registry: str
    """Registry services, as host:port, separated by commas."""
    tenant: str | None = None
    """Tenant that owns the volume; set by the provisioner."""
    user: str | None = None
    """User as whom the volume is accessed; the service account's user when it is not given."""
    volume: str
    """Name of the volume."""
