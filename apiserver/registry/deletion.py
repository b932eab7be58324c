"""When an object goes, and what stands in the way: preconditions, finalizers, propagation policy. Pure functions over metadata.

A custom resource knows no grace: it is deleted at once, or marked (deletionTimestamp, grace period 0) until its last finalizer is gone.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/registry/generic/registry/store.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apiserver.meta import errors
from apiserver.meta.errors import APIError, GroupResource

if TYPE_CHECKING:
    from apiserver.meta.options import DeleteOptions
    from apiserver.meta.resource import ResourceKind
    from apiserver.registry.stored_object import StoredObject

ORPHAN = "orphan"
"""Finalizer: the garbage collector takes this owner out of its dependents, then removes it."""
FOREGROUND = "foregroundDeletion"
"""Finalizer: the garbage collector deletes the dependents, then removes it."""


def check_preconditions(kind: ResourceKind, obj: StoredObject, options: DeleteOptions) -> None:
    """Raise the 409 of a deletion that was meant for another incarnation or version; its message names the kind, as upstream's."""
    resource = GroupResource(kind.group, kind.kind)
    if options.uid is not None and options.uid != obj.uid:
        raise errors.conflict(
            resource,
            obj.name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({obj.uid}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version is not None and options.resource_version != obj.resource_version:
        raise errors.conflict(
            resource,
            obj.name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion in record "
            f"({obj.resource_version}). The object might have been modified",
        )


def refuse_unsafe(kind: ResourceKind, obj: StoredObject, options: DeleteOptions) -> None:
    """Raise the 409 of a deletion that is meant for what cannot be read any more: it skips all checks, and this object can be read."""
    if options.ignore_store_read_error:
        problem = "unsafe deletion is not allowed because the object is decodable from storage"
        raise errors.conflict(kind.group_resource, obj.name, _invalid_object(obj, problem))


def _invalid_object(obj: StoredObject, problem: str) -> str:
    return f"StorageError: invalid object, Code: 4, Key: {obj.key}, ResourceVersion: 0, AdditionalErrorMsg: {problem}"


def uid_mismatch(resource: GroupResource, obj: StoredObject, uid: str) -> APIError:
    """409 for an update that names another incarnation of the object; the text is that of upstream's storage layer."""
    problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {obj.uid}"
    return errors.conflict(resource, obj.name, _invalid_object(obj, problem))


def finalizers_to_delete_with(finalizers: list[str], options: DeleteOptions) -> list[str]:
    """The finalizers that the object has once its deletion is asked for with these options.

    An explicit policy decides; without one, what the object has already stays; the default is to collect in the background.
    """
    policy = options.propagation_policy
    if options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if policy is None:
        return finalizers
    kept = [name for name in finalizers if name not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        kept.append(ORPHAN)
    elif policy == "Foreground":
        kept.append(FOREGROUND)
    return finalizers if set(kept) == set(finalizers) else kept


def mark_deleting(metadata: dict[str, Any], now: str) -> None:
    """Say in the metadata that the object is to go. The first time counts as a change of the desired state; later ones change nothing.

    `now` is RFC 3339 in UTC, in seconds: such times compare as strings.
    """
    deleted = metadata.get("deletionTimestamp")
    if deleted is None and metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    if deleted is None or deleted > now:
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0


def goes_with_update(metadata: dict[str, Any], old_metadata: dict[str, Any]) -> bool:
    """Whether an update that was about to be stored is the one that lets a marked object go."""
    return not metadata.get("finalizers") and "deletionTimestamp" in old_metadata and not old_metadata.get("deletionGracePeriodSeconds", 0)
