"""Taking out what somebody applied before and does not apply any more.

Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/merge/update.go
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.apply import field_set
from apiserver.apply.applied_fields import applied_fields
from apiserver.apply.field_set import LEAF, FieldSet
from apiserver.apply.remove import remove, with_named_fields
from apiserver.apply.shape import Shape
from openapi.structural import JSON, Schema


def pruned(
    merged: dict[str, JSON], last: FieldSet, claimed: FieldSet, owned: Iterable[FieldSet], schema: Schema, shape: Shape
) -> dict[str, JSON]:
    """Return the object without what is in `last` but neither in `claimed` nor in any of `owned` (all sets, the applier's new one too).

    An item or a member of a map with free keys goes with everything in it, when nobody owns the item itself. `shape` is compiled from
    `schema`.

    Raises:
        TypedError: an item of a granular list cannot be told from others.
    """
    if last == claimed or not field_set.difference(last, claimed):
        return merged
    named = with_named_fields(last, schema)
    present = with_named_fields(applied_fields(merged, shape), schema)
    together = LEAF
    for fields in owned:
        together = field_set.union(together, fields)
    left = _left_without(merged, named, schema, shape)
    gone = field_set.difference(present, field_set.union(left, with_named_fields(together, schema)))
    left = _left_without(merged, gone, schema, shape)
    # What nobody owns goes only if the applier had applied it himself.
    result: dict[str, JSON] = remove(merged, field_set.intersection(field_set.difference(present, left), named), schema)
    return result


def _left_without(value: JSON, fields: FieldSet, schema: Schema, shape: Shape) -> FieldSet:
    return with_named_fields(applied_fields(remove(value, fields, schema, empty_is_null=True), shape), schema)
