"""Decides whether the client may do what it asks: before anything of the object is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.meta import errors
from apiserver.meta.errors import GroupResource
from apiserver.request import ANONYMOUS

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.meta.errors import APIError
    from apiserver.request import Call, Filter, Handler, RequestInfo, User

_SANITIZED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def make(stages: Stages) -> Filter:
    """Return the filter that answers 403 to somebody who may not, and 401 to somebody whom nobody knows."""
    authorizers = stages.authorizers

    async def authorize(call: Call, handler: Handler) -> web.StreamResponse:
        reason = ""
        for authorizer in authorizers:
            decision = await authorizer.authorize(call.user, call.info)
            if decision.verdict == "allow":
                return await handler(call)
            reason = decision.reason or reason
            if decision.verdict == "deny":
                break
        if call.user is ANONYMOUS:
            raise errors.unauthorized()
        raise forbidden(call.user, call.info, reason)

    return authorize


def forbidden(user: User, info: RequestInfo, reason: str) -> APIError:
    """403 in Kubernetes' words.

    Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/responsewriters/errors.go
    """
    problem = _problem(user, info).translate(_SANITIZED)
    return errors.forbidden(GroupResource(info.group, info.resource), info.name, f"{problem}: {reason}" if reason else problem)


def _problem(user: User, info: RequestInfo) -> str:
    if not info.is_resource_request:
        return f'User "{user.name}" cannot {info.verb} path "{info.path}"'
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    scope = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    return f'User "{user.name}" cannot {info.verb} resource "{resource}" in API group "{info.group}" {scope}'
