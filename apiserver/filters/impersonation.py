"""Lets somebody act as somebody else (`kubectl --as`), if they may `impersonate` each part of that identity.

Behind kube-apiserver this has happened before a request comes here, and its headers are gone: what is left are clients that come directly.
The verb `impersonate` alone is asked for; the finer ones of constrained impersonation (`impersonate:user-info` and the like) allow less,
and whoever has only those goes by way of kube-apiserver.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/filters/impersonation/mode.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from apiserver.auth import SYSTEM_ANONYMOUS, SYSTEM_UNAUTHENTICATED, with_authenticated
from apiserver.auth.request_header import extra_of, is_text
from apiserver.meta import errors
from apiserver.request import RequestInfo, User

if TYPE_CHECKING:
    from aiohttp import web
    from multidict import CIMultiDictProxy

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_PREFIX = "impersonate-"
_USER, _UID, _GROUP, _EXTRA = "Impersonate-User", "Impersonate-Uid", "Impersonate-Group", "impersonate-extra-"
_SERVICE_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?):([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?)")


def make(stages: Stages) -> Filter:
    """Return the filter that puts the wanted user in the place of the one who asks, or answers 403."""
    check = stages.authorization.check

    async def impersonate(call: Call, handler: Handler) -> web.StreamResponse:
        headers = call.http.headers
        if any(name[:12].lower() == _PREFIX for name in headers):
            wanted = _wanted(headers)
            if wanted is not None:
                for needed in _needed(wanted):
                    await check(call.user, needed)
                if call.audit is not None:
                    call.audit.impersonator = call.user
                call.user = _completed(wanted)
        return await handler(call)

    return impersonate


def _wanted(headers: CIMultiDictProxy[str]) -> User | None:
    """Whom the headers name; None when they name nobody.

    Raises:
        APIError: 400, they say more of somebody who has no name, or what they say is no text.
    """
    name, uid = headers.get(_USER, ""), headers.get(_UID, "")
    groups = tuple(headers.getall(_GROUP, ()))
    extra = [(lower[len(_EXTRA) :], value) for key, value in headers.items() if (lower := key.lower()).startswith(_EXTRA)]
    if not is_text(name, uid, *groups, *(value for _, value in extra)):
        raise errors.bad_request("the headers of the impersonated user are not UTF-8")
    if not name:
        if uid or groups or extra:
            raise errors.bad_request("requested a uid, groups or extra fields without impersonating a user name")
        return None
    return User(name, uid, groups, extra_of(extra))


def _needed(wanted: User) -> Iterator[RequestInfo]:
    """What somebody must be allowed to do to act as this user: one thing for each part of the identity."""
    account = _SERVICE_ACCOUNT.fullmatch(wanted.name)
    if account is not None:
        yield _impersonate("", "v1", "serviceaccounts", account[2], namespace=account[1])
    else:
        yield _impersonate("", "v1", "users", wanted.name)
    if wanted.uid:
        yield _impersonate("authentication.k8s.io", "v1", "uids", wanted.uid)
    for group in wanted.groups:
        yield _impersonate("", "v1", "groups", group)
    for key, values in wanted.extra.items():
        for value in values:
            yield _impersonate("authentication.k8s.io", "v1", "userextras", value, subresource=key)


def _impersonate(group: str, version: str, resource: str, name: str, *, namespace: str = "", subresource: str = "") -> RequestInfo:
    return RequestInfo(
        "",
        "",
        "impersonate",
        is_resource_request=True,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _completed(wanted: User) -> User:
    """The user with the groups that go without saying."""
    groups = wanted.groups
    account = _SERVICE_ACCOUNT.fullmatch(wanted.name)
    if account is not None and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[1]}")
    if wanted.name == SYSTEM_ANONYMOUS and SYSTEM_UNAUTHENTICATED not in groups:
        groups = (*groups, SYSTEM_UNAUTHENTICATED)
    return User(wanted.name, wanted.uid, with_authenticated(wanted.name, groups), wanted.extra)
