"""The body of a server-side apply: an object, whole or in part, as YAML or JSON.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from apiserver.endpoints.body import go_type_of
from apiserver.meta import errors, json_codec, yaml_codec
from apiserver.meta.json_codec import JSONSyntaxError
from apiserver.meta.yaml_codec import YAMLError

if TYPE_CHECKING:
    from apiserver.meta.errors import APIError

_LONG_BYTES: Final = 16 * 1024
"""From here on decoding may take more than some milliseconds, if it has to be read as YAML."""


async def decode_applied(body: bytes, field_validation: str) -> AppliedBody:
    """Decode a body, a long one in a thread. Raises: APIError: 400, as `AppliedBody`."""
    if len(body) > _LONG_BYTES:
        return await asyncio.to_thread(AppliedBody, body, field_validation)
    return AppliedBody(body, field_validation)


class AppliedBody:
    """A decoded body, which can be applied any number of times."""

    def __init__(self, body: bytes, field_validation: str) -> None:
        """Raises: APIError: 400 for what is no YAML; what is wrong with something like JSON is told once there is an object."""
        self._field_validation = field_validation
        self._twice: list[str] = []
        self._problem: APIError | None = None
        self._value: Any = None
        try:
            self._value = self._decoded(body)
        except YAMLError as error:
            if not body.lstrip().startswith(b"{"):
                raise errors.bad_request(f"error encoding patch: {error}") from error
            self._problem = errors.bad_request(f"error decoding patch: error converting YAML to JSON: {error}")

    def _decoded(self, body: bytes) -> Any:
        """JSON is read as such when it is sound; otherwise, and to tell of fields that are there twice, it is YAML as well."""
        strict = self._field_validation != "Ignore"
        try:
            value = json_codec.decode(body)
            if not (strict and json_codec.duplicates(body, value)):
                return value
        except JSONSyntaxError:
            pass
        return yaml_codec.decode(body, duplicates=self._twice if strict else None)

    def value(self) -> dict[str, Any]:
        """The object, which must not be changed.

        Raises:
            APIError: 400, it is none.
        """
        if self._problem is not None:
            raise self._problem
        value = self._value if self._value is not None else {}
        if value.__class__ is not dict:
            problem = f"json: cannot unmarshal {go_type_of(value)} into Go value of type map[string]interface {{}}"
            raise errors.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {problem}")
        applied: dict[str, Any] = value
        return applied

    def check_twice(self, warnings: list[str]) -> None:
        """Tell of fields that are there twice, once everything else is well.

        Raises:
            APIError: 400 when field validation is strict.
        """
        if self._twice and self._field_validation == "Strict":
            problem = yaml_codec.strict_error(self._twice)
            raise errors.bad_request(f"error strict decoding patch: error converting YAML to JSON: {problem}")
        warnings.extend(self._twice)
