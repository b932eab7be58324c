"""What needs no review: some paths are open to everybody, and one group may do everything.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/authorization/path/path.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from apiserver.auth import ALLOW, NO_OPINION, SYSTEM_MASTERS

if TYPE_CHECKING:
    from apiserver.auth import Decision
    from apiserver.request import RequestInfo, User

HEALTH_PATHS = ("/healthz", "/readyz", "/livez")
"""What kube-apiserver's relatives leave open: probes carry no identity."""
HEALTH_AND_EACH_CHECK = (*HEALTH_PATHS, *(f"{path}/*" for path in HEALTH_PATHS))


class AlwaysAllowPaths:
    """Opens paths to everybody. A path that ends in `*` stands for all that begin so."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Raises ValueError for a `*` anywhere else."""
        paths = [path.removeprefix("/") for path in paths]
        for path in paths:
            if "*" in path[:-1]:
                raise ValueError(f'only trailing * allowed in "{path}"')
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))

    async def authorize(self, user: User, info: RequestInfo) -> Decision:
        """Allow the open paths; no opinion of the rest."""
        if info.is_resource_request:
            return NO_OPINION
        path = info.path.removeprefix("/")
        return ALLOW if path in self._paths or path.startswith(self._prefixes) else NO_OPINION


class PrivilegedGroup:
    """Lets one group do everything."""

    def __init__(self, group: str = SYSTEM_MASTERS) -> None:
        self._group = group

    async def authorize(self, user: User, info: RequestInfo) -> Decision:
        """Allow the members of the group everything; no opinion of others."""
        return ALLOW if self._group in user.groups else NO_OPINION
