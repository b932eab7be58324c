"""From a parsed request to the handler that answers it: two look-ups, no patterns.

What nobody serves is a 404, a verb that a resource lacks a 405, as kube-apiserver answers for custom resources. A PUT or PATCH on a
collection and a POST on an object are 405 as well (kube-apiserver: 400 after reading the body).
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.meta import errors

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.meta.resource import ResourceKind
    from apiserver.request import Call, Handler, RequestInfo

Verb = tuple[str, str]
"""A verb and a subresource (empty: the object itself)."""

_OF_ALL_NAMESPACES = frozenset(("list", "watch"))
_OF_ONE_OBJECT = frozenset(("get", "update", "patch", "delete"))


@dataclass(frozen=True, slots=True)
class Served:
    """A kind, and its handlers by verb and subresource."""

    kind: ResourceKind
    handlers: Mapping[Verb, Handler]

    @property
    def subresources(self) -> frozenset[str]:
        """What an object has under its own address."""
        return frozenset(subresource for _, subresource in self.handlers if subresource)


class Router:
    """The endpoint of the filter chain."""

    def __init__(self, resources: Mapping[tuple[str, str, str], Served], paths: Mapping[str, Handler]) -> None:
        """`resources` by (group, version, plural); `paths` by path without a slash at its end."""
        self._resources = resources
        self._paths = paths

    def __call__(self, call: Call) -> Awaitable[web.StreamResponse]:
        """Hand the call to its handler.

        Raises:
            APIError: 404, 405; 400 for a name that cannot be one.
        """
        info = call.info
        if not info.is_resource_request:
            # One slash at the end is the same address; more are somebody's mistake, and a redirect would leak the client's credentials.
            handler = self._paths.get(info.path) or self._paths.get(info.path.removesuffix("/"))
            if handler is None:
                raise errors.path_not_found()
            return handler(call)
        served = self._resources.get((info.group, info.version, info.resource))
        if served is None:
            raise errors.path_not_found()
        return _resource_handler(served, info)(call)


def _resource_handler(served: Served, info: RequestInfo) -> Handler:
    kind, verb, subresource = served.kind, info.verb, info.subresource
    if kind.namespaced != bool(info.namespace) and not (kind.namespaced and verb in _OF_ALL_NAMESPACES):
        raise errors.path_not_found()
    handler = served.handlers.get((verb, subresource))
    if handler is None:
        if subresource and ("get", subresource) not in served.handlers:
            raise errors.not_found(kind.group_resource, info.name)
        raise errors.method_not_supported(kind.group_resource, verb)
    if verb in _OF_ONE_OBJECT:
        if not info.name:
            raise errors.method_not_supported(kind.group_resource, verb)
        _check_segment("Name", info.name)
    elif verb == "create" and info.name:
        raise errors.method_not_supported(kind.group_resource, verb)
    if info.namespace:
        _check_segment("Namespace", info.namespace)
    return handler


def _check_segment(what: str, text: str) -> None:
    """Refuse what could mean another place in a path: these names cannot exist.

    Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/api/validation/path/name.go
    """
    problem = f"may not be '{text}'" if text in (".", "..") else "may not contain '%'" if "%" in text else ""
    if problem or "\0" in text:
        raise errors.bad_request(f'{what} parameter invalid: "{_quoted(text)}": {problem or "may not contain NUL"}')


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\0", "\\x00")
