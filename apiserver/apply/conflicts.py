"""Fields that somebody applies and others own with another value: the 409 that tells of each.

Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/util/managedfields/internal/conflict.go
"""

from __future__ import annotations

from apiserver.apply import field_set
from apiserver.apply.field_set import FieldSet
from apiserver.apply.managed_fields import Owner
from apiserver.meta.errors import APIError, Cause
from openapi.gotext import quote

Conflicts = dict[Owner, FieldSet]


def conflict_error(conflicts: Conflicts) -> APIError:
    """409 with a cause for each field, grouped by owner."""
    causes: list[Cause] = []
    lines: list[str] = []
    for owner in sorted(conflicts, key=lambda owner: owner.sort_text):
        text = _owner_text(owner)
        lines.append(f"conflicts with {text}:")
        for path in map(field_set.path_text, field_set.paths(conflicts[owner])):
            causes.append(Cause("FieldManagerConflict", f"conflict with {text}", path))
            lines.append(f"- {path}")
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return APIError(409, "Conflict", message, details={"causes": [cause.to_json() for cause in causes]})


def _owner_text(owner: Owner) -> str:
    text = quote(owner.manager)
    if owner.subresource:
        text += f" with subresource {quote(owner.subresource)}"
    return f"{text} using {owner.api_version}" if owner.operation == "Update" else text
