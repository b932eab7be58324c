"""Bearer tokens: kube-apiserver is asked whose they are.

An answer counts for some seconds. Of the tokens themselves only digests are kept, made with a key that nobody else has.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/authentication/token/cache/cached_token_authenticator.go
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from apiserver.auth import Refusal, with_authenticated
from apiserver.auth.reviews import Record, ReviewCache, review
from apiserver.cluster.client import ClusterError
from apiserver.meta import errors
from apiserver.request import User

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apiserver.cluster.client import ClusterClient
    from apiserver.request import Call

_log = logging.getLogger(__name__)

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_CAPACITY = 32_768
_TOKEN_CHARACTERS = 128 * 1024
_REVIEW_SECONDS = 10.0
_HIDDEN = "base64url.bearer.authorization.k8s.io."
_EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"


class TokenReviews:
    """Finds out whose a token is."""

    def __init__(
        self, client: ClusterClient, *, audiences: tuple[str, ...] = (), cache_seconds: float = 10.0, record: Record | None = None
    ) -> None:
        """`audiences`: whom a token must be meant for, one of them; empty: for kube-apiserver. Answers count for `cache_seconds`."""
        self._client = client
        self._record = record
        self._audiences = audiences
        self._cache_seconds = cache_seconds
        self._key = secrets.token_bytes(32)
        self._cache: ReviewCache[bytes, User | Refusal] = ReviewCache(_CAPACITY)

    async def user_of(self, token: str) -> User | Refusal:
        """Return the token's user; a Refusal for one that does not hold.

        Raises:
            APIError: 500, kube-apiserver does not say whose it is.
        """
        if len(token) > _TOKEN_CHARACTERS or not token.isascii():
            return Refusal("what was brought cannot be a token")
        key = blake2b(token.encode(), digest_size=32, key=self._key).digest()
        known = self._cache.peek(key)
        if known is not None:
            return known
        try:
            return await self._cache.find(key, lambda: self._ask(token))
        except ClusterError as error:
            _log.error("cannot find out whose a token is: %s", ascii(str(error))[1:-1])
            raise errors.internal_error("cannot find out whose the token is: kube-apiserver does not answer a review") from error

    async def _ask(self, token: str) -> tuple[User | Refusal, float]:
        spec: dict[str, Any] = {"token": token, **({"audiences": list(self._audiences)} if self._audiences else {})}
        value = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        try:
            async with asyncio.timeout(_REVIEW_SECONDS):
                status = await review(self._client, _PATH, value, record=self._record)
        except TimeoutError as error:
            raise ClusterError("no answer in time") from error
        if status.get("authenticated") is not True:
            # With an error it may be the asking that failed: the next request asks again, as upstream's.
            return Refusal("the bearer token does not hold"), 0.0 if status.get("error") else self._cache_seconds
        if self._audiences and not set(self._audiences) & set(status.get("audiences") or ()):
            return Refusal("the bearer token is meant for others"), self._cache_seconds
        try:
            return _user(status["user"]), self._cache_seconds
        except (KeyError, TypeError, AttributeError) as error:
            raise ClusterError("the answer names no user") from error


class BearerToken:
    """Authenticates by the token of the Authorization header."""

    def __init__(self, reviews: TokenReviews) -> None:
        self._reviews = reviews

    async def authenticate(self, call: Call) -> User | Refusal | None:
        """Return the token's user; a Refusal for one that does not hold; None without any."""
        header = call.http.headers.get("Authorization")
        token = _token(header, call.warnings) if header else ""
        return await self._reviews.user_of(token) if token else None


class WebSocketToken:
    """Authenticates by the token that a browser hides in the list of subprotocols, since it can set no other header.

    Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/authentication/request/websocket/protocol.go
    """

    def __init__(self, reviews: TokenReviews) -> None:
        self._reviews = reviews

    async def authenticate(self, call: Call) -> User | Refusal | None:
        """Return the token's user; a Refusal for one that does not hold; None when no token was brought this way."""
        headers = call.http.headers
        if "Sec-WebSocket-Protocol" not in headers or headers.get("Upgrade", "").lower() != "websocket":
            return None
        protocols = [protocol.strip() for header in headers.getall("Sec-WebSocket-Protocol") for protocol in header.split(",")]
        hidden = [protocol.removeprefix(_HIDDEN) for protocol in protocols if protocol.startswith(_HIDDEN)]
        if not any(hidden):
            return None
        try:
            (text,) = hidden
            token = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
        except ValueError:
            return Refusal("the subprotocols hold no token, or more than one")
        if len(protocols) == len(hidden):
            return Refusal("there is no subprotocol beside the token")
        return await self._reviews.user_of(token)


def _token(header: str, warnings: list[str]) -> str:
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return ""
    if not parts[1]:
        warnings.append(_EXTRA_SPACE)
    return parts[1]


def _user(said: Mapping[str, Any]) -> User:
    name = said["username"]
    if not isinstance(name, str) or not name:
        raise KeyError("username")
    groups = with_authenticated(name, tuple(map(str, said.get("groups") or ())))
    return User(name, said.get("uid") or "", groups, {key: tuple(values) for key, values in (said.get("extra") or {}).items()})
