"""May somebody do something: the authorizers asked in order, and the answer to those who may not.

Used for each request before anything of an object is looked at, and again where a request turns out to do something else as well, as an
apply that creates.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/responsewriters/errors.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.auth import NO_OPINION
from apiserver.meta import errors
from apiserver.meta.errors import APIError, GroupResource
from apiserver.request import ANONYMOUS
from openapi.gotext import quote

if TYPE_CHECKING:
    from apiserver.auth import Authorizer, Decision
    from apiserver.request import RequestInfo, User

_SANITIZED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Authorization:
    """An ordered list of authorizers: the first with an opinion decides, and nobody's opinion is a denial."""

    def __init__(self, authorizers: tuple[Authorizer, ...]) -> None:
        self._authorizers = authorizers

    async def decide(self, user: User, info: RequestInfo) -> Decision:
        """The verdict of the first authorizer that has one; without any, no opinion, with the reason that was given last.

        Raises:
            APIError: 500, it could not be found out.
        """
        decision = NO_OPINION
        for authorizer in self._authorizers:
            before, decision = decision, await authorizer.authorize(user, info)
            if decision.verdict != "no opinion":
                return decision
            if not decision.reason:
                decision = before
        return decision

    async def check(self, user: User, info: RequestInfo) -> None:
        """Return when it is allowed.

        Raises:
            APIError: 403; 401 for somebody whom nobody knows; 500 when it could not be found out.
        """
        decision = await self.decide(user, info)
        if decision.verdict != "allow":
            raise refusal(user, info, decision.reason)


def refusal(user: User, info: RequestInfo, reason: str) -> APIError:
    """What is answered to those who may not: 403, or 401 to somebody whom nobody knows."""
    return errors.unauthorized() if user is ANONYMOUS else forbidden(user, info, reason)


def forbidden(user: User, info: RequestInfo, reason: str) -> APIError:
    """403 in Kubernetes' words."""
    problem = _problem(user, info).translate(_SANITIZED)
    return errors.forbidden(GroupResource(info.group, info.resource), info.name, f"{problem}: {reason}" if reason else problem)


def _problem(user: User, info: RequestInfo) -> str:
    said = f"User {quote(user.name)} cannot {info.verb}"
    if not info.is_resource_request:
        return f"{said} path {quote(info.path)}"
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    scope = f"in the namespace {quote(info.namespace)}" if info.namespace else "at the cluster scope"
    return f"{said} resource {quote(resource)} in API group {quote(info.group)} {scope}"
