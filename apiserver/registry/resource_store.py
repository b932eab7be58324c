"""One resource over one store: create, get, update and delete objects by the rules of their kind.

The only way to the stored objects of a kind; knows no HTTP. A write is one transaction of the store: the object in the cache is tried
first, and only when that turns out to be stale is anything read. An own write enters the cache without being parsed again.
Errors: APIError only; what the store raises is translated by the table in `errors.py`.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/registry/generic/registry/store.go
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.apply.managed_fields import keep_times
from apiserver.apply.ownership import Ownership
from apiserver.meta import errors
from apiserver.meta.time import timestamp
from apiserver.registry import deletion, unreadable
from apiserver.registry.errors import MODIFIED, api_error
from apiserver.registry.listing import parse_revision
from apiserver.registry.stored_object import EncodedObject, ObjectCodec, StoredObject, UnreadableObject
from apiserver.registry.strategy import Strategy
from apiserver.registry.write import Write
from apiserver.turns import Turns
from storage.cache import CacheLimits, WatchCache
from storage.errors import KeyExists, RevisionConflict, StoreError, ValueTooLarge
from storage.store import KeyValue

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from apiserver.meta.options import DeleteOptions
    from apiserver.meta.resource import ResourceKind
    from storage.store import Store

_log = logging.getLogger(__name__)

_NAME_ATTEMPTS = 8
"""Enough for a million names under one prefix; upstream's number."""
_DELETIONS_AT_ONCE = 32
"""How many objects of a collection are deleted together: enough for the store to group the writes."""


class ResourceStore:
    """The objects of one kind. The owner awaits `run` as a task; closing is done through the cache."""

    def __init__(
        self,
        kind: ResourceKind,
        store: Store,
        *,
        now: Callable[[], str] = timestamp,
        limits: CacheLimits | None = None,
        garbage_collected: bool = True,
        turns: Turns | None = None,
    ) -> None:
        """`garbage_collected`: somebody takes the finalizers away that orphaning and foreground deletions leave; else they leave none."""
        self.kind = kind
        self.codec = ObjectCodec(kind)
        self.cache: WatchCache[StoredObject] = WatchCache(store, self.codec.prefix(), decode=self.decode, limits=limits, retire=_retire)
        self.has_seen_unreadable = False
        """Whether anything has been stored, since the start, that cannot be read: only then need anybody look for it."""
        self.strategy = Strategy(kind, self.codec)
        self.now = now
        self.turns = turns or Turns()
        """For reading much; best shared with the other resources."""
        self.ownership = _ownership(kind)
        """Who owns which fields: by subresource, the empty one for the object itself."""
        self._garbage_collected = garbage_collected

    async def run(self) -> None:
        """Keep the cache up with the store, for ever; the owner's task."""
        await self.cache.run()

    async def get(self, namespace: str, name: str, resource_version: str = "") -> StoredObject:
        """Return an object as it is now; with a resourceVersion, as it was then or later (0: whatever is at hand).

        Raises:
            APIError: 404; 504 for a version that has not come yet; 400 for one that is no number; 503.
        """
        try:
            if not resource_version:
                await self.cache.fresh()
            elif resource_version == "0":
                await self.cache.wait_ready()
            else:
                await self.cache.until(parse_revision(resource_version))
        except ValueError as error:
            raise errors.bad_request(f"resourceVersion: {error}") from error
        except StoreError as error:
            raise api_error(error, self.kind.group_resource, name) from error
        found = self.cache.peek(self.codec.key(namespace, name))
        if found is None:
            raise errors.not_found(self.kind.group_resource, name)
        if isinstance(found, UnreadableObject):
            raise unreadable.not_shown(found)
        return found

    def check_readable(self, objects: Iterable[StoredObject]) -> None:
        """See that all of these can be shown.

        Raises:
            APIError: 500 StorageReadError.
        """
        if self.has_seen_unreadable:
            unreadable.check_all(self.kind.group_resource, objects)

    # Creating

    async def create(self, namespace: str, value: dict[str, Any], write: Write = Write()) -> StoredObject:  # noqa: B008 - frozen
        """Store a new object, made from a normalized value (which is used up).

        A name is generated, and generated again when it is taken, if the object asks for one. A dry run returns the object without a
        resourceVersion.

        Raises:
            APIError: 400 (namespace, resourceVersion), 409 AlreadyExists, 422; what admission raises.
        """
        self.strategy.check_namespace(value, namespace)
        metadata = value["metadata"]
        generated = bool(metadata.get("generateName")) and not metadata.get("name")
        self.strategy.deduplicate_owners(value, write.warnings, after_admission=False)
        if write.field_manager is not None:
            self.strategy.clear_system_fields(metadata)
            self.ownership[""].update(None, value, write.field_manager, self.now())
        attempts = _NAME_ATTEMPTS if generated else 1
        while True:
            attempts -= 1
            if attempts:
                attempt = {**value, "metadata": dict(metadata)} if write.admission is None else _copy(value)
            else:
                attempt = value
            try:
                return await self._create_once(namespace, attempt, write)
            except KeyExists as error:
                if not attempts:
                    raise self._exists(attempt["metadata"], error.current) from error
            except ValueTooLarge as error:
                if not metadata.pop("managedFields", None):
                    raise api_error(error, self.kind.group_resource, attempt["metadata"].get("name", "")) from error
                attempts += 1
            except StoreError as error:
                raise api_error(error, self.kind.group_resource, attempt["metadata"].get("name", "")) from error

    async def _create_once(self, namespace: str, value: dict[str, Any], write: Write) -> StoredObject:
        strategy, admission = self.strategy, write.admission
        metadata = value["metadata"]
        if admission is not None:
            await admission.mutate(value, None)
            strategy.deduplicate_owners(value, write.warnings, after_admission=True)
        strategy.begin_create(value, self.now())
        strategy.prepare_for_create(value)
        strategy.validate_create(value, write.warnings)
        if admission is not None:
            await admission.validate(value, None)
        if metadata.pop("resourceVersion", "").strip("0"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        encoded = self.codec.encode(value, is_normal=admission is None)
        key = self.codec.key(namespace, encoded.name)
        if write.dry_run:
            await self.cache.fresh()
            if (current := self.cache.peek(key)) is not None:
                raise KeyExists(KeyValue(key, current.value, current.revision))
            return encoded.stored(KeyValue(key, encoded.value, 0))
        return self._written(encoded, await self.cache.create(key, encoded.value, entry=encoded.stored))

    def _exists(self, metadata: dict[str, Any], current: KeyValue) -> errors.APIError:
        resource, name = self.kind.group_resource, metadata["name"]
        # An object that asked for a generated name and had one of its own is told the same, as upstream does.
        error = errors.generate_name_conflict(resource, name) if metadata.get("generateName") else errors.already_exists(resource, name)
        obj = self.decode(current)
        if not isinstance(obj, UnreadableObject) and "deletionTimestamp" in obj.object()["metadata"]:
            return errors.APIError(error.code, error.reason, f"object is being deleted: {error.message}", details=error.details)
        return error

    def _written(self, encoded: EncodedObject, written: KeyValue) -> StoredObject:
        """The object at the revision of its write: the cache's own, unless that has moved on already."""
        cached = self.cache.peek(written.key)
        return cached if cached is not None and cached.revision == written.revision else encoded.stored(written)

    # Updating

    async def unchanged_by(self, namespace: str, name: str, change: Hashable) -> StoredObject | None:
        """Return an object as it is now, when an update with this `Write.change` has found nothing to do and to say about this very state.

        None says nothing. Only for updates in which admission has no say.

        Raises:
            APIError: 503.
        """
        key = self.codec.key(namespace, name)
        current = self.cache.peek(key)
        if current is None or not current.is_unchanged_by(change):
            return None
        try:
            return current if await self._read(key) is current else None
        except StoreError as error:
            raise api_error(error, self.kind.group_resource, name) from error

    async def update(
        self,
        namespace: str,
        name: str,
        transform: Callable[[dict[str, Any]], dict[str, Any]],
        write: Write = Write(),  # noqa: B008 - frozen
        *,
        subresource: str = "",
        uid: str = "",
    ) -> StoredObject:
        """Replace an object by what `transform` makes of it, and return what is stored then; with `uid`, of that incarnation only.

        `transform` gets the value of the current object, normalized, and returns a new normalized value with the resourceVersion that it
        was made from; it must not change anything, since it is called again when the object in the cache was stale or somebody was
        faster. Below the two outer levels its result may share parts with what it was given: these are known to be unchanged, and not
        looked at again. When nothing changes, nothing is written. The update that takes the last finalizer from a marked object deletes
        it.

        Raises:
            APIError: 404, 409 Conflict, 422; what `transform` and admission raise.
        """
        resource = self.kind.group_resource
        key = self.codec.key(namespace, name)
        try:
            current, is_fresh = self.cache.peek(key), False
            while True:
                if current is None:
                    if is_fresh:
                        raise errors.not_found(resource, name)
                    current, is_fresh = await self._read(key), True
                    continue
                try:
                    if isinstance(current, UnreadableObject):
                        raise unreadable.not_changed(current)
                    if uid and uid != current.uid:
                        raise deletion.uid_mismatch(resource, current, uid)
                    encoded, goes = await self._attempt(current, transform, write, subresource)
                    unchanged = not goes and encoded.value == current.value
                except errors.APIError:
                    latest = None if is_fresh else await self._read(key)
                    if is_fresh or (latest is not None and latest.revision == current.revision):
                        raise
                    current, is_fresh = latest, True
                    continue
                if unchanged or write.dry_run:
                    latest = current if is_fresh else await self._read(key)
                    if latest is None or latest.revision != current.revision:
                        current, is_fresh = latest, True
                        continue
                    if not unchanged:
                        return encoded.stored(KeyValue(key, encoded.value, current.revision))
                    if write.change is not None and write.admission is None and not write.warnings:
                        current.note_unchanged_by(write.change)
                    return current
                try:
                    if goes:
                        await self.cache.delete(key, expected_revision=current.revision)
                        return encoded.stored(KeyValue(key, encoded.value, current.revision))
                    written = await self.cache.update(key, encoded.value, expected_revision=current.revision, entry=encoded.stored)
                    return self._written(encoded, written)
                except RevisionConflict as error:
                    current, is_fresh = self.decode(error.current), True
                except ValueTooLarge:
                    if write.field_manager is None:
                        raise
                    write = write.without_owners()
        except StoreError as error:
            raise api_error(error, resource, name) from error

    async def update_or_create(
        self,
        namespace: str,
        name: str,
        transform: Callable[[dict[str, Any] | None], dict[str, Any]],
        update: Write,
        create: Write,
    ) -> tuple[StoredObject, bool]:
        """Update an object, or create the one that `transform` makes of None; return it, and whether it is new.

        Raises:
            APIError: as `create` and `update`, but for 404 and AlreadyExists: it goes on until one of both succeeds.
        """
        key = self.codec.key(namespace, name)
        while True:
            try:
                return await self.update(namespace, name, transform, update), False
            except errors.APIError as error:
                if error.code != 404 or self.cache.peek(key) is not None:
                    raise
            try:
                return await self._create_once(namespace, transform(None), create), True
            except KeyExists:
                continue
            except StoreError as error:
                raise api_error(error, self.kind.group_resource, name) from error

    async def _read(self, key: str) -> StoredObject | None:
        await self.cache.fresh()
        return self.cache.peek(key)

    def decode(self, stored: KeyValue) -> StoredObject:
        """Read what is in the store, and tell of what cannot be read: see `ObjectCodec.decode`."""
        obj = self.codec.decode(stored)
        if isinstance(obj, UnreadableObject):
            self.has_seen_unreadable = True
            _log.error("%s cannot be read, as it was stored at revision %d: %s", obj.key, obj.revision, obj.problem)
        return obj

    async def _attempt(
        self, current: StoredObject, transform: Callable[[dict[str, Any]], dict[str, Any]], write: Write, subresource: str
    ) -> tuple[EncodedObject, bool]:
        """What the update would store, and whether the object goes with it."""
        strategy, admission = self.strategy, write.admission
        old = strategy.read(current)
        value = transform(old)
        if write.field_manager is not None:
            self.ownership[subresource].update(old, value, write.field_manager, self.now())
        elif write.forgets_owners:
            value["metadata"].pop("managedFields", None)
        if admission is not None:
            # It may change everything, so nothing must be shared.
            old = strategy.read(current)
            await admission.mutate(value, old)
            strategy.deduplicate_owners(value, write.warnings, after_admission=True)
        self._check_version(current, value)
        if subresource == "status":
            value = strategy.prepare_for_status_update(value, old)
            content = self.codec.encode_content(value)
            content_changed = content != current.content
            strategy.validate_status_update(value, old)
        else:
            content = strategy.prepare_for_update(value, old, current)
            content_changed = content != current.content
            strategy.validate_update(value, old, write.warnings, content_changed=content_changed)
        if admission is not None:
            await admission.validate(value, old)
        if not content_changed:
            keep_times(value["metadata"], old["metadata"])
        encoded = self.codec.encode(value, content=content, is_normal=admission is None)
        return encoded, deletion.goes_with_update(value["metadata"], old["metadata"])

    def _check_version(self, current: StoredObject, value: dict[str, Any]) -> None:
        given = value["metadata"].get("resourceVersion", "")
        if given == current.resource_version:
            return
        kind, name = self.kind, current.name
        try:
            if parse_revision(given) > 0:
                raise errors.conflict(kind.group_resource, name, MODIFIED)
            message = "Invalid value: 0: must be specified for an update"
        except ValueError as error:
            message = str(error)
        raise errors.invalid(kind.group, kind.plural, name, [errors.Cause("FieldValueInvalid", message, "metadata.resourceVersion")])

    # Deleting

    async def delete(
        self,
        namespace: str,
        name: str,
        options: DeleteOptions,
        write: Write = Write(),  # noqa: B008 - frozen
    ) -> tuple[StoredObject, bool]:
        """Delete an object, or mark it when finalizers keep it; return its last state, and whether it is gone.

        Raises:
            APIError: 404, 409 for a precondition; what admission raises.
        """
        resource = self.kind.group_resource
        key = self.codec.key(namespace, name)
        try:
            current = await self._read(key)
            while True:
                if current is None:
                    raise errors.not_found(resource, name)
                if isinstance(current, UnreadableObject):
                    if not options.ignore_store_read_error:
                        raise unreadable.not_shown(current)
                    if write.dry_run:
                        return current, True
                    try:
                        await self.cache.delete(key, expected_revision=current.revision)
                    except RevisionConflict as error:
                        current = self.decode(error.current)
                        continue
                    return current, True
                deletion.refuse_unsafe(self.kind, current, options)
                deletion.check_preconditions(self.kind, current, options)
                if write.admission is not None:
                    old = current.object()
                    await write.admission.mutate(None, old)
                    await write.admission.validate(None, old)
                marked = self._marked(current, options)
                try:
                    if marked is None:
                        if write.dry_run:
                            return current, True
                        deleted = await self.cache.delete(key, expected_revision=current.revision)
                        return current.at(deleted.revision), True
                    if marked.value == current.value:
                        return current, False
                    if write.dry_run:
                        return marked.stored(KeyValue(key, marked.value, current.revision)), False
                    written = await self.cache.update(key, marked.value, expected_revision=current.revision, entry=marked.stored)
                    return self._written(marked, written), False
                except RevisionConflict as error:
                    current = self.decode(error.current)
        except StoreError as error:
            raise api_error(error, resource, name) from error

    def _marked(self, current: StoredObject, options: DeleteOptions) -> EncodedObject | None:
        """The object marked as deleting, None when nothing keeps it."""
        value = current.object()
        metadata = value["metadata"]
        finalizers = metadata.get("finalizers", [])
        if self._garbage_collected:
            finalizers = deletion.finalizers_to_delete_with(finalizers, options)
        if not finalizers:
            return None
        metadata["finalizers"] = finalizers
        deletion.mark_deleting(metadata, self.now())
        return self.codec.encode(value, content=current.content)

    async def delete_all(self, objects: Iterable[StoredObject], options: DeleteOptions, write: Write = Write()) -> None:  # noqa: B008
        """Delete each of the objects; those that are gone already do not matter. Not atomic: some may be gone when it fails.

        Raises:
            APIError: the first one that a deletion raised.
        """
        remaining = iter(objects)
        while batch := list(islice(remaining, _DELETIONS_AT_ONCE)):
            results = await asyncio.gather(*(self.delete(obj.namespace, obj.name, options, write) for obj in batch), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException) and not (isinstance(result, errors.APIError) and result.code == 404):
                    raise result


def _retire(obj: StoredObject, newer: StoredObject | None) -> int:
    return obj.retire(newer)


def _ownership(kind: ResourceKind) -> dict[str, Ownership]:
    of_object = frozenset(("status",)) if kind.has_status else frozenset[str]()
    of_status = frozenset(("metadata", "spec"))
    return {
        "": Ownership(kind.schema, kind.api_version, kind.kind, reset=of_object),
        "status": Ownership(kind.schema, kind.api_version, kind.kind, subresource="status", reset=of_status),
    }


def _copy(value: dict[str, Any]) -> dict[str, Any]:
    """A deep copy of a JSON value."""
    copied: dict[str, Any] = orjson.loads(orjson.dumps(value))
    return copied
