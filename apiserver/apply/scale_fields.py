"""Owners of the wanted replicas, as `scale` shows and changes them.

Through `scale` an object looks like another one, with one field that can be owned. Who owns that field of the object owns it of the Scale,
and the other way round; entries that are made this way carry no time, as upstream's do not.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/util/managedfields/scalehandler.go
"""

from __future__ import annotations

from typing import Any, Final

from apiserver.apply import field_set, managed_fields
from apiserver.apply.managed_fields import Entry, Owned, Owner
from apiserver.apply.ownership import Ownership
from openapi.from_model import schema_of
from openapi.meta_v1 import Scale

API_VERSION: Final = "autoscaling/v1"

_REPLICAS: Final = ("f:spec", "f:replicas")


class ScaleFields:
    """Maps owners between the objects of one kind and their Scales."""

    def __init__(self, api_version: str, replicas_path: str) -> None:
        """`replicas_path` as in `.spec.replicas`."""
        self._api_version = api_version
        self._path = tuple(f"f:{name}" for name in replicas_path.removeprefix(".").split("."))
        self._ownership = Ownership(schema_of(Scale), API_VERSION, "Scale", subresource="scale", reset=frozenset(("metadata", "status")))

    def updated(self, entries: list[Entry], old: dict[str, Any], new: dict[str, Any], manager: str, now: str) -> list[Entry]:
        """The object's entries after its Scale has been replaced; neither Scale is changed."""
        replica = {"metadata": {}, "spec": _written_spec(new)}
        self._ownership.update(self._owned_scale(entries, old), replica, manager, now)
        return self._to_object(entries, replica["metadata"].get("managedFields", []))

    def applied(
        self, entries: list[Entry], live: dict[str, Any], applied: dict[str, Any], manager: str, now: str, *, force: bool
    ) -> tuple[dict[str, Any], list[Entry]]:
        """The Scale that comes of an apply, without entries of its own, and the object's entries after it.

        Raises:
            APIError: as `Ownership.apply`.
        """
        scale = self._ownership.apply(self._owned_scale(entries, live), applied, manager, now, force=force)
        return scale, self._to_object(entries, scale["metadata"].pop("managedFields", []))

    def _owned_scale(self, entries: list[Entry], scale: dict[str, Any]) -> dict[str, Any]:
        """The Scale with those in its managedFields who own the field of the object."""
        fields = field_set.of_path(_REPLICAS)
        owned = {
            owner._replace(api_version=API_VERSION if owner.api_version else ""): Owned(fields, API_VERSION, owned.time)
            for owner, owned in managed_fields.read(entries, self._api_version).items()
            if field_set.has(owned.fields, self._path)
        }
        return {**scale, "metadata": {**scale["metadata"], "managedFields": managed_fields.write(owned)}, "spec": _written_spec(scale)}

    def _to_object(self, entries: list[Entry], scale_entries: list[Entry]) -> list[Entry]:
        owning = {
            self._owner_of_object(owner): None
            for owner, owned in managed_fields.read(scale_entries, API_VERSION).items()
            if field_set.has(owned.fields, _REPLICAS)
        }
        path = field_set.of_path(self._path)
        owners = managed_fields.read(entries, self._api_version)
        for owner, owned in list(owners.items()):
            if owner in owning or not field_set.has(owned.fields, self._path):
                continue
            fields = field_set.difference(owned.fields, path)
            if fields:
                owners[owner] = owned._replace(fields=fields, entry=None)
            else:
                del owners[owner]
        for owner in owning:
            if owner not in owners:
                owners[owner] = Owned(path, self._api_version)
        return managed_fields.write(owners)

    def _owner_of_object(self, owner: Owner) -> Owner:
        return owner._replace(api_version=self._api_version if owner.api_version else "")


def _written_spec(scale: dict[str, Any]) -> dict[str, Any]:
    """The spec as Go writes it: zero is left out."""
    replicas = (scale.get("spec") or {}).get("replicas")
    return {"replicas": replicas} if replicas else {}
