"""What clients are told of an object that lies in the store and cannot be read.

Policy: others are served and written as ever. Nobody is shown the rest as if it were everything: a list or watch that covers it fails, and
names it, as in kube-apiserver. It goes when somebody deletes it who may do without its finalizers and preconditions
(`ignoreStoreReadErrorWithClusterBreakingPotential`), or when whoever has put it there mends it.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/storage/etcd3/corrupt_obj_deleter.go
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from apiserver.meta import errors
from apiserver.registry.stored_object import UnreadableObject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apiserver.meta.errors import APIError, GroupResource
    from apiserver.registry.stored_object import StoredObject
    from storage.history import Change

_NAMED = 100
"""How many are named at once; upstream's number."""


def not_changed(obj: UnreadableObject) -> APIError:
    """The 500 for whoever would change this object."""
    return errors.APIError(500, "", _problem(obj))


def not_shown(obj: UnreadableObject) -> APIError:
    """The 500 for whoever asks for this object, or would delete it."""
    return errors.internal_error(_said(obj, key=obj.key.removeprefix("/registry")))


def check_all(resource: GroupResource, objects: Iterable[StoredObject]) -> None:
    """Raise the 500 for whoever asks for all of these, if there is an unreadable one among them."""
    found = list(islice((obj for obj in objects if isinstance(obj, UnreadableObject)), _NAMED + 1))
    if found:
        raise not_listed(resource, found)


def of_change(change: Change[StoredObject]) -> list[UnreadableObject]:
    """What cannot be read of what a change has left, and of what was there before."""
    return [obj for obj in (change.entry, change.previous) if isinstance(obj, UnreadableObject)]


def not_listed(resource: GroupResource, found: list[UnreadableObject]) -> APIError:
    """The 500 for whoever asks for more than these, or follows what becomes of it."""
    named, more = found[:_NAMED], len(found) > _NAMED
    causes = [errors.Cause("UnexpectedServerResponse", _said(obj, key=obj.key), obj.key) for obj in named]
    if more:
        causes.append(errors.Cause("FieldValueTooMany", "too many errors, the list is truncated"))
    message = f"failed to read one or more {resource} from the storage: {causes[0].message}"
    if len(named) > 1:
        message += f" (and {len(named) - 1} more)"
    return errors.storage_read_error(resource, message, causes)


def _said(obj: UnreadableObject, *, key: str) -> str:
    return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {_problem(obj)}"


def _problem(obj: UnreadableObject) -> str:
    return f"object not decodable revision={obj.revision}: {obj.problem}"
