"""Whose word counts at this moment: the authorities of client certificates, and those of front proxies with the headers they may set.

Authenticators look here for each request, so that a change holds at once, for open connections too. Whoever knows better replaces a part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.auth.authorities import Authorities

if TYPE_CHECKING:
    from cryptography import x509


@dataclass(frozen=True, slots=True)
class FrontProxies:
    """Which front proxies are believed, and in which headers they say for whom they ask. The names are kube-apiserver's defaults.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
    """

    authorities: Authorities
    allowed_names: tuple[str, ...] = ()
    """Common names that the proxy's certificate may carry; empty: any."""
    username_headers: tuple[str, ...] = ("X-Remote-User",)
    """The first of these with a value names the user."""
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    """All values of all of these are groups."""
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)
    """The rest of the name of a header that begins so is a key of `extra`."""
    uid_headers: tuple[str, ...] = ()
    """None by default: kube-apiserver drops a client's own header of this name only where it sets it itself."""


class Trust:
    """The authorities that count now."""

    def __init__(self, clients: Authorities, front_proxies: FrontProxies | None = None) -> None:
        self.clients = clients
        """Sign certificates of clients, who are asked for in no other name."""
        self.front_proxies = front_proxies
        """None: nobody is believed to ask for somebody else."""
        self._watchers: list[Callable[[], None]] = []

    def replace(self, *, clients: Authorities | None = None, front_proxies: FrontProxies | None = None) -> None:
        """Count others from now on; what is None stays."""
        self.clients = clients or self.clients
        self.front_proxies = front_proxies or self.front_proxies
        for tell in self._watchers:
            tell()

    def on_change(self, tell: Callable[[], None]) -> None:
        """Call `tell` after each change."""
        self._watchers.append(tell)

    @property
    def certificates(self) -> list[x509.Certificate]:
        """All authorities: what a server names when it asks for a certificate."""
        proxies = self.front_proxies.authorities.certificates if self.front_proxies is not None else ()
        return list(dict.fromkeys((*self.clients.certificates, *proxies)))
