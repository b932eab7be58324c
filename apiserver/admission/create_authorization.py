"""A request that turns out to create something needs the permission to create, whatever its own verb is: an apply, above all.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/update.go (withAuthorization)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from apiserver.admission.chain import Attributes, Operation
    from apiserver.request import RequestInfo, User


class CreateAuthorization:
    """Asks again, as for a create."""

    operations: ClassVar[frozenset[Operation]] = frozenset(("CREATE",))

    def __init__(self, check: Callable[[User, RequestInfo], Awaitable[None]]) -> None:
        """`check` raises for what is not allowed."""
        self._check = check

    async def validate(self, attributes: Attributes, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        """Refuse a creation to somebody who may not create."""
        call = attributes.call
        if call.info.verb != "create":
            await self._check(call.user, replace(call.info, verb="create"))
