"""Lets somebody act as somebody else (`kubectl --as`), if they may.

Behind kube-apiserver this has happened before a request comes here, and its headers are gone: what is left are clients that come directly.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/filters/impersonation/constrained_impersonation.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.auth.impersonation import Impersonation
from apiserver.auth.request_header import extra_of, is_text
from apiserver.meta import errors
from apiserver.request import User

if TYPE_CHECKING:
    from aiohttp import web
    from multidict import CIMultiDictProxy

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_PREFIX = "impersonate-"
_USER, _UID, _GROUP, _EXTRA = "Impersonate-User", "Impersonate-Uid", "Impersonate-Group", "impersonate-extra-"


def make(stages: Stages) -> Filter:
    """Return the filter that puts the wanted user in the place of the one who asks, or answers 403."""
    counted = stages.access_metrics
    impersonation = Impersonation(
        stages.authorization, record=counted.impersonation.record, record_check=counted.impersonation_checks.record
    )

    async def impersonate(call: Call, handler: Handler) -> web.StreamResponse:
        headers = call.http.headers
        # All names at once: one after the other they take as long as the rest of the chain.
        if _PREFIX in " ".join(headers).lower():
            wanted = _wanted(headers)
            if wanted is not None:
                impersonated = await impersonation.act_as(wanted, call.user, call.info)
                if call.audit is not None:
                    call.audit.impersonator, call.audit.constraint = call.user, impersonated.constraint
                call.user = impersonated.user
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
