"""Field sets that were written under an older schema: what has become atomic since is owned as a whole.

Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/typed/reconcile_schema.go
"""

from __future__ import annotations

from apiserver.apply.field_set import LEAF, SELF, FieldSet
from apiserver.apply.typed import is_granular_list, is_granular_map, item_schema, member_schema
from openapi.structural import Schema

_CONTAINERS = ("object", "array")


def reconciled(fields: FieldSet, schema: Schema) -> FieldSet:
    """The set as the schema demands it now; the set itself when nothing is to be changed."""
    if not schema.type:
        return fields
    changed: FieldSet | None = None
    is_list = schema.type == "array"
    for element, inner in fields.items():
        if not inner or element == SELF:
            continue
        child = item_schema(schema) if is_list else member_schema(schema, element[2:])
        if child is None:
            continue
        is_atomic = not (is_granular_map(child) if child.type == "object" else is_granular_list(child)) and child.type in _CONTAINERS
        new = LEAF if is_atomic else reconciled(inner, child)
        if new is not inner:
            if changed is None:
                changed = dict(fields)
            changed[element] = new
    return fields if changed is None else changed
