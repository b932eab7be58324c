"""Who may come in, and what they may do: the parts that decide it, put together from the configuration.

A server that stands alone knows its own authority and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apiserver.auth.always_allow import HEALTH_AND_EACH_CHECK, AlwaysAllowPaths, PrivilegedGroup
from apiserver.auth.authorities import Authorities
from apiserver.auth.authorization import Authorization
from apiserver.auth.client_certificate import ClientCertificate
from apiserver.auth.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography import x509

    from apiserver.auth import Authenticator
    from apiserver.request import User


@dataclass(frozen=True, slots=True)
class Access:
    """How clients are known and judged."""

    trust: Trust
    """Which certificates count; the listener names their authorities to clients."""
    authenticators: tuple[Authenticator, ...]
    authorization: Authorization
    anonymous: User | None = None
    """Who those are that prove nothing."""
    tasks: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = ()
    """What must run for it."""


def standalone(authorities: Iterable[x509.Certificate]) -> Access:
    """Certificates of these authorities; everything to `system:masters`, its health to everybody, nothing to anybody else."""
    trust = Trust(Authorities(tuple(authorities)))
    authorization = Authorization((PrivilegedGroup(), AlwaysAllowPaths(HEALTH_AND_EACH_CHECK)))
    return Access(trust, (ClientCertificate(trust),), authorization)
