"""The vocabulary of a request: who asks (User), for what (RequestInfo), and one request on its way down (Call).

Filters find these out, endpoints read them. Knows HTTP only as the request object that it carries. A path is taken apart exactly once,
here: authorization and storage see the same parsed value, so no encoding can mean two things.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/request/requestinfo.go
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, unquote

from aiohttp import web

NO_QUERY: Mapping[str, list[str]] = MappingProxyType({})

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = frozenset(("status", "finalize"))
_API_PREFIXES = frozenset(("api", "apis"))


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whose identity has been established; names and groups are those of Kubernetes' RBAC."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
"""What a call carries until (and unless) authentication finds somebody."""


@dataclass(slots=True)
class RequestInfo:
    """What a request asks for, found from its method, path and query alone.

    Nothing changes it: requests with the same address share it. `path` is percent-decoded. `verb` is one of get, list, watch, create,
    update, patch, delete, deletecollection for resources, the lower-case method otherwise (empty for a method that no resource knows).
    For a list or watch with the field selector `metadata.name=x`, `name` is `x`: whoever may read one object may list and watch it.
    """

    path: str
    method: str
    verb: str
    is_resource_request: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    query: Mapping[str, list[str]] = field(default_factory=lambda: NO_QUERY)
    parts: tuple[str, ...] = ()
    """The path from the resource on: resource, name, subresource, and whatever a client wrote after it."""


@dataclass(slots=True, eq=False)
class Peer:
    """The other end of one TLS connection, and the certificate that it presented: it has proved to hold the key, and nothing more.

    Who signed a certificate, and whether that counts, is for an authenticator to find out (`apiserver.auth.authorities`).
    """

    certificate: bytes | None = None
    """DER; None without one."""
    address: str = ""
    intermediates: tuple[bytes, ...] = ()
    """What else the client sent to lead from its certificate to an authority; DER."""
    identities: dict[object, Any] = field(default_factory=dict)
    """What an authenticator derived from the certificates, keyed by that authenticator; whether it still holds is judged for each request.
    Shared by all connections with the same certificates."""


NO_PEER = Peer()
UNKNOWN_REQUEST = RequestInfo("", "", "")
"""What a call asks for before that has been found out."""


ON_PREPARE: web.RequestKey[Callable[[web.StreamResponse], None]] = web.RequestKey("on_prepare", Callable)  # type: ignore[arg-type]
"""Where a request keeps what is called when its response begins."""


@dataclass(slots=True)
class AuditNotes:
    """What is noted of a request on its way, when there is an audit log."""

    received: float
    """When it came, in seconds since the epoch."""
    decision: Any = None
    """What the audit policy says about it."""
    body: bytes = b""
    """What the client sent, once that has been read."""
    panic: str = ""
    """What went wrong in the server itself."""
    impersonator: User | None = None
    """Who acts as the user of the call; None: they themselves."""
    constraint: str = ""
    """The verb that lets them, when it does so for some requests only."""
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Call:
    """One request on its way down the layers."""

    http: web.BaseRequest
    info: RequestInfo
    user: User
    warnings: list[str]
    """Texts that the response carries as Warning headers."""
    audit_id: str
    """Goes out as the Audit-Id header; the client's own when it sent one."""
    peer: Peer = NO_PEER
    audit: AuditNotes | None = None
    """None without an audit log."""


Handler = Callable[[Call], Awaitable[web.StreamResponse]]
Filter = Callable[[Call, Handler], Awaitable[web.StreamResponse]]


def parse_request(method: str, target: str) -> RequestInfo:
    """Find out what a request asks for. `target` is the request line's address: `/path?query` or the absolute form.

    Never fails: what makes no sense as a resource is a path that nobody serves. Short addresses that were asked for lately are not taken
    apart again.
    """
    return _parse_again(method, target) if len(target) <= _REMEMBERED_CHARACTERS else _parse(method, target)


def _parse(method: str, target: str) -> RequestInfo:
    path, _, query_text = target.partition("?")
    if not path.startswith("/"):
        path = _path_of_absolute_form(path)
    if "%" in path:
        path = unquote(path)
    query: Mapping[str, list[str]] = parse_qs(query_text, keep_blank_values=True) if query_text else NO_QUERY
    parts = path.strip("/").split("/")
    prefix = parts[0]
    consumed = 2 if prefix == "apis" else 1
    if prefix not in _API_PREFIXES or len(parts) < consumed + 2 or path.startswith("//"):
        return RequestInfo(path, method, method.lower(), query=query)
    group = parts[1] if prefix == "apis" else ""
    version = parts[consumed]
    parts = parts[consumed + 1 :]
    if parts[0] in ("watch", "proxy") and len(parts) > 1:
        verb = parts[0]
        parts = parts[1:]
    else:
        verb = _VERBS.get(method, "")
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    count = len(parts)
    name = parts[1] if count > 1 else ""
    if not name:
        if verb == "get":
            verb = "watch" if query and is_true(query.get("watch")) else "list"
            if query and "fieldSelector" in query:
                name = _name_selected(query["fieldSelector"][0])
        elif verb == "delete":
            verb = "deletecollection"
    return RequestInfo(
        path,
        method,
        verb,
        True,
        group,
        version,
        parts[0],
        parts[2] if count > 2 else "",
        namespace,
        name,
        query,
        tuple(parts),
    )


_REMEMBERED_CHARACTERS = 256
_parse_again = lru_cache(maxsize=4096)(_parse)


def is_true(values: list[str] | None) -> bool:
    """How Kubernetes reads a boolean parameter: absent, "0" and "false" are false, everything else (also nothing) is true."""
    return bool(values) and values[0] != "0" and values[0].lower() != "false"  # type: ignore[index]


def is_long_running(info: RequestInfo) -> bool:
    """Whether a request is a stream without an end of its own: no limit in number or time holds for it."""
    return info.verb == "watch"


def _path_of_absolute_form(target: str) -> str:
    _, separator, rest = target.partition("://")
    return "/" + rest.partition("/")[2] if separator else target


def _name_selected(field_selector: str) -> str:
    """The name that a field selector demands with `metadata.name=`, or nothing; never one that could not be a path segment."""
    for term in field_selector.split(","):
        key, separator, value = term.partition("=")
        if separator and key == "metadata.name":
            value = value.removeprefix("=")
            return "" if value in (".", "..") or "/" in value or "%" in value or "\\" in value else value
    return ""
