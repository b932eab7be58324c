"""What writers of this process have decoded already, so that their writes enter the cache without being parsed again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic

from storage.snapshot import E

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage.store import KeyValue


class OwnWrites(Generic[E]):
    """The entries of writes that are under way.

    An event is known by its key and value: an entry depends on nothing else, so it does not matter whose write it was.
    """

    def __init__(self) -> None:
        self._offers: dict[str, tuple[bytes, Callable[[KeyValue], E]]] = {}

    @contextmanager
    def offer(self, key: str, value: bytes, entry: Callable[[KeyValue], E] | None) -> Iterator[None]:
        """Offer `entry` inside of the block to the event of this write, which may come before or after the response."""
        if entry is None:
            yield
            return
        offer = (value, entry)
        self._offers[key] = offer
        try:
            yield
        finally:
            if self._offers.get(key) is offer:
                del self._offers[key]

    def entry(self, written: KeyValue) -> E | None:
        """Return the entry that somebody offers for this write."""
        offer = self._offers.get(written.key)
        return offer[1](written) if offer is not None and offer[0] == written.value else None
