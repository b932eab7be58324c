"""Who is asking, and may they. An ordered list of authenticators and an ordered list of authorizers; each may leave a request to the next.

Identity is derived once per connection where it can be (a certificate does not change), but judged for every request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from apiserver.request import Call, RequestInfo, User

SYSTEM_MASTERS = "system:masters"
"""The group that may do everything, and that no limit holds back."""
SYSTEM_AUTHENTICATED = "system:authenticated"


class Authenticator(Protocol):
    """Finds out who sends a request."""

    async def authenticate(self, call: Call) -> User | None:
        """Return who it is, or None when this way of proving an identity was not used or did not hold."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What an authorizer thinks of a request. `reason` goes to the client of a denied one."""

    verdict: Literal["allow", "deny", "no opinion"]
    reason: str = ""


ALLOW = Decision("allow")
NO_OPINION = Decision("no opinion")


class Authorizer(Protocol):
    """Judges whether somebody may do something."""

    async def authorize(self, user: User, info: RequestInfo) -> Decision:
        """Return the verdict; with "no opinion" the next authorizer is asked, and nobody's opinion is a denial."""
