"""Which objects of a resource a list or a watch is about: a namespace, a name, labels, fields.

What a key can tell (namespace and name) is taken out of the field selector, so that asking for one object by name costs a look-up, as
kube-apiserver does it. The rest is a predicate over what is kept with each object. A Selection is hashable: watchers with equal ones share
their events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.meta import errors
from apiserver.meta.field_selectors import FieldSelector, FieldTerm, field_selector
from apiserver.meta.selectors import LabelSelector, SelectorError

if TYPE_CHECKING:
    from apiserver.meta.options import ListOptions
    from apiserver.meta.resource import ResourceKind
    from apiserver.registry.stored_object import StoredObject


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or watch is about. Make it with `select`."""

    namespace: str
    """Empty: all namespaces."""
    name: str | None
    """What a field selector demands of the name; None: any."""
    is_single: bool
    """Whether namespace and name leave only one key."""
    is_everything: bool
    """Whether every object of the namespace is selected; only then can it be known how many are left after a page."""
    labels: LabelSelector
    fields: FieldSelector

    def matches(self, obj: StoredObject) -> bool:
        """Whether the selectors accept an object (of the selection's namespace)."""
        return self.labels.matches(obj.labels) and self.fields.matches(obj.field)


def select(kind: ResourceKind, namespace: str, name: str, options: ListOptions) -> Selection:
    """The selection of a request: namespace and name of its address, or else those that the field selector demands.

    Raises:
        APIError: 400 when the field selector names a field that cannot be selected by, or another name than the address.
    """
    labels, fields = options.label_selector, options.field_selector
    try:
        fields.check(path.removeprefix(".") for path in kind.selectable_fields)
    except SelectorError as error:
        raise errors.bad_request(str(error)) from error
    required = fields.required("metadata.name")
    if name and required != name:
        if not fields.empty:
            raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
        fields, required = field_selector([FieldTerm("metadata.name", name, negated=False)]), name
    if not namespace:
        namespace = fields.required("metadata.namespace") or ""
    is_single = required is not None and (bool(namespace) or not kind.namespaced)
    return Selection(namespace, required, is_single, labels.empty and fields.empty, labels, fields)
