"""Front proxies: whom a request is from is said in its headers, by somebody whose certificate proves that it may say so.

The headers of anybody else are not looked at. A header counts only under exactly one of the configured names (in any case); nothing is
joined, split or trimmed beyond what HTTP's parser does.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/authentication/request/headerrequest/requestheader.go
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from apiserver.auth import Refusal, with_authenticated
from apiserver.auth.client_certificate import common_name
from apiserver.request import User

if TYPE_CHECKING:
    from collections.abc import Iterable

    from multidict import CIMultiDictProxy

    from apiserver.auth.authorities import Judgement
    from apiserver.auth.trust import FrontProxies, Trust
    from apiserver.request import Call

_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")
_REMEMBERED_USERS = 1024

_Extra = tuple[tuple[str, str], ...]


class RequestHeader:
    """Authenticates by the headers that a front proxy has set, above all the aggregator in kube-apiserver."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._of_proxy = object()
        self._users: dict[tuple[str, str, tuple[str, ...], _Extra], User] = {}

    async def authenticate(self, call: Call) -> User | Refusal | None:
        """Return whom the proxy names; None without a certificate or without a name; a Refusal for a certificate that may not say it."""
        peer, proxies = call.peer, self._trust.front_proxies
        if peer.certificate is None or proxies is None:
            return None
        judgement = proxies.authorities.judge(peer, self)
        known: tuple[FrontProxies, Judgement, Refusal | None] | None = peer.identities.get(self._of_proxy)
        if known is None or known[0] is not proxies or known[1] is not judgement:
            known = peer.identities[self._of_proxy] = (proxies, judgement, _refusal(proxies, judgement))
        return known[2] or self._user(call.http.headers, proxies)

    def _user(self, headers: CIMultiDictProxy[str], proxies: FrontProxies) -> User | Refusal | None:
        name = _first(headers, proxies.username_headers)
        if not name:
            return None
        groups = tuple([value for header in proxies.group_headers for value in headers.getall(header, ()) if value])
        uid = _first(headers, proxies.uid_headers) if proxies.uid_headers else ""
        extra: list[tuple[str, str]] = []
        for prefix in proxies.extra_prefixes:
            prefix, length = prefix.lower(), len(prefix)
            extra += [(lower[length:], value) for key, value in headers.items() if (lower := key.lower()).startswith(prefix)]
        # The same few users come again and again; their tuples are shared by all that is remembered about them.
        said = (name, uid, groups, tuple(extra))
        user = self._users.get(said)
        if user is None:
            if not is_text(name, uid, *groups, *(value for _, value in extra)):
                return Refusal("the proxy's headers are not UTF-8")
            user = User(name, uid, with_authenticated(name, groups), extra_of(extra))
            if len(self._users) >= _REMEMBERED_USERS:
                del self._users[next(iter(self._users))]
            self._users[said] = user
        return user


def _refusal(proxies: FrontProxies, judgement: Judgement) -> Refusal | None:
    if judgement.certificate is None:
        return Refusal(f"no front proxy's certificate: {judgement.problem}")
    name = common_name(judgement.certificate)
    if proxies.allowed_names and name not in proxies.allowed_names:
        return Refusal(f"{name!r} is not one of the front proxies' names")
    return None


def _first(headers: CIMultiDictProxy[str], names: Iterable[str]) -> str:
    for name in names:
        value = headers.get(name)
        if value:
            return value
    return ""


def extra_of(said: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The extra fields of an identity, of the ends of header names and the values."""
    extra: dict[str, tuple[str, ...]] = {}
    for rest, value in said:
        # A key may hold what header names may not; one that is not well escaped is taken as it is.
        key = unquote_to_bytes(rest).decode(errors="replace") if "%" in rest and not _BAD_ESCAPE.search(rest) else rest
        extra[key] = (*extra.get(key, ()), value)
    return extra


def is_text(*values: str) -> bool:
    """Whether what came as headers is UTF-8."""
    return all(value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value) for value in values)
