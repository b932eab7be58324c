"""The entries of `metadata.managedFields`, and who owns what in between.

An owner is told from others by name, operation, subresource and, unless he applies, the version in which he writes. Entries that did not
change are carried over as they are.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/util/managedfields/internal/managedfields.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

import orjson

from apiserver.apply import field_set
from apiserver.apply.field_set import LEAF, FieldSet, FieldSetError

Entry = dict[str, Any]

MAX_UPDATE_OWNERS: Final = 10
"""Who updates beyond this many is remembered without a name; upstream's number."""
ANCIENT: Final = "ancient-changes"
"""The name under which the oldest updates are put together."""


class ManagedFieldsError(ValueError):
    """Entries that a client made up and that mean nothing."""


class Owner(NamedTuple):
    """Who owns fields."""

    manager: str
    operation: Literal["Apply", "Update"]
    api_version: str
    """Empty for Apply: an applier stays the same in another version."""
    subresource: str

    @property
    def sort_text(self) -> str:
        """What upstream sorts owners by."""
        members = zip(("manager", "operation", "apiVersion", "subresource"), self, strict=True)
        return orjson.dumps({name: text for name, text in members if text}).decode()


class Owned(NamedTuple):
    """What somebody owns."""

    fields: FieldSet
    api_version: str
    time: str = ""
    """When he last changed a field of his; empty when that is not known."""
    entry: Entry | None = None
    """The entry from which this was read."""


Owners = dict[Owner, Owned]


def applier(manager: str, subresource: str) -> Owner:
    """Somebody who applies."""
    return Owner(manager or "unknown", "Apply", "", subresource)


def updater(manager: str, api_version: str, subresource: str) -> Owner:
    """Somebody who creates, replaces or patches."""
    return Owner(manager or "unknown", "Update", api_version, subresource)


def read(entries: Iterable[Entry], api_version: str) -> Owners:
    """The owners of a stored object. Those who wrote in a version that is not served any more are forgotten."""
    return {_owner(entry): _owned(entry, entry.get("fieldsV1") or LEAF) for entry in entries if entry.get("apiVersion") == api_version}


def read_given(entries: Iterable[Entry]) -> Owners:
    """The owners that a client wrote into an object; of several entries for one owner the last counts.

    Raises:
        ManagedFieldsError: an entry lacks what it must have, or its fields are none.
    """
    owners: Owners = {}
    for entry in entries:
        if entry.get("operation") not in ("Apply", "Update") or not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
            raise ManagedFieldsError("an entry needs an operation (Apply or Update), an apiVersion, and FieldsV1 as its fieldsType")
        try:
            fields = field_set.canonical(entry.get("fieldsV1"))
        except FieldSetError as error:
            raise ManagedFieldsError(str(error)) from error
        owners[_owner(entry)] = Owned(fields, entry["apiVersion"], entry.get("time", ""))
    return owners


def _owner(entry: Entry) -> Owner:
    operation = entry["operation"]
    version = "" if operation == "Apply" else entry["apiVersion"]
    return Owner(entry.get("manager", ""), operation, version, entry.get("subresource", ""))


def _owned(entry: Entry, fields: FieldSet) -> Owned:
    return Owned(fields, entry["apiVersion"], entry.get("time", ""), entry)


def write(owners: Owners) -> list[Entry]:
    """The entries: appliers first, then by time, name, version and subresource."""
    return [owned.entry or _entry(owner, owned) for owner, owned in sorted(owners.items(), key=_order)]


def _order(item: tuple[Owner, Owned]) -> tuple[str, ...]:
    owner, owned = item
    return owner.operation, owned.time, owner.manager, owned.api_version, owner.subresource


def _entry(owner: Owner, owned: Owned) -> Entry:
    entry = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields,
        "subresource": owner.subresource,
    }
    return {name: member for name, member in entry.items() if member or name == "fieldsV1"}


def capped(owners: Owners) -> Owners:
    """Put the oldest updates together, by version, when there are more than MAX_UPDATE_OWNERS."""
    if len(owners) <= MAX_UPDATE_OWNERS:
        return owners
    updaters = [(owned.time, owner.sort_text, owner) for owner, owned in owners.items() if owner.operation == "Update"]
    excess = len(updaters) - MAX_UPDATE_OWNERS
    if excess <= 0:
        return owners
    owners = dict(owners)
    first: dict[str, Owner] = {}
    for _, _, owner in sorted(updaters):
        if excess <= 0:
            break
        owned = owners[owner]
        version = owned.api_version
        if version not in first:
            first[version] = owner
            continue
        bucket = updater(ANCIENT, version, "")
        if bucket not in owners:
            owners[bucket] = owners.pop(first[version])
        del owners[owner]
        owners[bucket] = Owned(field_set.union(owned.fields, owners[bucket].fields), version, owned.time)
        excess -= 1
    return owners


def keep_times(value: dict[str, Any], old: dict[str, Any]) -> None:
    """Give the metadata `value` the times of `old` when nothing else differs, so that nothing is written."""
    entries, kept = value.get("managedFields"), old.get("managedFields")
    if entries and kept and entries != kept and _without_times(entries) == _without_times(kept) and {**value, "managedFields": kept} == old:
        value["managedFields"] = kept


def _without_times(entries: Iterable[Entry]) -> list[Entry]:
    return [{name: member for name, member in entry.items() if name != "time"} for entry in entries]
