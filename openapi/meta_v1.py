"""The shapes that all kinds share, as models: metav1's ObjectMeta, ListMeta, Status, DeleteOptions, and autoscaling/v1's Scale.

Their structure is Kubernetes' own, field by field (tests/openapi compare it); the descriptions are ours. ObjectMeta is also the metadata of
every kind.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/apis/meta/v1/types.go
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from openapi.markers import AtomicList, Extension, Int32, Int64, ListMap, ListSet, PreserveUnknownFields, Time
from openapi.model import AtomicModel, Model


class OwnerReference(AtomicModel):
    """Names an object that owns this one; when the last owner is gone, the garbage collector deletes this object as well."""

    api_version: str
    """Group and version of the owner."""
    block_owner_deletion: bool | None = None
    """Whether a foreground deletion of the owner waits until this object is gone."""
    controller: bool | None = None
    """Whether the owner is the controller that manages this object; one owner at most may be."""
    kind: str
    """Kind of the owner."""
    name: str
    """Name of the owner."""
    uid: str
    """Unique identity of the owner: another object that takes its name later does not count."""


class FieldsV1(Model):
    """A set of fields as a tree: each member names a field (`f:<name>`), an element by its keys (`k:<keys>`) or by its value (`v:<value>`),
    and `.` stands for the value itself."""

    markers: ClassVar[tuple[Extension, ...]] = (PreserveUnknownFields,)


class ManagedFieldsEntry(Model):
    """Says which fields one manager owns through one way of writing."""

    api_version: str | None = None
    """Version of the resource in which the fields are named."""
    fields_type: str | None = None
    """Format of the field set; the only one there is, is FieldsV1."""
    fields_v1: FieldsV1 | None = None
    """The fields that the manager owns."""
    manager: str | None = None
    """Name of the manager, as it gave it in fieldManager or its user agent."""
    operation: str | None = None
    """How the manager came to own the fields: Apply or Update."""
    subresource: str | None = None
    """Subresource through which the fields were written; empty for the object itself."""
    time: Time | None = None
    """When the entry was added or last changed its set of fields."""


class ObjectMeta(Model):
    """What every stored object says about itself: its names, its history, its owners."""

    annotations: dict[str, str] | None = None
    """Free notes of tools and people; they cannot be selected by."""
    creation_timestamp: Time | None = None
    """When the server stored the object for the first time. Set by the server."""
    deletion_grace_period_seconds: Int64 | None = None
    """How many seconds the object has left to end by itself once its deletion was asked for. Set by the server."""
    deletion_timestamp: Time | None = None
    """When the deletion of the object was asked for; it goes once its finalizers are gone. Set by the server."""
    finalizers: Annotated[list[str] | None, ListSet] = None
    """Names of those who still have something to clean up before the object may go. Each removes its own."""
    generate_name: str | None = None
    """Prefix from which the server makes a unique name when none is given."""
    generation: Int64 | None = None
    """Number of the desired state: it grows with every change of it. Set by the server."""
    labels: dict[str, str] | None = None
    """Keys and values by which objects are grouped and selected."""
    managed_fields: Annotated[list[ManagedFieldsEntry] | None, AtomicList] = None
    """Which fields belong to whom. Kept by the server for server-side apply; few people need to look at it."""
    name: str | None = None
    """Name of the object, unique among objects of its kind in its namespace. It cannot be changed."""
    namespace: str | None = None
    """Namespace of the object; empty for objects that belong to the whole cluster. It cannot be changed."""
    owner_references: Annotated[list[OwnerReference] | None, ListMap("uid")] = None
    """Objects that own this one; when all of them are gone, this object is collected."""
    resource_version: str | None = None
    """Opaque version of the stored object. Send it back with an update so that nobody's change in between is lost."""
    self_link: str | None = None
    """Not set any more; kept so that old clients find the field."""
    uid: str | None = None
    """Identity of the object in time and space: another object of the same name has another one. Set by the server."""


class ShardInfo(Model):
    """Says which part of a collection a sharded list holds."""

    selector: str
    """The shard selector of the request, as the server understood it."""


class ListMeta(Model):
    """What a list says about itself."""

    continue_: str | None = Field(None, alias="continue")
    """Where the next page begins: send it back as `continue` with the same parameters. Empty on the last page."""
    remaining_item_count: Int64 | None = None
    """How many items the pages that follow will hold, if the server knows."""
    resource_version: str | None = None
    """Opaque version of the collection, from which a watch can go on."""
    self_link: str | None = None
    """Not set any more; kept so that old clients find the field."""
    shard_info: ShardInfo | None = None
    """Set when the list holds one shard of the collection only."""


class Preconditions(Model):
    """What must still be true of an object for it to be deleted."""

    resource_version: str | None = None
    """The version that the object must have."""
    uid: str | None = None
    """The identity that the object must have."""


class DeleteOptions(Model):
    """How an object, or a collection, is to be deleted."""

    api_version: str | None = None
    """Version of the schema of this object."""
    dry_run: Annotated[list[str] | None, AtomicList] = None
    """`All`: do everything but store the result."""
    grace_period_seconds: Int64 | None = None
    """Seconds until the object goes; 0 means at once, and no value means what the kind has as its default."""
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    """Delete an object that cannot be read from the store any more, without finalizers and preconditions. Dangerous."""
    kind: str | None = None
    """Kind of this object."""
    orphan_dependents: bool | None = None
    """Old form of propagationPolicy: true keeps dependents and removes their reference to the owner."""
    preconditions: Preconditions | None = None
    """What must still be true of the object; otherwise the answer is 409."""
    propagation_policy: str | None = None
    """What becomes of dependents: Orphan keeps them, Background deletes them afterwards, Foreground before the object itself."""


class StatusCause(Model):
    """One of the reasons of a failure."""

    field: str | None = None
    """The field that is to blame, as in `spec.env[0].name`."""
    message: str | None = None
    """The reason in words."""
    reason: str | None = None
    """The reason as one word for programs."""


class StatusDetails(Model):
    """What a program can learn about a failure."""

    causes: Annotated[list[StatusCause] | None, AtomicList] = None
    """The single reasons, if there are several."""
    group: str | None = None
    """Group of the resource that the failure is about."""
    kind: str | None = None
    """Kind or resource that the failure is about."""
    name: str | None = None
    """Name of the object that the failure is about."""
    retry_after_seconds: Int32 | None = None
    """Seconds after which the request can be sent again."""
    uid: str | None = None
    """Identity of the object that the failure is about."""


class Status(Model):
    """The answer to a request that does not return an object."""

    api_version: str | None = None
    """Version of the schema of this object."""
    code: Int32 | None = None
    """The HTTP status of the answer."""
    details: StatusDetails | None = None
    """What a program can learn about a failure; its members depend on the reason."""
    kind: str | None = None
    """Kind of this object."""
    message: str | None = None
    """What happened, in words."""
    metadata: ListMeta = Field(default_factory=ListMeta)
    """What a list says about itself."""
    reason: str | None = None
    """Why the request failed, as one word for programs, such as NotFound."""
    status: str | None = None
    """Success or Failure."""


class Patch(Model):
    """A patch in the format that the request's Content-Type names."""


class RawExtension(Model):
    """An object of any kind."""

    markers: ClassVar[tuple[Extension, ...]] = (PreserveUnknownFields,)


class WatchEvent(Model):
    """One event of a watch."""

    object: RawExtension
    """The object after the change, or before it when it was deleted; for BOOKMARK only its kind and resourceVersion; for ERROR a Status."""
    type: str
    """ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""


class ScaleSpec(Model):
    """What is wanted of a scaled object."""

    replicas: Int32 = 0
    """How many replicas are wanted."""


class ScaleStatus(Model):
    """What is observed of a scaled object."""

    replicas: Int32
    """How many replicas there are."""
    selector: str | None = None
    """Label selector, as one string, that finds the replicas' pods."""


class Scale(Model):
    """The size of an object that has replicas, in the same shape for every kind."""

    api_version: str | None = None
    """Version of the schema of this object."""
    kind: str | None = None
    """Kind of this object."""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    """Metadata of the scaled object."""
    spec: ScaleSpec = Field(default_factory=ScaleSpec)
    """What is wanted."""
    status: ScaleStatus = Field(default_factory=lambda: ScaleStatus(replicas=0))
    """What is observed."""


class GroupVersionForDiscovery(Model):
    """One version of a group."""

    group_version: str
    """Group and version, as objects carry it in apiVersion."""
    version: str
    """The version alone."""


class ServerAddressByClientCIDR(Model):
    """Where clients from a range of addresses reach the server."""

    client_cidr: str = Field(alias="clientCIDR")
    """Range of the clients' addresses."""
    server_address: str
    """Host, with or without a port, for these clients."""


class APIGroup(Model):
    """A group and the versions in which it is served."""

    api_version: str | None = None
    """Version of the schema of this object."""
    kind: str | None = None
    """Kind of this object."""
    name: str
    """Name of the group."""
    preferred_version: GroupVersionForDiscovery = Field(default_factory=lambda: GroupVersionForDiscovery(group_version="", version=""))
    """The version that clients should use if they have no reason for another."""
    server_address_by_client_cidrs: Annotated[list[ServerAddressByClientCIDR] | None, AtomicList] = Field(
        None, alias="serverAddressByClientCIDRs"
    )
    """Where clients reach the server for this group, by their addresses."""
    versions: Annotated[list[GroupVersionForDiscovery], AtomicList]
    """Versions in which the group is served."""


class APIGroupList(Model):
    """The groups that the server has."""

    api_version: str | None = None
    """Version of the schema of this object."""
    groups: Annotated[list[APIGroup], AtomicList]
    """The groups."""
    kind: str | None = None
    """Kind of this object."""


class VersionInfo(Model):
    """Which release the server is."""

    build_date: str
    """When it was built."""
    compiler: str
    """What compiled it."""
    emulation_major: str | None = None
    """Major number of the release that the server behaves as."""
    emulation_minor: str | None = None
    """Minor number of the release that the server behaves as."""
    git_commit: str
    """Commit it was built from."""
    git_tree_state: str
    """Whether there were changes that were not committed."""
    git_version: str
    """Release in full, as in v1.37.2."""
    go_version: str
    """Version of the language it is written in, in the field where clients look for it."""
    major: str
    """Major number of the release."""
    min_compatibility_major: str | None = None
    """Major number of the oldest release that the server is compatible with."""
    min_compatibility_minor: str | None = None
    """Minor number of the oldest release that the server is compatible with."""
    minor: str
    """Minor number of the release."""
    platform: str
    """Operating system and processor."""
