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
SYSTEM_UNAUTHENTICATED = "system:unauthenticated"
SYSTEM_ANONYMOUS = "system:anonymous"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proof of identity was brought, and does not hold. `reason` is for the log; the client learns nothing of it."""

    reason: str


class Authenticator(Protocol):
    """Finds out who sends a request."""

    async def authenticate(self, call: Call) -> User | Refusal | None:
        """Return who it is; None when this way of proving an identity was not used; a Refusal when it was, and failed.

        After a Refusal the next one is asked. A request that nobody vouches for is anonymous only when nobody refused it.

        Raises:
            APIError: 500, nobody could find out.
        """


def with_authenticated(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups of somebody who has proved who they are: those that their proof names, and `system:authenticated`.

    Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/authentication/group/authenticated_group_adder.go
    """
    if name == SYSTEM_ANONYMOUS or SYSTEM_AUTHENTICATED in groups or SYSTEM_UNAUTHENTICATED in groups:
        return groups
    return (*groups, SYSTEM_AUTHENTICATED)


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
        """Return the verdict; with "no opinion" the next authorizer is asked, and nobody's opinion is a denial.

        Raises:
            APIError: 500, it could not be found out.
        """
