"""The sorted snapshot against a dictionary, and what it shares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.snapshot import BLOCK_SIZE, SPLIT_ABOVE, Block, Snapshot
from tests.storage.cache.doubles import Item

KEYS = st.text(alphabet="ab/é\U0001f600\uffff", min_size=1, max_size=4)
WRITES = st.lists(st.dictionaries(KEYS, st.booleans(), max_size=8), max_size=12)


def filled(count: int) -> Snapshot[Item]:
    keys = sorted(f"/{n % 4}/{n:06d}" for n in range(count))
    return Snapshot[Item](1).write(1, [(key, Item(key, 1, b"v")) for key in keys])


def blocks_of(snapshot: Snapshot[Item]) -> list[Block[Item]]:
    return list(snapshot.blocks())


@pytest.fixture(scope="module", params=[2, 256], ids=["tiny blocks", "usual blocks"])
def block_size(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.snapshot.BLOCK_SIZE", request.param)
        patch.setattr("storage.snapshot.SPLIT_ABOVE", 2 * request.param)
        patch.setattr("storage.snapshot.JOIN_BELOW", max(request.param // 4, 2))
        yield


@pytest.mark.usefixtures("block_size")
@given(steps=WRITES, prefix=st.sampled_from(["", "a/", "é/", "/"]), start_key=st.none() | KEYS, limit=st.none() | st.integers(0, 5))
def test_a_snapshot_reads_as_a_sorted_dictionary(
    steps: list[dict[str, bool]], prefix: str, start_key: str | None, limit: int | None
) -> None:
    snapshot: Snapshot[Item] = Snapshot(0)
    model: dict[str, Item] = {}
    for revision, step in enumerate(steps, start=1):
        writes = {key: Item(key, revision, b"v") if put else None for key, put in step.items()}
        snapshot = snapshot.write(revision, sorted(writes.items(), key=lambda write: write[0]))
        for key, item in writes.items():
            if item is None:
                model.pop(key, None)
            else:
                model[key] = item
    chosen = [key for key in sorted(model, key=str.encode) if key.startswith(prefix) and key >= (start_key or "")]
    wanted = [model[key] for key in chosen]
    assert list(snapshot.iterate(prefix, start_key)) == wanted
    assert snapshot.count(prefix, start_key) == len(wanted)
    assert [entry for block in snapshot.blocks(prefix, start_key, limit=limit) for entry in block.entries] == wanted[:limit]
    assert len(snapshot) == len(model)
    assert all(snapshot.get(key) == model.get(key) for step in steps for key in step)
    assert all(len(block) for block in snapshot.blocks())


def test_blocks_stay_within_their_sizes_while_entries_come_and_go() -> None:
    snapshot = filled(5000)
    keys = [entry.key for entry in snapshot.iterate()]
    assert all(BLOCK_SIZE // 2 <= len(block) <= SPLIT_ABOVE for block in blocks_of(snapshot))
    for revision, key in enumerate(keys[::-1][: len(keys) - 100], start=2):
        snapshot = snapshot.write(revision, [(key, None)])
    assert [entry.key for entry in snapshot.iterate()] == keys[:100]
    assert len(blocks_of(snapshot)) == 1
    assert len(snapshot.write(9999, [(key, None) for key in keys[:100]])) == 0


def test_a_write_drops_what_was_kept_with_its_block_and_shares_all_others() -> None:
    before = filled(2000)
    for block in before.blocks():
        block.kept["joined"] = b"".join(entry.value for entry in block.entries)
    key = blocks_of(before)[2].keys[7]
    after = before.write(2, [(key, Item(key, 2, b"new"))])
    shared = [old is new for old, new in zip(before.blocks(), after.blocks(), strict=True)]
    assert shared.count(False) == 1
    assert not shared[2]
    assert [bool(block.kept) for block in after.blocks()] == shared
    assert all(block.kept for block in before.blocks())


def test_the_same_entries_at_a_later_revision_are_the_same_blocks() -> None:
    before = filled(1000)
    later = before.at(7)
    assert later.revision == 7
    assert all(old is new for old, new in zip(before.blocks(), later.blocks(), strict=True))


def test_a_prefix_shares_the_blocks_that_lie_within_it() -> None:
    snapshot = filled(8000)
    whole = {id(block) for block in snapshot.blocks()}
    inside = list(snapshot.blocks("/1/"))
    assert sum(len(block) for block in inside) == snapshot.count("/1/") == 2000
    assert all(id(block) in whole for block in inside[1:-1])


def test_a_snapshot_of_10000_entries_does_not_change_under_writes() -> None:
    snapshot = filled(10_000)
    held = list(snapshot.iterate())
    later = snapshot
    for revision, entry in enumerate(held[::3], start=2):
        later = later.write(revision, [(entry.key, None if revision % 2 else Item(entry.key, revision, b"new"))])
        later = later.write(revision, [(entry.key + "-beside", Item(entry.key + "-beside", revision, b"new"))])
    assert list(snapshot.iterate()) == held
    assert snapshot.revision == 1
    assert len(snapshot) == 10_000
