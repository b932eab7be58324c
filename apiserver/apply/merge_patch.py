"""JSON merge patch (RFC 7386), with the corners in which kube-apiserver's library differs from it.

Source: https://www.rfc-editor.org/rfc/rfc7386 and https://github.com/evanphx/json-patch/blob/v4.12.0/merge.go
"""

from __future__ import annotations

from typing import Any

from openapi.json_values import copy


def merge(value: dict[str, Any], patch: dict[str, Any]) -> None:
    """Apply the patch to `value`, in place: null removes, objects merge, everything else replaces.

    The patch is not changed, and parts of it never become part of `value`: it can be applied again.
    """
    for key, wanted in patch.items():
        if wanted is None:
            value.pop(key, None)
        elif wanted.__class__ is dict:
            current = value.get(key)
            if current.__class__ is dict:
                merge(current, wanted)
            else:
                value[key] = _without_nulls(wanted)
        else:
            # A list that takes the place of something else than an object loses the nulls of the objects in it; one that replaces an
            # object does not.
            value[key] = copy(wanted) if value.get(key).__class__ is dict else _without_nulls(wanted)


def _without_nulls(wanted: Any) -> Any:
    if wanted.__class__ is dict:
        return {key: _without_nulls(member) for key, member in wanted.items() if member is not None}
    if wanted.__class__ is list:
        return [_without_nulls(member) for member in wanted]
    return wanted

