"""What the store raises becomes what a client is told: the one table, complete by test.

Knows every StoreError and no HTTP. Texts are Kubernetes' where it has one; none of them shows what is inside the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.meta import errors
from storage.errors import (
    Compacted,
    Corrupted,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    Overloaded,
    RevisionConflict,
    StoreClosed,
    StoreError,
    StoreFull,
    StoreLocked,
    Unavailable,
    Unknown,
    Unsupported,
    ValueTooLarge,
    WatcherTooSlow,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiserver.meta.errors import APIError, GroupResource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def _future(error: StoreError, _resource: GroupResource, _name: str) -> APIError:
    assert isinstance(error, FutureRevision)
    return errors.too_large_resource_version(error.revision, error.current_revision)


TABLE: dict[type[StoreError], Callable[[StoreError, GroupResource, str], APIError]] = {
    KeyNotFound: lambda _, resource, name: errors.not_found(resource, name),
    KeyExists: lambda _, resource, name: errors.already_exists(resource, name),
    RevisionConflict: lambda _, resource, name: errors.conflict(resource, name, MODIFIED),
    Compacted: lambda *_: errors.expired("The resourceVersion for the provided list is too old."),
    FutureRevision: _future,
    ValueTooLarge: lambda *_: errors.request_entity_too_large("the object is larger than the store takes"),
    WatcherTooSlow: lambda *_: errors.expired("The resourceVersion for the provided watch is too old."),
    Overloaded: lambda *_: errors.too_many_requests("too many writes are waiting, please try again later"),
    Unavailable: lambda *_: errors.service_unavailable("the store cannot be reached, please try again later"),
    StoreFull: lambda *_: errors.service_unavailable("the store is full: nothing can be written until its operator has made room"),
    Unsupported: lambda *_: errors.service_unavailable("the store is of a version that cannot be used"),
    Unknown: lambda *_: errors.timeout("the store did not answer in time; whether the write was done is not known"),
    Corrupted: lambda *_: errors.internal_error("the stored object cannot be read"),
    StoreLocked: lambda *_: errors.service_unavailable("the store is served by another process"),
    StoreClosed: lambda *_: errors.service_unavailable("the server is shutting down"),
}


def api_error(error: StoreError, resource: GroupResource, name: str = "") -> APIError:
    """The APIError that tells a client of this failure; the caller raises it `from` the StoreError."""
    for kind in type(error).__mro__:
        if make := TABLE.get(kind):
            return make(error, resource, name)
    return errors.internal_error("the store failed")
