"""Field sets that were written under an older schema: what has become atomic since is owned as a whole.

Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/reconcile_schema.go
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.apply.field_set import LEAF, FieldSet
from apiserver.apply.typed import is_granular_list, is_granular_map
from openapi.structural import Schema

Reconcile = Callable[[FieldSet], FieldSet]
"""Returns the set as the schema demands it now; the set itself when nothing is to be changed."""


def compile(schema: Schema) -> Reconcile:
    """Compile a schema. The parts of it in which nothing is atomic cost nothing: sets are not looked at there."""
    return _below(schema) or _unchanged


def _unchanged(fields: FieldSet) -> FieldSet:
    return fields


def _below(schema: Schema) -> Reconcile | None:
    """What reconciles a set that is taken apart here; None when that never changes anything."""
    if schema.type == "array":
        items = None if schema.items is None else _at(schema.items)
        return None if items is None else _reconciler({}, items)
    if schema.type != "object":
        return None
    members = {f"f:{name}": found for name, child in schema.properties.items() if (found := _at(child)) is not None}
    others = None if schema.additional_properties is None else _at(schema.additional_properties)
    return _reconciler(members, others) if members or others is not None else None


def _at(schema: Schema) -> Reconcile | None:
    """The same for the set of a member or of an item."""
    is_atomic = (schema.type == "object" and not is_granular_map(schema)) or (schema.type == "array" and not is_granular_list(schema))
    return _owned_whole if is_atomic else _below(schema)


def _owned_whole(_: FieldSet) -> FieldSet:
    return LEAF


def _reconciler(members: dict[str, Reconcile], others: Reconcile | None) -> Reconcile:
    """What reconciles a set whose elements are in `members`, and all others by `others`."""
    below_of = members.get

    def reconcile(fields: FieldSet) -> FieldSet:
        changed: FieldSet | None = None
        for element, inner in fields.items():
            if inner and (below := below_of(element, others)) is not None:
                new = below(inner)
                if new is not inner:
                    if changed is None:
                        changed = dict(fields)
                    changed[element] = new
        return fields if changed is None else changed

    return reconcile
