"""What writers of this process have decoded already, so that their writes enter the cache without being parsed again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from storage.snapshot import E

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.store import KeyValue

Offer = tuple[bytes, "Callable[[KeyValue], E]"]
"""The value of a write, and what makes its entry."""


class OwnWrites(Generic[E]):
    """The entries of writes that are under way.

    An event is known by its key and value: an entry depends on nothing else, so it does not matter whose write it was.
    """

    def __init__(self) -> None:
        self._offers: dict[str, Offer[E]] = {}

    def offer(self, key: str, value: bytes, entry: Callable[[KeyValue], E] | None) -> Offer[E] | None:
        """Offer `entry` to the event of this write, which may come before or after the response, until it is withdrawn."""
        if entry is None:
            return None
        offer = self._offers[key] = (value, entry)
        return offer

    def withdraw(self, key: str, offer: Offer[E] | None) -> None:
        """Take back what `offer` returned, unless the next write of the key has taken its place."""
        if offer is not None and self._offers.get(key) is offer:
            del self._offers[key]

    def entry(self, written: KeyValue) -> E | None:
        """Return the entry that somebody offers for this write."""
        offer = self._offers.get(written.key)
        return offer[1](written) if offer is not None and offer[0] == written.value else None
