"""Events of the audit log, as lines of JSON.

An Entry holds what a request had when a stage was reached; the line is made of it later, in the thread that writes.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/apis/audit/v1/types.go
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.meta import yaml_codec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apiserver.audit.policy import Decision, Stage
    from apiserver.request import RequestInfo, User

_USER_AGENT_CHARACTERS = 1024
_WITH_REQUEST = frozenset(("Request", "RequestResponse"))


@dataclass(frozen=True, slots=True)
class Content:
    """A body, and how it is written."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One stage of one request."""

    stage: Stage
    decision: Decision
    audit_id: str
    received: float
    """In seconds since the epoch, as `reached`."""
    reached: float
    info: RequestInfo
    uri: str
    user: User | None
    address: str
    headers: Mapping[str, str]
    code: int = 0
    """Of the response, when there is one."""
    request: Content | None = None
    response: Content | None = None
    panic: str = ""
    annotations: Mapping[str, str] | None = None
    impersonated: User | None = None
    """As whom `user` acted; None: as themselves."""
    constraint: str = ""
    """The verb that let them, when it did so for some requests only."""

    @property
    def size_bytes(self) -> int:
        """What it holds on to, roughly."""
        return 1024 + len(self.uri) + sum(len(content.data) for content in (self.request, self.response) if content is not None)

    def line(self) -> bytes:
        """The event as one line of JSON."""
        request, response = _value(self.request), _value(self.response)
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": self.decision.level,
            "auditID": self.audit_id,
            "stage": self.stage,
            "requestURI": self.uri,
            "verb": self.info.verb,
            "user": _user(self.user),
            "impersonatedUser": _user(self.impersonated) if self.impersonated is not None else None,
            "authenticationMetadata": {"impersonationConstraint": self.constraint} if self.constraint else None,
            "sourceIPs": self._source_ips(),
            "userAgent": self._user_agent(),
            "objectRef": self._object_ref(request) if self.info.is_resource_request else None,
            "responseStatus": self._status(response),
        }
        event = {key: value for key, value in event.items() if value not in (None, "", [])}
        if self.decision.level in _WITH_REQUEST and request is not None:
            event["requestObject"] = self._shown(request)
        if self.decision.level == "RequestResponse" and response is not None:
            event["responseObject"] = self._shown(response)
        event["requestReceivedTimestamp"] = _micro_time(self.received)
        event["stageTimestamp"] = _micro_time(self.reached)
        if self.annotations:
            event["annotations"] = dict(self.annotations)
        return _dump(event) + b"\n"

    def _user_agent(self) -> str:
        agent = self.headers.get("User-Agent", "")
        return agent if len(agent) <= _USER_AGENT_CHARACTERS else f"{agent[:_USER_AGENT_CHARACTERS]}...TRUNCATED"

    def _source_ips(self) -> list[str]:
        """Those whom proxies name, then the one who is connected. All but the last can be made up by the client."""
        named = [part.strip() for part in self.headers.get("X-Forwarded-For", "").split(",")]
        real = self.headers.get("X-Real-Ip", "").strip()
        addresses = [address for address in named if _is_address(address)]
        if _is_address(real) and real not in addresses:
            addresses.append(real)
        connected = self.address.rpartition(":")[0]
        if connected and connected not in addresses[-1:]:
            addresses.append(connected)
        return addresses

    def _object_ref(self, request: Any) -> dict[str, str]:
        info = self.info
        metadata = request.get("metadata") if isinstance(request, dict) and self.info.verb in ("create", "update") else None
        metadata = metadata if isinstance(metadata, dict) else {}
        reference = {
            "resource": info.resource,
            "namespace": info.namespace or metadata.get("namespace"),
            "name": info.name or metadata.get("name"),
            "uid": metadata.get("uid"),
            "apiGroup": info.group,
            "apiVersion": info.version,
            "resourceVersion": metadata.get("resourceVersion"),
            "subresource": info.subresource,
        }
        return {key: value for key, value in reference.items() if value and isinstance(value, str)}

    def _status(self, response: Any) -> dict[str, Any] | None:
        if self.panic:
            status = {"status": "Failure", "message": f"APIServer panic'd: {self.panic}", "reason": "InternalError", "code": 500}
            return {"metadata": {}, **status}
        if not self.code:
            return None
        told = response if isinstance(response, dict) and response.get("kind") == "Status" else {}
        return {"metadata": {}, **{key: told[key] for key in ("status", "message", "reason", "details") if key in told}, "code": self.code}

    def _shown(self, value: Any) -> Any:
        return _without_managed_fields(value) if self.decision.omit_managed_fields else value


def _value(content: Content | None) -> Any:
    """What a body says; None for what cannot be read."""
    if content is None or not content.data:
        return None
    try:
        return yaml_codec.decode(content.data) if "yaml" in content.media_type else orjson.loads(content.data)
    except (ValueError, yaml_codec.YAMLError):
        return None


def _without_managed_fields(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    shown = dict(value)
    if isinstance(metadata := shown.get("metadata"), dict):
        shown["metadata"] = {key: inner for key, inner in metadata.items() if key != "managedFields"}
    if isinstance(items := shown.get("items"), list):
        shown["items"] = [_without_managed_fields(item) for item in items]
    if isinstance(rows := shown.get("rows"), list) and shown.get("kind") == "Table":
        shown["rows"] = [{**row, "object": _without_managed_fields(row["object"])} if "object" in row else row for row in rows]
    return shown


def _user(user: User | None) -> dict[str, Any]:
    if user is None:
        return {}
    told = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": {k: list(v) for k, v in user.extra.items()}}
    return {key: value for key, value in told.items() if value}


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _micro_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _dump(event: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(event)
    except (TypeError, ValueError):
        # Text of a client that is no UTF-8, or a number that no float holds.
        return orjson.dumps(_encodable(event), default=str)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_encodable(inner) for inner in value]
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**64 else value
