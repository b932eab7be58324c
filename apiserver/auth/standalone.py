"""What a server that stands alone allows: its health to everybody, everything to `system:masters`, nothing to anybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.auth import ALLOW, NO_OPINION, SYSTEM_MASTERS

if TYPE_CHECKING:
    from apiserver.auth import Decision
    from apiserver.request import RequestInfo, User

_HEALTH = ("/healthz", "/livez", "/readyz")
_BELOW_HEALTH = tuple(f"{path}/" for path in _HEALTH)


class HealthForAll:
    """Lets everybody ask whether the server is well: probes carry no identity."""

    async def authorize(self, user: User, info: RequestInfo) -> Decision:
        """Allow the health addresses; no opinion of the rest."""
        return ALLOW if info.path in _HEALTH or info.path.startswith(_BELOW_HEALTH) else NO_OPINION


class PrivilegedGroup:
    """Lets one group do everything."""

    def __init__(self, group: str = SYSTEM_MASTERS) -> None:
        self._group = group

    async def authorize(self, user: User, info: RequestInfo) -> Decision:
        """Allow the members of the group everything; no opinion of others."""
        return ALLOW if self._group in user.groups else NO_OPINION
