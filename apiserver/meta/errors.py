"""The one exception above the store, and a constructor for each reason that Kubernetes knows.

An APIError carries a complete metav1.Status; `filters/errors.py` is the only place where it becomes a response. Messages and details
follow Kubernetes' wording to the letter, since users search for them.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/api/errors/errors.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from openapi import gotext


@dataclass(frozen=True, slots=True)
class GroupResource:
    """A plural and its group, as messages name them: `workerpools.clrk.apoxy.dev`."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `details.causes`: reason (a CauseType such as FieldValueInvalid), message, and the field's path."""

    reason: str
    message: str
    field: str = ""

    def to_json(self) -> dict[str, str]:
        """The cause as Kubernetes writes it: empty members are left out."""
        return {key: value for key, value in (("reason", self.reason), ("message", self.message), ("field", self.field)) if value}


class APIError(Exception):
    """A failure that a client is told about, as the Status that it receives."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        continue_token: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.continue_token = continue_token
        """Set on 410 for an expired page: where the client may go on, in `metadata.continue`."""

    @property
    def retry_after_seconds(self) -> int | None:
        """What goes into the Retry-After header, if anything."""
        return (self.details or {}).get("retryAfterSeconds")

    def to_status(self) -> dict[str, Any]:
        """The metav1.Status, ready to be encoded."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def _details(resource: GroupResource, name: str, **more: Any) -> dict[str, Any]:
    """Details in Kubernetes' order of members; for most reasons `kind` holds the plural, as upstream writes it."""
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if resource.group:
        details["group"] = resource.group
    if resource.resource:
        details["kind"] = resource.resource
    details.update({key: value for key, value in more.items() if value not in (None, "", [])})
    return details


def not_found(resource: GroupResource, name: str) -> APIError:
    """404 for one object."""
    return APIError(404, "NotFound", f'{resource} "{name}" not found', details=_details(resource, name))


def path_not_found() -> APIError:
    """404 for an address that nobody serves."""
    return APIError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: GroupResource, name: str) -> APIError:
    """409 for a create that met its name."""
    return APIError(409, "AlreadyExists", f'{resource} "{name}" already exists', details=_details(resource, name))


def generate_name_conflict(resource: GroupResource, name: str, *, retry_after_seconds: int = 1) -> APIError:
    """409 for a generated name that was taken, after the server's own tries."""
    message = f'{resource} "{name}" already exists, the server was not able to generate a unique name for the object'
    return APIError(409, "AlreadyExists", message, details=_details(resource, name, retryAfterSeconds=retry_after_seconds))


def conflict(resource: GroupResource, name: str, problem: str, *, causes: Sequence[Cause] = ()) -> APIError:
    """409 for a precondition that does not hold."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {problem}'
    return APIError(409, "Conflict", message, details=_details(resource, name, causes=[cause.to_json() for cause in causes]))


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> APIError:
    """422 for an object whose fields are wrong; here `details.kind` is the kind itself, as upstream writes it."""
    message = f"{kind}.{group} {gotext.quote(name)} is invalid" if group else f"{kind} {gotext.quote(name)} is invalid"
    if causes:
        texts = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes]
        distinct = list(dict.fromkeys(texts))
        message += ": " + (distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]")
    details = _details(GroupResource(group, kind), name, causes=[cause.to_json() for cause in causes])
    return APIError(422, "Invalid", message, details=details)


def bad_request(message: str) -> APIError:
    """400 for a request that cannot be understood."""
    return APIError(400, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> APIError:
    """401: nobody we know."""
    return APIError(401, "Unauthorized", message)


def forbidden(resource: GroupResource, name: str, problem: str) -> APIError:
    """403: known, but not allowed. The message is `<resource> "<name>" is forbidden: <problem>`, or without the name."""
    message = f'{resource} "{name}" is forbidden: {problem}' if name else f"{resource} is forbidden: {problem}"
    if not resource.resource:
        message = f"forbidden: {problem}"
    return APIError(403, "Forbidden", message, details=_details(resource, name))


def method_not_supported(resource: GroupResource, action: str) -> APIError:
    """405 for a verb that this resource does not have."""
    message = f'{action} is not supported on resources of kind "{resource}"'
    return APIError(405, "MethodNotAllowed", message, details=_details(resource, ""))


def method_not_allowed() -> APIError:
    """405 for a method that this address does not take."""
    return APIError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={})


def not_acceptable(accepted: Sequence[str]) -> APIError:
    """406: none of the media types that the client takes can be produced."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return APIError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: Sequence[str], given: str = "") -> APIError:
    """415: the body's media type cannot be read."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return APIError(415, "UnsupportedMediaType", message)


def request_entity_too_large(message: str) -> APIError:
    """413: the body, or what it unfolds to, is over the limit."""
    return APIError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def expired(message: str, *, continue_token: str = "") -> APIError:
    """410: the resourceVersion, or the page, is older than what is kept."""
    return APIError(410, "Expired", message, continue_token=continue_token)


def too_many_requests(message: str, *, retry_after_seconds: int = 1) -> APIError:
    """429: come back after a while."""
    return APIError(429, "TooManyRequests", message, details={"retryAfterSeconds": retry_after_seconds})


def timeout(message: str, *, retry_after_seconds: int = 1, causes: Sequence[Cause] = ()) -> APIError:
    """504: not done in time; whether a write happened is not known."""
    details: dict[str, Any] = {}
    if causes:
        details["causes"] = [cause.to_json() for cause in causes]
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    return APIError(504, "Timeout", message if message.startswith("Timeout: ") else f"Timeout: {message}", details=details)


def too_large_resource_version(requested: int, current: int) -> APIError:
    """504 for a resourceVersion that has not been given yet: the server waited for it, the client may try again."""
    message = f"Too large resource version: {requested}, current: {current}"
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    return timeout(message, causes=[cause])


def service_unavailable(message: str, *, retry_after_seconds: int = 1) -> APIError:
    """503: the store cannot be reached; nothing was done."""
    return APIError(503, "ServiceUnavailable", message, details={"retryAfterSeconds": retry_after_seconds})


def internal_error(message: str) -> APIError:
    """500 with a text that is fit for a client: never a traceback, a path or a query."""
    return APIError(500, "InternalError", f"Internal error occurred: {message}", details={"causes": [{"message": message}]})


def storage_read_error(resource: GroupResource, message: str, causes: Sequence[Cause]) -> APIError:
    """500: some of a list cannot be read. Its details call that `list`, as upstream's do."""
    return APIError(500, "StorageReadError", message, details=_details(resource, "list", causes=[cause.to_json() for cause in causes]))
