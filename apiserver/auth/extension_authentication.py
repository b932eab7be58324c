"""What kube-apiserver tells its extension servers about authentication, followed live: ConfigMap `extension-apiserver-authentication`.

The last good value stays when the ConfigMap goes away, cannot be read, or says something that makes no sense.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/#contacting-the-extension-apiserver
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.auth.authorities import Authorities
from apiserver.auth.trust import FrontProxies
from apiserver.cluster.reflector import Reflector

if TYPE_CHECKING:
    from apiserver.auth.trust import Trust
    from apiserver.cluster.client import ClusterClient

_log = logging.getLogger(__name__)

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
_CLIENT_AUTHORITIES = "client-ca-file"
_PROXY_AUTHORITIES = "requestheader-client-ca-file"
_WATCH_SECONDS = 50
"""What changes counts within a minute, even when a watch is dead and nobody notices."""


class ExtensionAuthentication:
    """Follows the ConfigMap and replaces what counts. The owner awaits `run` as a task."""

    def __init__(
        self,
        client: ClusterClient,
        trust: Trust,
        *,
        own_authorities: Authorities,
        follow_clients: bool = True,
        follow_proxies: bool = True,
    ) -> None:
        """`own_authorities` sign clients in any case; what is not followed has been given otherwise."""
        self._trust = trust
        self._own = own_authorities
        self._follow_clients = follow_clients
        self._follow_proxies = follow_proxies
        self._said: Mapping[str, str] | None = None
        self._reflector = Reflector(
            client,
            f"/api/v1/namespaces/{NAMESPACE}/configmaps",
            self,
            field_selector=f"metadata.name={NAME}",
            watch_seconds=_WATCH_SECONDS,
        )

    async def run(self) -> None:
        """Follow, for ever."""
        await self._reflector.run()

    async def check(self) -> None:
        """Return when the ConfigMap has been read, now or before.

        Raises:
            RuntimeError: it has not.
        """
        if not self._reflector.synced.is_set():
            raise RuntimeError(f"ConfigMap {NAMESPACE}/{NAME}: {self._reflector.problem}")

    def replaced(self, objects: Sequence[dict[str, Any]]) -> None:
        """Take over what the ConfigMap says; without one, nothing changes."""
        for value in objects:
            self.changed("MODIFIED", value)
        if not objects and self._said is None:
            _log.warning("there is no ConfigMap %s/%s: neither its clients nor front proxies are known", NAMESPACE, NAME)

    def changed(self, kind: str, value: dict[str, Any]) -> None:
        """Take over what it says now."""
        said = value.get("data") or {}
        if kind == "DELETED" or said == self._said:
            return
        clients, proxies = self._clients(said), self._proxies(said)
        if clients is not None and proxies is not None and set(clients.certificates) & set(proxies.authorities.certificates):
            _log.warning("front proxies and clients have the same authority: only --requestheader-allowed-names keeps them apart")
        if not proxies and self._follow_proxies and self._trust.front_proxies is None:
            _log.warning("ConfigMap %s/%s names no front proxies: nobody can come through kube-apiserver", NAMESPACE, NAME)
        self._said = said
        self._trust.replace(clients=clients, front_proxies=proxies)
        _log.info("ConfigMap %s/%s has been read", NAMESPACE, NAME)

    def _clients(self, said: Mapping[str, str]) -> Authorities | None:
        authorities = _authorities(said, _CLIENT_AUTHORITIES) if self._follow_clients else None
        return None if authorities is None else Authorities((*self._own.certificates, *authorities.certificates))

    def _proxies(self, said: Mapping[str, str]) -> FrontProxies | None:
        if not self._follow_proxies:
            return None
        authorities, before = _authorities(said, _PROXY_AUTHORITIES), self._trust.front_proxies
        if authorities is None:
            if before is None:
                return None
            authorities = before.authorities
        try:
            return FrontProxies(
                authorities,
                _names(said, "requestheader-allowed-names"),
                _names(said, "requestheader-username-headers"),
                _names(said, "requestheader-group-headers"),
                _names(said, "requestheader-extra-headers-prefix"),
                _names(said, "requestheader-uid-headers"),
            )
        except ValueError as error:
            _log.error("ConfigMap %s/%s: %s; what it said before counts", NAMESPACE, NAME, error)
            return None


def _authorities(said: Mapping[str, str], key: str) -> Authorities | None:
    pem = said.get(key, "")
    if not pem.strip():
        return None
    try:
        return Authorities.parse(pem.encode())
    except ValueError:
        _log.error("ConfigMap %s/%s: %s holds no certificates; what it held before counts", NAMESPACE, NAME, key)
        return None


def _names(said: Mapping[str, str], key: str) -> tuple[str, ...]:
    """A list of names, written as JSON.

    Raises:
        ValueError: it is none.
    """
    text = said.get(key, "")
    if not text:
        return ()
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{key} is no JSON") from error
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise ValueError(f"{key} is no list of names")
    return tuple(name.strip() for name in names)
