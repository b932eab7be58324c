"""The body of a JSON patch or merge patch, whatever it is for: which kind of patch, decoded once, applied as often as it takes.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apiserver.apply import json_patch, merge_patch
from apiserver.endpoints.body import BodyError, check_type_meta, decode, go_type_of, strict_problem, unknown_fields
from apiserver.meta import errors, json_codec
from apiserver.meta.field_errors import invalid
from openapi.json_values import copy
from openapi.normalize import MetadataTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiserver.request import Call

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
"""In the order in which a 415 lists them."""

_OPERATION_FIELDS = frozenset(("op", "path", "from", "value"))


def patch_type_of(call: Call) -> str:
    """The media type of the patch; upstream compares it literally, up to the first semicolon.

    Raises:
        APIError: 415 for one that is not served.
    """
    patch_type: str = call.http.headers.get("Content-Type", "").partition(";")[0]
    if patch_type not in PATCH_TYPES:
        raise errors.unsupported_media_type(PATCH_TYPES)
    return patch_type


class PatchBody:
    """A decoded patch, which can be applied any number of times."""

    def __init__(self, body: bytes, patch_type: str, field_validation: str) -> None:
        """Raises: APIError: 400 for what is no JSON; what it must be beyond that is told once there is an object to patch."""
        try:
            self._patch, self._twice = decode(body, "json", strict=field_validation != "Ignore")
        except BodyError as error:
            raise errors.bad_request("invalid JSON patch") from error
        self._type = patch_type
        self._field_validation = field_validation

    def apply(self, current: dict[str, Any], read: Callable[[dict[str, Any], list[str]], None], warnings: list[str]) -> dict[str, Any]:
        """Return the patched object, read (normalized) by `read`, which reports unknown fields and raises what it cannot read.

        `current` is not changed. The result may share with it what the patch leaves alone, which `read` must leave alone too.

        Raises:
            APIError: 400 for what is no patch, 413 for too many operations, 422 for one that cannot be applied or leads to nonsense.
        """
        report: list[str] = []
        try:
            value = self._applied(current)
            if value.__class__ is not dict:
                check_type_meta(value)
            read(value, report)
        except (BodyError, MetadataTypeError) as error:
            raise self._leads_to_nonsense(current, str(error)) from error
        if self._field_validation == "Ignore":
            return value
        twice, unknown = self._problems(), unknown_fields(report)
        if (twice or unknown) and self._field_validation == "Strict":
            raise self._leads_to_nonsense(current, strict_problem(twice, unknown))
        warnings.extend((*twice, *unknown))
        return value

    def _applied(self, value: dict[str, Any]) -> dict[str, Any]:
        patch = self._patch
        if self._type == MERGE_PATCH:
            if patch.__class__ is dict:
                return merge_patch.merged(value, patch)
            if patch is None:
                raise errors.bad_request("Invalid JSON Patch")
            raise _undecodable(patch, "value of type map[string]interface {}")
        operations = _operations(patch)
        if len(operations) > json_patch.MAX_OPERATIONS:
            limit = json_patch.MAX_OPERATIONS
            raise errors.request_entity_too_large(f"The allowed maximum operations in a JSON patch is {limit}, got {len(operations)}")
        try:
            patched: dict[str, Any] = json_patch.apply(copy(value), operations)
        except json_patch.PatchError as error:
            # Upstream keeps the reason to itself.
            raise errors.APIError(422, "Invalid", "the server rejected our request due to an error in our request", details={}) from error
        except json_codec.JSONSyntaxError as error:
            raise errors.bad_request("error decoding patch: exceeded max depth") from error
        return patched

    def _problems(self) -> list[str]:
        """What a strict decoder finds wrong with the patch itself."""
        if self._type == MERGE_PATCH:
            return self._twice
        unknown = [
            f"[{index}].{name}"
            for index, operation in enumerate(self._patch or ())
            for name in operation or ()
            if name not in _OPERATION_FIELDS
        ]
        return [f"json patch {problem}" for problem in (*self._twice, *unknown_fields(unknown))]

    def _leads_to_nonsense(self, current: dict[str, Any], problem: str) -> errors.APIError:
        patched = json_codec.encode(self._applied(current))[:-1].decode()
        return errors.invalid("", "", "", [invalid("patch", patched, problem).to_cause()])


def _operations(patch: Any) -> list[dict[str, Any] | None]:
    """The operations of a JSON patch.

    Raises:
        APIError: 400 when they do not have the shape of operations.
    """
    if patch is None:
        return []
    if patch.__class__ is not list:
        raise _undecodable(patch, "value of type []handlers.jsonPatchOp")
    for operation in patch:
        if operation is not None and operation.__class__ is not dict:
            raise _undecodable(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            text = operation.get(name) if operation else None
            if text is not None and text.__class__ is not str:
                raise _undecodable(text, f"struct field jsonPatchOp.{name} of type string")
    operations: list[dict[str, Any] | None] = patch
    return operations


def _undecodable(value: Any, wanted: str) -> errors.APIError:
    return errors.bad_request(f"error decoding patch: json: cannot unmarshal {go_type_of(value)} into Go {wanted}")
