"""Acting as somebody else: in which modes that can be asked for, and what must be allowed for each.

The constrained modes ask for two things: `impersonate-on:<mode>:<verb>` of what the request is about, and `impersonate:<mode>` of each part
of the wanted identity. The oldest mode asks for `impersonate` of each part, whatever the request is about. The finest mode is tried first;
but which one has been good last is remembered for each user, so that somebody who needs the oldest is not asked about the others again.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/filters/impersonation/mode.go
and https://github.com/kubernetes/enhancements/tree/master/keps/sig-auth/5284-constrained-impersonation
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from apiserver.auth import SYSTEM_ANONYMOUS, SYSTEM_MASTERS, SYSTEM_UNAUTHENTICATED, with_authenticated
from apiserver.auth.authorization import forbidden
from apiserver.meta.errors import APIError
from apiserver.meta.field_errors import aggregate
from apiserver.meta.validation import dns1123_label_errors, dns1123_subdomain_errors, domain_prefixed_path_errors
from apiserver.request import RequestInfo, User
from openapi import gotext

if TYPE_CHECKING:
    from apiserver.auth.authorization import Authorization
    from apiserver.auth.reviews import Record

_ASSOCIATED_NODE, _ARBITRARY_NODE, _SERVICE_ACCOUNT, _USER_INFO, _LEGACY = (
    "associated-node", "arbitrary-node", "serviceaccount", "user-info", "legacy",
)  # fmt: skip
_NODE, _ACCOUNT = "system:node:", "system:serviceaccount:"
_LONGEST_NAME = len(_ACCOUNT) + 63 + 1 + 253
_AUTHENTICATION = "authentication.k8s.io"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_ASSOCIATED_KEYS = "authentication.kubernetes.io/associated-node-keys"
_MANY = 4
"""From so many groups or extra values on, it is asked first whether all there could be are allowed."""
_REMEMBERED_USERS = 10_000


@dataclass(frozen=True, slots=True)
class Impersonated:
    """Who somebody is now."""

    user: User
    constraint: str
    """The verb that has allowed it; empty for the oldest mode, which constrains nothing."""


class Impersonation:
    """Judges who may act as whom."""

    def __init__(self, authorization: Authorization, *, record: Record, record_check: Record) -> None:
        """`record` is told of each request, `record_check` of each question that it takes: mode and decision."""
        self._authorization, self._record, self._record_check = authorization, record, record_check
        self._last: dict[str, str] = {}

    async def act_as(self, wanted: User, asking: User, info: RequestInfo) -> Impersonated:
        """Return the wanted user, with the groups that go without saying, when `asking` may act so in this request.

        Raises:
            APIError: 403, they may not (what is said is what the first mode lacks); 401, nobody knows who asks; 500, no answer.
        """
        began = perf_counter()
        try:
            mode = await self._allowed_mode(wanted, asking, info)
        except APIError:
            self._record(("", "denied"), perf_counter() - began)
            raise
        self._record((mode, "allowed"), perf_counter() - began)
        return Impersonated(_completed(wanted, mode), "" if mode == _LEGACY else f"impersonate:{mode}")

    async def _allowed_mode(self, wanted: User, asking: User, info: RequestInfo) -> str:
        last, refused = self._last.get(asking.name), None
        for mode in sorted(_modes(wanted, asking), key=lambda mode: mode != last):
            try:
                await self._check(mode, wanted, asking, info)
            except APIError as error:
                if error.code != 403:
                    raise
                refused = refused or error
            else:
                if mode != last:
                    self._remember(asking.name, mode)
                return mode
        assert refused is not None
        raise refused

    async def _check(self, mode: str, wanted: User, asking: User, info: RequestInfo) -> None:
        constrained = mode != _LEGACY

        async def check(needed: RequestInfo) -> None:
            began, decision = perf_counter(), "denied"
            try:
                await self._authorization.check(asking, needed)
                decision = "allowed"
            finally:
                self._record_check((mode, decision), perf_counter() - began)

        async def check_each(needed: list[RequestInfo], everything: RequestInfo) -> None:
            if constrained and len(needed) >= _MANY:
                try:
                    await check(everything)
                except APIError as error:
                    if error.code != 403:
                        raise
                else:
                    return
            for one in needed:
                await check(one)

        if mode == _ASSOCIATED_NODE:
            # One answer shall do for the pods of an account on all nodes. That this one is on the wanted node has been seen already.
            asking = replace(asking, extra={_ASSOCIATED_KEYS: tuple(sorted(asking.extra))})
        if constrained:
            await check(replace(info, verb=f"impersonate-on:{mode}:{info.verb}"))
        await check(_name_of(mode, wanted.name))
        if wanted.uid:
            await check(_part(mode, _AUTHENTICATION, "uids", wanted.uid))
        groups = _part(mode, _group(mode), "groups")
        extra = _part(mode, _AUTHENTICATION, "userextras")
        if constrained:
            _demand_sound_groups(wanted.groups, asking, groups)
        await check_each([replace(groups, name=group) for group in wanted.groups], replace(groups, name="*"))
        if constrained and (problem := _extra_problem(wanted.extra)):
            raise forbidden(asking, extra, problem)
        values = [replace(extra, subresource=key, name=value) for key, values in wanted.extra.items() for value in values]
        await check_each(values, replace(extra, subresource="*", name="*"))

    def _remember(self, name: str, mode: str) -> None:
        self._last.pop(name, None)
        if len(self._last) >= _REMEMBERED_USERS:
            del self._last[next(iter(self._last))]
        self._last[name] = mode


def _modes(wanted: User, asking: User) -> list[str]:
    """The modes in which this identity can be asked for, the finest first."""
    node, named_alone = _node_of(wanted.name), not (wanted.uid or wanted.groups or wanted.extra)
    if node:
        is_there = _account_of(asking.name) is not None and asking.extra.get(_NODE_NAME) == (node,)
        modes = ([_ASSOCIATED_NODE] if is_there else []) + [_ARBITRARY_NODE] if named_alone else []
    elif _account_of(wanted.name):
        modes = [_SERVICE_ACCOUNT] if named_alone else []
    else:
        modes = [_USER_INFO]
    return [*modes, _LEGACY]


def _name_of(mode: str, name: str) -> RequestInfo:
    """What is asked about the name of the wanted user."""
    if account := _account_of(name):
        return replace(_part(mode, _group(mode), "serviceaccounts", account[1]), namespace=account[0])
    if mode != _LEGACY and (node := _node_of(name)):
        return _part(mode, _AUTHENTICATION, "nodes", "*" if mode == _ASSOCIATED_NODE else node)
    return _part(mode, _group(mode), "users", name)


def _group(mode: str) -> str:
    """The API group of names and groups."""
    return "" if mode == _LEGACY else _AUTHENTICATION


def _part(mode: str, group: str, resource: str, name: str = "") -> RequestInfo:
    verb = "impersonate" if mode == _LEGACY else f"impersonate:{mode}"
    return RequestInfo("", "", verb, is_resource_request=True, group=group, version="v1", resource=resource, name=name)


def _demand_sound_groups(groups: tuple[str, ...], asking: User, info: RequestInfo) -> None:
    if "" in groups:
        raise forbidden(asking, info, "impersonating the empty string group is not allowed")
    if SYSTEM_MASTERS in groups:
        raise forbidden(asking, replace(info, name=SYSTEM_MASTERS), f"impersonating the {SYSTEM_MASTERS} group is not allowed")


def _extra_problem(extra: Mapping[str, tuple[str, ...]]) -> str:
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if found := domain_prefixed_path_errors(key, "extra.key"):
            return f"impersonating an invalid key in extra is not allowed: {aggregate(found)}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {gotext.quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _completed(wanted: User, mode: str) -> User:
    """The user with the groups that go without saying."""
    groups = wanted.groups
    if not groups and (account := _account_of(wanted.name)):
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    elif mode in (_ASSOCIATED_NODE, _ARBITRARY_NODE):
        groups = ("system:nodes",)
    if wanted.name == SYSTEM_ANONYMOUS and SYSTEM_UNAUTHENTICATED not in groups:
        groups = (*groups, SYSTEM_UNAUTHENTICATED)
    return replace(wanted, groups=with_authenticated(wanted.name, groups))


def _node_of(user_name: str) -> str:
    """The node whose user this is; nothing for others."""
    if not user_name.startswith(_NODE) or len(user_name) > _LONGEST_NAME:
        return ""
    name = user_name.removeprefix(_NODE)
    return "" if dns1123_subdomain_errors(name) else name


def _account_of(user_name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account whose user this is; None for others."""
    if not user_name.startswith(_ACCOUNT) or len(user_name) > _LONGEST_NAME:
        return None
    namespace, _, name = user_name.removeprefix(_ACCOUNT).partition(":")
    return None if dns1123_label_errors(namespace) or dns1123_subdomain_errors(name) else (namespace, name)
