"""JSON merge patch (RFC 7386), with the corners in which kube-apiserver's library differs from it.

Source: https://www.rfc-editor.org/rfc/rfc7386 and https://github.com/evanphx/json-patch/blob/v4.12.0/merge.go
"""

from __future__ import annotations

from typing import Any

from openapi.json_values import copy


def merged(value: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return what the patch makes of `value`: null removes, objects merge, everything else replaces.

    Neither is changed. Parts that the patch says nothing about are those of `value` (the same Python objects), parts of the patch never
    become part of the result: it can be applied again.
    """
    result = dict(value)
    for key, wanted in patch.items():
        if wanted is None:
            result.pop(key, None)
        elif wanted.__class__ is dict:
            current = result.get(key)
            result[key] = merged(current, wanted) if current.__class__ is dict else _without_nulls(wanted)
        else:
            # A list that takes the place of something else than an object loses the nulls of the objects in it; one that replaces an
            # object does not.
            result[key] = copy(wanted) if result.get(key).__class__ is dict else _without_nulls(wanted)
    return result


def _without_nulls(wanted: Any) -> Any:
    if wanted.__class__ is dict:
        return {key: _without_nulls(member) for key, member in wanted.items() if member is not None}
    if wanted.__class__ is list:
        return [_without_nulls(member) for member in wanted]
    return wanted
