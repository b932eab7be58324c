"""The ring of changes: its three bounds, its floor, and the past it can restore."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import Compacted, FutureRevision
from storage.history import Change, History, RingLimits
from storage.snapshot import Snapshot
from tests.storage.cache.doubles import Item


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def history(limits: RingLimits, clock: Clock | None = None, floor: int = 0) -> History[Item]:
    return History(floor, limits=limits, retire=lambda item, _newer: len(item.value), clock=clock or Clock())


def update(revision: int, key: str = "k", size_bytes: int = 10) -> Change[Item]:
    return Change(revision, key, Item(key, revision, b"x" * size_bytes), Item(key, revision - 1, b"x" * size_bytes))


def revisions(ring: History[Item], after: int) -> list[int]:
    return [change.revision for change in ring.changes_after(after)]


def test_no_more_changes_than_the_limit_are_kept_and_the_floor_follows() -> None:
    ring = history(RingLimits(changes=3, size_bytes=None, age_seconds=None), floor=10)
    assert revisions(ring, 10) == []
    for revision in range(12, 18):
        ring.append([update(revision)])
    assert (ring.floor, revisions(ring, 14)) == (14, [15, 16, 17])
    with pytest.raises(Compacted) as compacted:
        ring.changes_after(13)
    assert compacted.value.compact_revision == 14
    assert [change.revision for change in ring.changes_after(14, 2)] == [15, 16]


def test_bytes_of_what_was_overwritten_bound_the_ring() -> None:
    ring = history(RingLimits(changes=None, size_bytes=25, age_seconds=None))
    ring.append([Change(1, "new", Item("new", 1, b"x" * 1000), None)])
    assert ring.size_bytes == 0
    for revision in range(2, 6):
        ring.append([update(revision)])
    assert (ring.floor, ring.size_bytes, revisions(ring, 3)) == (3, 20, [4, 5])


def test_a_change_larger_than_the_bound_empties_the_ring() -> None:
    ring = history(RingLimits(changes=None, size_bytes=25, age_seconds=None))
    ring.append([update(1), update(2, size_bytes=26)])
    assert (ring.floor, ring.size_bytes, len(ring)) == (2, 0, 0)


def test_changes_older_than_the_limit_go_also_when_nothing_comes() -> None:
    clock = Clock()
    ring = history(RingLimits(changes=None, size_bytes=None, age_seconds=60), clock)
    ring.append([update(1)])
    clock.now = 50
    ring.append([update(2)])
    clock.now = 61
    ring.expire()
    assert (ring.floor, revisions(ring, 1)) == (1, [2])
    clock.now = 111
    ring.expire()
    assert (ring.floor, len(ring)) == (2, 0)


def test_a_revision_is_never_split_when_the_oldest_go() -> None:
    ring = history(RingLimits(changes=2, size_bytes=None, age_seconds=None))
    ring.append([update(5, "a"), update(5, "b"), update(6, "c")])
    assert (ring.floor, revisions(ring, 5)) == (5, [6])


def test_a_ring_that_moves_for_long_stays_small_and_right() -> None:
    ring = history(RingLimits(changes=700, size_bytes=None, age_seconds=None))
    for revision in range(1, 10_001):
        ring.append([update(revision)])
        assert len(ring) == min(revision, 700)
    assert revisions(ring, 9_990) == list(range(9_991, 10_001))
    assert revisions(ring, ring.floor) == list(range(9_301, 10_001))
    assert ring.size_bytes == 7000


def test_the_pages_of_one_list_undo_once_and_what_lies_below_the_floor_is_let_go() -> None:
    ring = history(RingLimits(changes=3, size_bytes=None, age_seconds=None, snapshots=2))
    current: Snapshot[Item] = Snapshot(0)
    for revision in range(1, 4):
        change = Change(revision, "k", Item("k", revision, b"v"), current.get("k"))
        current = current.write(revision, [("k", change.entry)])
        ring.append([change])
    first = ring.snapshot_at(1, current)
    assert ring.snapshot_at(1, current) is first
    assert ring.snapshot_at(2, current) is ring.snapshot_at(2, current)
    assert ring.snapshot_at(0, current).get("k") is None
    assert ring.snapshot_at(3, current) is current
    assert ring.snapshot_at(1, current) is not first
    ring.append([Change(4, "k", None, current.get("k"))])
    with pytest.raises(Compacted):
        ring.snapshot_at(0, current.write(4, [("k", None)]))
    with pytest.raises(FutureRevision):
        ring.snapshot_at(5, current.write(4, [("k", None)]))


@given(
    writes=st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=30),
    asked=st.lists(st.integers(0, 30), max_size=10),
    limit=st.integers(1, 30),
)
def test_the_past_is_restored_as_it_was(writes: list[tuple[str, bool]], asked: list[int], limit: int) -> None:
    ring = history(RingLimits(changes=limit, size_bytes=None, age_seconds=None, snapshots=3))
    current: Snapshot[Item] = Snapshot(0)
    states: list[list[Item]] = [[]]
    for revision, (key, put) in enumerate(writes, start=1):
        change = Change(revision, key, Item(key, revision, b"v") if put else None, current.get(key))
        current = current.write(revision, [(key, change.entry)])
        ring.append([change])
        states.append(list(current.iterate()))
        for wanted in (revision for revision in asked if revision <= current.revision):
            if wanted < ring.floor:
                with pytest.raises(Compacted):
                    ring.snapshot_at(wanted, current)
            else:
                snapshot = ring.snapshot_at(wanted, current)
                assert (snapshot.revision, list(snapshot.iterate())) == (wanted, states[wanted])
