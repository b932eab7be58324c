"""Volumes whose files the kubelet writes: from ConfigMaps, Secrets, the pod's own fields, tokens, certificates, or all of these."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from apiserver.core.references import KeyToPath, ObjectFieldSelector, ResourceFieldSelector
from apiserver.meta.label_selector import LabelSelector
from apiserver.meta.markers import AtomicList, Int32, Int64
from openapi.model import Model


class ConfigMapVolumeSource(Model):
    """A volume with a file for each key of a ConfigMap."""

    default_mode: Int32 | None = None
    """Permissions of files that do not say otherwise, 0 to 511 (0777 in octal); 0644 when it is not given."""
    default_user: Int64 | None = None
    """User id that owns files that do not say otherwise."""
    items: Annotated[list[KeyToPath] | None, AtomicList] = None
    """The keys that become files, and where. Without it, every key becomes a file of its name."""
    name: str | None = None
    """Name of the ConfigMap."""
    optional: bool | None = None
    """Whether the pod starts even if the ConfigMap or a key is missing."""


class SecretVolumeSource(Model):
    """A volume with a file for each key of a Secret."""

    default_mode: Int32 | None = None
    """Permissions of files that do not say otherwise, 0 to 511 (0777 in octal); 0644 when it is not given."""
    default_user: Int64 | None = None
    """User id that owns files that do not say otherwise."""
    items: Annotated[list[KeyToPath] | None, AtomicList] = None
    """The keys that become files, and where. Without it, every key becomes a file of its name."""
    optional: bool | None = None
    """Whether the pod starts even if the Secret or a key is missing."""
    secret_name: str | None = None
    """Name of the Secret in the pod's namespace."""


class DownwardAPIVolumeFile(Model):
    """A file with a field of the pod in it."""

    field_ref: ObjectFieldSelector | None = None
    """The field: the pod's name, namespace, labels, annotations or uid."""
    mode: Int32 | None = None
    """Permissions of the file, 0 to 511 (0777 in octal). The volume's defaultMode when it is not given."""
    path: str
    """Path of the file within the volume: relative, and without `..`."""
    resource_field_ref: ResourceFieldSelector | None = None
    """A limit or request of a container: of cpu or memory."""
    user: Int64 | None = None
    """User id that owns the file. The volume's defaultUser when it is not given."""


class DownwardAPIVolumeSource(Model):
    """A volume with files that tell a pod about itself."""

    default_mode: Int32 | None = None
    """Permissions of files that do not say otherwise, 0 to 511 (0777 in octal); 0644 when it is not given."""
    default_user: Int64 | None = None
    """User id that owns files that do not say otherwise."""
    items: Annotated[list[DownwardAPIVolumeFile] | None, AtomicList] = None
    """The files."""


class ClusterTrustBundleProjection(Model):
    """A file with the trust anchors of one or several ClusterTrustBundles."""

    label_selector: LabelSelector | None = None
    """Bundles of the signer that are taken, by their labels; only with signerName. An empty selector means all of them."""
    name: str | None = None
    """Name of the one bundle that is taken. It excludes signerName and labelSelector."""
    optional: bool | None = None
    """Whether the pod starts even if there is no such bundle yet."""
    path: str
    """Path of the file within the volume."""
    signer_name: str | None = None
    """Signer whose bundles are taken. It excludes name."""
    user: Int64 | None = None
    """User id that owns the file."""


class ConfigMapProjection(Model):
    """Files from the keys of a ConfigMap."""

    items: Annotated[list[KeyToPath] | None, AtomicList] = None
    """The keys that become files, and where. Without it, every key becomes a file of its name."""
    name: str | None = None
    """Name of the ConfigMap."""
    optional: bool | None = None
    """Whether the pod starts even if the ConfigMap or a key is missing."""


class DownwardAPIProjection(Model):
    """Files that tell a pod about itself."""

    items: Annotated[list[DownwardAPIVolumeFile] | None, AtomicList] = None
    """The files."""


class PodCertificateProjection(Model):
    """A private key with a certificate for the pod, which the kubelet requests and renews."""

    certificate_chain_path: str | None = None
    """Path within the volume of a file with the certificate chain alone. One file with key and chain is safer to read during renewal."""
    credential_bundle_path: str | None = None
    """Path within the volume of a file with the private key, followed by the certificate chain, in PEM."""
    key_path: str | None = None
    """Path within the volume of a file with the private key alone."""
    key_type: str
    """Kind of key that is made: RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519."""
    max_expiration_seconds: Int32 | None = None
    """How many seconds the certificate is valid at the most, from 3600; 86400 when it is not given. Signers may give less."""
    signer_name: str
    """Signer that is asked for the certificate."""
    user: Int64 | None = None
    """User id that owns the files."""
    user_annotations: dict[str, str] | None = None
    """What the signer is told besides, in the unverifiedUserAnnotations of the PodCertificateRequest. Keys are domain-prefixed."""


class SecretProjection(Model):
    """Files from the keys of a Secret."""

    items: Annotated[list[KeyToPath] | None, AtomicList] = None
    """The keys that become files, and where. Without it, every key becomes a file of its name."""
    name: str | None = None
    """Name of the Secret."""
    optional: bool | None = None
    """Whether the pod starts even if the Secret or a key is missing."""


class ServiceAccountTokenProjection(Model):
    """A file with a token of the pod's service account, which the kubelet renews."""

    audience: str | None = None
    """For whom the token is meant; the API server when it is not given."""
    expiration_seconds: Int64 | None = None
    """How many seconds the token is valid, from 600; 3600 when it is not given. It is renewed well before."""
    path: str
    """Path of the file within the volume."""
    user: Int64 | None = None
    """User id that owns the file."""


class VolumeProjection(Model):
    """One source of a projected volume: exactly one of these."""

    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    """Trust anchors of ClusterTrustBundles."""
    config_map: ConfigMapProjection | None = None
    """Keys of a ConfigMap."""
    downward_api: DownwardAPIProjection | None = Field(None, alias="downwardAPI")
    """Fields of the pod."""
    pod_certificate: PodCertificateProjection | None = None
    """A private key and a certificate for the pod."""
    secret: SecretProjection | None = None
    """Keys of a Secret."""
    service_account_token: ServiceAccountTokenProjection | None = None
    """A token of the pod's service account."""


class ProjectedVolumeSource(Model):
    """A volume in which several sources are put together in one folder."""

    default_mode: Int32 | None = None
    """Permissions of files that do not say otherwise, 0 to 511 (0777 in octal); 0644 when it is not given."""
    default_user: Int64 | None = None
    """User id that owns files that do not say otherwise."""
    sources: Annotated[list[VolumeProjection] | None, AtomicList] = None
    """The sources."""
