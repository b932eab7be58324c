"""Who owns which fields of the objects of one kind, through one of its addresses: tracked on every write, decisive in apply.

An update gives its manager what it changed, and takes that from everybody else. An apply gives its manager exactly what it mentions; what
he mentioned before and does not mention any more goes, unless somebody else owns it; what others own with another value is a conflict,
unless he forces it. Pure functions over JSON values: nothing that is given is changed, but for the metadata of the new object.
Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/ and
https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/merge/update.go
"""

from __future__ import annotations

from typing import Any, Final

from apiserver.apply import field_set, last_applied, managed_fields, reconcile, shape
from apiserver.apply.applied_fields import applied_fields
from apiserver.apply.checked import checked
from apiserver.apply.compare import Comparison, compare
from apiserver.apply.conflicts import Conflicts, conflict_error
from apiserver.apply.field_set import LEAF, FieldSet
from apiserver.apply.managed_fields import Entry, ManagedFieldsError, Owned, Owner, Owners, applier, updater
from apiserver.apply.merge import merge
from apiserver.apply.prune import pruned
from apiserver.apply.typed import TypedError, same
from apiserver.meta import errors
from openapi.structural import JSON, Schema

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""Who owns what was there when somebody applies to an object that nobody was tracked on."""

_UNOWNED: Final = ("apiVersion", "kind")
_UNOWNED_METADATA: Final = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
"""What of its metadata nobody owns; nor the metadata itself."""
_NEVER_OWNED: Final[FieldSet] = {
    **{f"f:{name}": LEAF for name in _UNOWNED},
    "f:metadata": {field_set.SELF: LEAF, **{f"f:{name}": LEAF for name in _UNOWNED_METADATA}},
}


class Ownership:
    """Tracks owners through one address: the object itself, or a subresource."""

    def __init__(self, schema: Schema, api_version: str, kind: str, *, subresource: str = "", reset: frozenset[str] = frozenset()) -> None:
        """`reset` names the top-level members that a write through this address leaves as they are: nobody gets to own them by it."""
        self._schema = schema
        self._shape = shape.compile(schema)
        self._reconcile = reconcile.compile(schema)
        self._api_version = api_version
        self._kind = kind
        self._subresource = subresource
        self._reset = reset

    # Updates

    def update(self, old: dict[str, JSON] | None, new: dict[str, JSON], manager: str, now: str) -> None:
        """Put into `new` the entries that hold after it has taken the place of `old` (None: it is created).

        Entries that a client wrote into the object count, if they are sound, and `[{}]` forgets all owners; through a subresource they do
        not count. An object that nobody is tracked on stays so. Never fails: an object that cannot be taken apart keeps its entries.
        """
        metadata = new["metadata"]
        given = metadata.pop("managedFields", None)
        old_metadata = old["metadata"] if old is not None else {}
        kept: list[Entry] = old_metadata.get("managedFields") or []
        try:
            owners = self._owners(kept, given)
            if not owners:
                entries = managed_fields.write(self._first(new, manager, now)) if old is None else []
            else:
                changes = compare(self._tracked(old or {}), self._tracked(new), self._shape)
                unchanged = not any(changes) and (given is None or given == kept or self._subresource)
                entries = kept if unchanged else managed_fields.write(self._updated(owners, changes, manager, now))
        except (TypedError, ManagedFieldsError):
            entries = kept
        if entries:
            metadata["managedFields"] = entries

    def _owners(self, kept: list[Entry], given: list[Entry] | None) -> Owners:
        """The owners before an update.

        Raises:
            ManagedFieldsError: the client wrote entries of another version.
        """
        if given and given != kept and not self._subresource:
            if given == [{}]:
                return {}
            try:
                owners = managed_fields.read_given(given)
            except ManagedFieldsError:
                owners = {}
            if any(owned.api_version != self._api_version for owned in owners.values()):
                raise ManagedFieldsError("entries of another version")
            if owners:
                return owners
        return managed_fields.read(kept, self._api_version)

    def _updated(self, owners: Owners, changes: Comparison, manager: str, now: str) -> Owners:
        touched = field_set.union(changes.modified, changes.added)
        own = field_set.difference(touched, _NEVER_OWNED)
        others = self._reconciled(owners)
        me = updater(manager, self._api_version, self._subresource)
        mine = others.pop(me, None) if own else None
        updated = _without(others, touched, changes.removed)
        if mine is not None:
            # Mostly the field was his before, and his set stays the very same.
            kept = mine.fields if own is touched else field_set.difference(mine.fields, touched)
            own = field_set.difference(field_set.union(kept, own), changes.removed)
        if own:
            updated[me] = Owned(own, self._api_version, now)
        return managed_fields.capped(updated)

    # Apply

    def apply(
        self, live: dict[str, JSON] | None, applied: dict[str, JSON], manager: str, now: str, *, force: bool = False
    ) -> dict[str, JSON]:
        """Return the object that comes of applying something to the live one (None: there is none yet).

        The result shares parts with `live`, none with `applied`. It has no defaults yet.

        Raises:
            APIError: 400 for what cannot be applied (another kind, managedFields, a value that does not fit the schema), 409 with a cause
                for each field that others own with another value.
        """
        config = self._checked(applied)
        try:
            try:
                value = self._apply(live, config, manager, now, force=force)
            except _ConflictError as error:
                conflicts = error.conflicts
                if live is not None and manager == last_applied.KUBECTL:
                    mine = last_applied.still_applied(_without_managed_fields(live), self._api_version, self._schema, self._shape)
                    conflicts = _conflicts_beyond(conflicts, mine)
                if conflicts:
                    raise conflict_error(conflicts) from error
                value = self._apply(live, config, manager, now, force=True)
        except TypedError as error:
            raise errors.internal_error(f"failed to create typed live object: {error}") from error
        if manager == last_applied.KUBECTL:
            last_applied.keep_up(value, applied)
        return value

    def _checked(self, applied: dict[str, JSON]) -> dict[str, JSON]:
        group_version, kind = _type_of(applied)
        if (group_version, kind) != (self._api_version, self._kind):
            raise errors.bad_request(f"invalid object type: {_kind_text(group_version, kind)}")
        given = applied.get("metadata")
        metadata: dict[str, Any] = given if given.__class__ is dict else {}
        if metadata.get("managedFields") is not None:
            raise errors.bad_request("metadata.managedFields must be nil")
        try:
            config: dict[str, JSON] = checked(applied, self._schema)
        except TypedError as error:
            where = f"{_text(metadata, 'namespace')}/{_text(metadata, 'name')}; {_kind_text(group_version, kind)}"
            # Upstream gives 500, which clients take for a fault of the server and try again.
            raise errors.bad_request(f"failed to create typed patch object ({where}): {error}") from error
        return config

    def _apply(self, live: dict[str, JSON] | None, config: dict[str, JSON], manager: str, now: str, *, force: bool) -> dict[str, JSON]:
        me = applier(manager, self._subresource)
        owners: Owners = {}
        base: dict[str, JSON] = {}
        if live is not None:
            base = _without_managed_fields(live)
            owners = self._reconciled(managed_fields.read(live["metadata"].get("managedFields", ()), self._api_version))
            if not owners:
                owners = self._first(live, BEFORE_FIRST_APPLY, now)
        last = owners.get(me)
        claimed = applied_fields({name: member for name, member in config.items() if name not in self._reset}, self._shape)
        own = field_set.difference(claimed, _NEVER_OWNED)
        owners[me] = Owned(claimed, self._api_version, last.time if last is not None else "")
        merged = merge(base, config, self._shape)
        if last is not None and last.fields != own:
            owned = [owned.fields for owned in owners.values()]
            merged = pruned(merged, last.fields, claimed, owned, self._schema, self._shape)
        if len(owners) > 1:
            owners = self._settled(me, owners, compare(self._tracked(base), self._tracked(merged), self._shape), force=force)
        self._finish(me, owners, last, "" if merged is base or same(merged, base) else now)
        return _with_entries(merged, managed_fields.write(owners))

    def _settled(self, me: Owner, owners: Owners, changes: Comparison, *, force: bool) -> Owners:
        """The owners once everybody else has lost what was changed.

        Raises:
            _ConflictError: somebody would, and that is not forced.
        """
        touched = field_set.union(changes.modified, changes.added)
        own = owners[me]
        others = {owner: owned for owner, owned in owners.items() if owner != me}
        if not force and touched:
            conflicts = {owner: field_set.intersection(owned.fields, touched) for owner, owned in others.items()}
            conflicts = {owner: fields for owner, fields in conflicts.items() if fields}
            if conflicts:
                raise _ConflictError(conflicts)
        return {**_without(others, touched, changes.removed), me: own}

    def _finish(self, me: Owner, owners: Owners, last: Owned | None, time: str) -> None:
        """Bring the applier's own entry into its last form; a manager without fields disappears."""
        own = owners[me]
        fields = field_set.difference(own.fields, _NEVER_OWNED)
        if not fields:
            del owners[me]
        elif not time and last is not None and fields == last.fields and last.api_version == self._api_version:
            owners[me] = last
        else:
            owners[me] = Owned(fields, self._api_version, time or own.time)

    # Both

    def _first(self, value: dict[str, JSON], manager: str, now: str) -> Owners:
        """The owners of an object that nobody was tracked on: one manager owns all that can be owned through this address."""
        fields: FieldSet = {}
        for name, member in value.items():
            if name in self._reset or name in _UNOWNED:
                continue
            if name != "metadata":
                fields["f:" + name] = self._shape.member(name).everything(member)
            elif owned := {inner: item for inner, item in member.items() if inner not in _UNOWNED_METADATA}:
                fields["f:metadata"] = field_set.below_self(self._shape.member(name).everything(owned))
        return {updater(manager, self._api_version, self._subresource): Owned(fields, self._api_version, now)} if fields else {}

    def _reconciled(self, owners: Owners) -> Owners:
        result: Owners = {}
        for owner, owned in owners.items():
            fields = self._reconcile(owned.fields)
            result[owner] = owned if fields is owned.fields else owned._replace(fields=fields, entry=None)
        return result

    def _tracked(self, value: dict[str, JSON]) -> dict[str, JSON]:
        """What of an object counts when it is compared."""
        tracked = {name: member for name, member in value.items() if name not in self._reset}
        metadata = tracked.get("metadata")
        if metadata is not None and "managedFields" in metadata:
            tracked["metadata"] = {name: member for name, member in metadata.items() if name != "managedFields"}
        return tracked


class _ConflictError(Exception):
    def __init__(self, conflicts: Conflicts) -> None:
        super().__init__()
        self.conflicts = conflicts


def _without(owners: Owners, touched: FieldSet, removed: FieldSet) -> Owners:
    """The owners without these fields; who has none left is gone."""
    result: Owners = {}
    for owner, owned in owners.items():
        fields = field_set.difference(field_set.difference(owned.fields, touched), removed)
        if fields:
            result[owner] = owned if fields is owned.fields else owned._replace(fields=fields, entry=None)
    return result


def _conflicts_beyond(conflicts: Conflicts, allowed: FieldSet) -> Conflicts:
    beyond = {owner: field_set.difference(fields, allowed) for owner, fields in conflicts.items()}
    return {owner: fields for owner, fields in beyond.items() if fields}


def _without_managed_fields(value: dict[str, JSON]) -> dict[str, JSON]:
    metadata = {name: member for name, member in value["metadata"].items() if name != "managedFields"}
    return {**value, "metadata": metadata}


def _with_entries(value: dict[str, JSON], entries: list[Entry]) -> dict[str, JSON]:
    """A copy whose two outer levels may be changed, with these entries."""
    metadata = dict(value.get("metadata") or {})
    if entries:
        metadata["managedFields"] = entries
    return {**value, "metadata": metadata}


def _type_of(value: dict[str, JSON]) -> tuple[str, str]:
    """apiVersion and kind as far as they can be read."""
    group_version = _text(value, "apiVersion")
    return ("", "") if group_version.count("/") > 1 else (group_version, _text(value, "kind"))


def _kind_text(group_version: str, kind: str) -> str:
    return f"{group_version if '/' in group_version else f'/{group_version}'}, Kind={kind}"


def _text(value: dict[str, JSON], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""
