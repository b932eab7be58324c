"""What accompanies the object of a write on its way to the store: how it is to be done, and who has a say in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable


class Admission(Protocol):
    """What may change or refuse a write; made for one request by `apiserver.admission`, which knows the user and the options.

    `value` is the object to be stored (None for a deletion), `old` the object that is there (None for a creation). Both methods raise
    an APIError to refuse, and may be called again when the write meets a newer object.
    """

    async def mutate(self, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        """Change `value` in place, before the rules of its kind are applied.

        Its managedFields may be replaced, but not changed: their parts are shared.
        """

    async def validate(self, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        """Look at the complete and valid object; it must not be changed any more."""


@dataclass(frozen=True, slots=True)
class Write:
    """How one write is to be done."""

    dry_run: bool = False
    """Do everything but store the result."""
    warnings: list[str] = field(default_factory=list)
    """Receives the texts of Warning headers."""
    admission: Admission | None = None
    """None: nobody has a say."""
    field_manager: str | None = None
    """Who owns what the write changes. None: nobody is tracked, and what the object says about owners is stored as it is."""
    forgets_owners: bool = False
    """Store the object without its owners."""
    change: Hashable = None
    """Names what is to be done, if it is likely to be done again: see `ResourceStore.unchanged_by`."""

    def without_owners(self) -> Write:
        """The same write of an object that is too large with its owners, which may take more than the rest: as in kube-apiserver."""
        return replace(self, field_manager=None, forgets_owners=True)
