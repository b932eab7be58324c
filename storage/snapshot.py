"""A sorted, immutable collection of entries at one revision, which shares with its successor all that a write has not touched.

The entries lie in blocks of some hundred, the blocks in a spine. A write copies one block and the spine; everything else is the same
object in both snapshots, and so is what the user of a block has kept with it. Reading is free of locks and copies.

Knows entries by their key only; keys are in the order of the stores, which is that of Python's strings (see `keys`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from storage.keys import prefix_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK_SIZE = 256
"""Entries in a new block: large enough that a list is joined from few pieces, small enough to be copied in a microsecond."""
SPLIT_ABOVE = 2 * BLOCK_SIZE
JOIN_BELOW = BLOCK_SIZE // 4


class Entry(Protocol):
    """What a decoder makes of one KeyValue. It must not change any more."""

    @property
    def key(self) -> str:
        """Where it is stored."""

    @property
    def revision(self) -> int:
        """The revision of the write that put it there."""

    @property
    def value(self) -> bytes:
        """The stored bytes; may be computed."""


E = TypeVar("E", bound=Entry)


class Block(Generic[E]):
    """Neighbours in a snapshot, never changed: a write makes another block."""

    __slots__ = ("entries", "kept", "keys")

    def __init__(self, keys: list[str], entries: list[E]) -> None:
        self.keys = keys
        self.entries = entries
        self.kept: dict[str, Any] = {}
        """What the user of the snapshot derives from these entries and wants to find again; gone with the block."""

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, low: int, high: int) -> Block[E]:
        """Return the entries from `low` up to `high`: this very block when that is all of them."""
        if low == 0 and high >= len(self.keys):
            return self
        return Block(self.keys[low:high], self.entries[low:high])


class Snapshot(Generic[E]):
    """The entries as they were at `revision`. Make the first one empty, and each further one from another with `write`."""

    __slots__ = ("_blocks", "_firsts", "_length", "revision")

    def __init__(self, revision: int, blocks: list[Block[E]] | None = None, firsts: list[str] | None = None, length: int = 0) -> None:
        self.revision = revision
        self._blocks = blocks if blocks is not None else []
        self._firsts = firsts if firsts is not None else []
        self._length = length

    def __len__(self) -> int:
        return self._length

    def get(self, key: str) -> E | None:
        """Return the entry under the key, or None."""
        at = bisect_right(self._firsts, key) - 1
        if at < 0:
            return None
        block = self._blocks[at]
        inside = bisect_left(block.keys, key)
        return block.entries[inside] if inside < len(block.keys) and block.keys[inside] == key else None

    def blocks(self, prefix: str = "", start_key: str | None = None, *, limit: int | None = None) -> Iterator[Block[E]]:
        """Yield the entries whose keys begin with `prefix`, from `start_key` (inclusive) on, at most `limit`, in blocks that are not empty.

        A block that is wanted whole comes as the shared object, so that what has been kept with it serves every list that contains it.
        """
        first, low, last, high = self._range(prefix, start_key)
        left = self._length if limit is None else limit
        for at in range(first, min(last + 1, len(self._blocks))):
            block = self._blocks[at]
            begin = low if at == first else 0
            end = min(high if at == last else len(block), begin + left)
            if begin < end:
                left -= end - begin
                yield block.part(begin, end)

    def iterate(self, prefix: str = "", start_key: str | None = None) -> Iterator[E]:
        """Yield the entries whose keys begin with `prefix`, from `start_key` (inclusive) on, in the order of their keys."""
        return chain.from_iterable(block.entries for block in self.blocks(prefix, start_key))

    def count(self, prefix: str = "", start_key: str | None = None) -> int:
        """Return how many entries `iterate` would yield, by looking at the blocks only."""
        first, low, last, high = self._range(prefix, start_key)
        if first == last:
            return max(high - low, 0)
        return max(sum(map(len, self._blocks[first:last])) - low + high, 0)

    def at(self, revision: int) -> Snapshot[E]:
        """Return the same entries under another revision."""
        return Snapshot(revision, self._blocks, self._firsts, self._length)

    def write(self, revision: int, writes: Iterable[tuple[str, E | None]]) -> Snapshot[E]:
        """Return what these entries become by the writes (None removes the key), with one copy of the spine for all of them.

        `writes` holds each key once, in the order of keys.
        """
        blocks, firsts, length = self._blocks.copy(), self._firsts, self._length
        rest = iter(writes)
        write = next(rest, None)
        while write is not None:
            at = max(bisect_right(firsts, write[0]) - 1, 0)
            end = firsts[at + 1] if at + 1 < len(firsts) else None
            keys, entries = (blocks[at].keys, blocks[at].entries.copy()) if blocks else ([], [])
            before, own_keys = len(keys), False
            # A block that has grown is cut before it takes more, so that inserting never moves a long list.
            while write is not None and (end is None or write[0] < end) and len(keys) <= SPLIT_ABOVE:
                key, entry = write
                inside = bisect_left(keys, key)
                present = inside < len(keys) and keys[inside] == key
                if present and entry is not None:
                    entries[inside] = entry
                elif present or entry is not None:
                    if not own_keys:
                        keys, own_keys = keys.copy(), True
                    if entry is None:
                        del keys[inside], entries[inside]
                    else:
                        keys.insert(inside, key)
                        entries.insert(inside, entry)
                write = next(rest, None)
            if blocks and not own_keys:
                blocks[at] = Block(keys, entries)
                continue
            length += len(keys) - before
            low, high = at, at + 1
            if len(keys) < JOIN_BELOW and len(blocks) > 1:
                low, high = (at - 1, at + 1) if at else (at, at + 2)
                other = blocks[low if at else at + 1]
                keys = other.keys + keys if at else keys + other.keys
                entries = other.entries + entries if at else entries + other.entries
            blocks[low:high] = made = _cut(keys, entries)
            firsts = firsts.copy()
            firsts[low:high] = [block.keys[0] for block in made]
        return Snapshot(revision, blocks, firsts, length)

    def _range(self, prefix: str, start_key: str | None) -> tuple[int, int, int, int]:
        """Return (first block, place in it, last block, place in it) of the range; the last place is exclusive."""
        start = prefix if start_key is None or start_key < prefix else start_key
        end = prefix_end(prefix)
        if end is not None and start >= end:
            return 0, 0, 0, 0
        return *self._place(start), *((len(self._blocks), 0) if end is None else self._place(end))

    def _place(self, key: str) -> tuple[int, int]:
        at = bisect_right(self._firsts, key) - 1
        return (at, bisect_left(self._blocks[at].keys, key)) if at >= 0 else (0, 0)


def _cut(keys: list[str], entries: list[E]) -> list[Block[E]]:
    if not keys:
        return []
    if len(keys) <= SPLIT_ABOVE:
        return [Block(keys, entries)]
    return [Block(keys[at : at + BLOCK_SIZE], entries[at : at + BLOCK_SIZE]) for at in range(0, len(keys), BLOCK_SIZE)]
