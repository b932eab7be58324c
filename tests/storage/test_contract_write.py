"""Create, update and delete over every store."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest

from storage.errors import KeyExists, KeyNotFound, RevisionConflict
from storage.store import KeyValue, Store
from tests.storage.following import PODS, following

A = PODS + "ns1/a"


async def test_create_returns_what_get_then_finds(store: Store) -> None:
    before = await store.current_revision()
    created = await store.create(A, b"one")
    assert created == KeyValue(A, b"one", created.revision)
    assert created.revision > before
    assert await store.get(A) == created
    assert await store.current_revision() >= created.revision


async def test_create_where_something_is_says_what_is_there_and_changes_nothing(store: Store) -> None:
    created = await store.create(A, b"one")
    with pytest.raises(KeyExists) as caught:
        await store.create(A, b"two")
    assert caught.value.current == created
    assert await store.get(A) == created


async def test_get_of_nothing_is_not_found(store: Store) -> None:
    with pytest.raises(KeyNotFound) as caught:
        await store.get(A)
    assert caught.value.key == A


async def test_update_replaces_the_value_under_a_new_revision(store: Store) -> None:
    created = await store.create(A, b"one")
    updated = await store.update(A, b"two", expected_revision=created.revision)
    assert updated == KeyValue(A, b"two", updated.revision)
    assert updated.revision > created.revision
    assert await store.get(A) == updated


async def test_update_with_the_same_value_takes_a_new_revision(store: Store) -> None:
    created = await store.create(A, b"one")
    updated = await store.update(A, b"one", expected_revision=created.revision)
    assert updated.revision > created.revision


async def test_update_with_a_stale_revision_says_what_is_there_and_changes_nothing(store: Store) -> None:
    created = await store.create(A, b"one")
    updated = await store.update(A, b"two", expected_revision=created.revision)
    with pytest.raises(RevisionConflict) as caught:
        await store.update(A, b"three", expected_revision=created.revision)
    assert caught.value.current == updated
    assert await store.get(A) == updated


async def test_update_ahead_of_the_key_is_a_conflict(store: Store) -> None:
    created = await store.create(A, b"one")
    other = await store.create(PODS + "ns1/b", b"other")
    with pytest.raises(RevisionConflict) as caught:
        await store.update(A, b"two", expected_revision=other.revision)
    assert caught.value.current == created


async def test_update_of_nothing_is_not_found(store: Store) -> None:
    with pytest.raises(KeyNotFound):
        await store.update(A, b"one", expected_revision=await store.current_revision())


async def test_delete_returns_the_last_value_with_the_revision_of_the_deletion(store: Store) -> None:
    created = await store.create(A, b"one")
    deleted = await store.delete(A, expected_revision=created.revision)
    assert deleted == KeyValue(A, b"one", deleted.revision)
    assert deleted.revision > created.revision
    with pytest.raises(KeyNotFound):
        await store.get(A)


async def test_delete_with_a_stale_revision_says_what_is_there_and_changes_nothing(store: Store) -> None:
    created = await store.create(A, b"one")
    updated = await store.update(A, b"two", expected_revision=created.revision)
    with pytest.raises(RevisionConflict) as caught:
        await store.delete(A, expected_revision=created.revision)
    assert caught.value.current == updated
    assert await store.get(A) == updated


async def test_delete_of_nothing_and_of_what_is_gone_is_not_found(store: Store) -> None:
    with pytest.raises(KeyNotFound):
        await store.delete(A, expected_revision=await store.current_revision())
    created = await store.create(A, b"one")
    await store.delete(A, expected_revision=created.revision)
    with pytest.raises(KeyNotFound):
        await store.delete(A, expected_revision=created.revision)


async def test_a_key_that_comes_again_does_not_take_old_revisions(store: Store) -> None:
    first = await store.create(A, b"one")
    deleted = await store.delete(A, expected_revision=first.revision)
    second = await store.create(A, b"one")
    assert second.revision > deleted.revision
    for old in (first.revision, deleted.revision):
        with pytest.raises(RevisionConflict) as caught:
            await store.update(A, b"two", expected_revision=old)
        assert caught.value.current == second


async def test_a_refused_write_makes_no_event(store: Store) -> None:
    created = await store.create(A, b"one")
    with pytest.raises(KeyExists):
        await store.create(A, b"two")
    with pytest.raises(RevisionConflict):
        await store.update(A, b"two", expected_revision=created.revision - 1)
    with pytest.raises(KeyNotFound):
        await store.delete(PODS + "ns1/b", expected_revision=created.revision)
    last = await store.create(PODS + "ns1/c", b"three")
    async with following(store, after_revision=created.revision) as watch:
        assert [event.key for event in await watch.until_revision(last.revision)] == [last.key]


async def test_values_are_any_bytes_and_keys_any_text(store: Store) -> None:
    value = bytes(range(256)) * 400
    created = await store.create(PODS + "ns1/ключ-é-\U0001f600", value)
    assert await store.get(created.key) == created
    assert (await store.list(PODS)).items == [created]


async def test_of_two_writers_with_the_same_expectation_one_wins_and_the_other_sees_it(store: Store) -> None:
    created = await store.create(A, b"one")
    results = await asyncio.gather(
        *(store.update(A, b"%d" % n, expected_revision=created.revision) for n in range(8)), return_exceptions=True
    )
    won = [result for result in results if isinstance(result, KeyValue)]
    lost = [result for result in results if isinstance(result, RevisionConflict)]
    assert (len(won), len(lost)) == (1, 7)
    assert all(conflict.current == won[0] for conflict in lost)


async def test_of_many_who_create_one_key_one_wins(store: Store) -> None:
    results = await asyncio.gather(*(store.create(A, b"%d" % n) for n in range(8)), return_exceptions=True)
    won = [result for result in results if isinstance(result, KeyValue)]
    lost = [result for result in results if isinstance(result, KeyExists)]
    assert (len(won), len(lost)) == (1, 7)
    assert all(exists.current == won[0] for exists in lost)


async def test_revisions_of_32_writers_are_unique_and_in_the_order_of_time(store: Store) -> None:
    """A write that returned before another one was called has the lower revision; so have consistent reads."""
    calls: list[tuple[int, int, int]] = []

    async def write(writer: int) -> None:
        current: KeyValue | None = None
        for n in range(10):
            began = time.monotonic_ns()
            if current is None:
                current = await store.create(f"{PODS}ns{writer}/a", b"%d" % n)
            elif n % 4 == 3:
                gone = await store.delete(current.key, expected_revision=current.revision)
                calls.append((began, time.monotonic_ns(), gone.revision))
                current = None
                continue
            else:
                current = await store.update(current.key, b"%d" % n, expected_revision=current.revision)
            calls.append((began, time.monotonic_ns(), current.revision))
            assert await store.current_revision() >= current.revision

    await asyncio.gather(*(write(writer) for writer in range(32)))
    revisions = [revision for _, _, revision in calls]
    assert len(set(revisions)) == len(revisions) == 320
    by_return = sorted(calls, key=lambda call: call[1])
    highest, position = 0, 0
    for began, _, revision in sorted(calls):
        while by_return[position][1] < began:
            highest = max(highest, by_return[position][2])
            position += 1
        assert revision > highest


async def test_a_cancelled_write_leaves_the_store_in_order(store: Store) -> None:
    before = await store.current_revision()
    task = asyncio.create_task(store.create(A, b"one"))
    await asyncio.sleep(0)
    task.cancel()
    # A store that is done at once has returned before it could be cancelled.
    with suppress(asyncio.CancelledError):
        await task
    last = await store.create(PODS + "ns1/b", b"two")
    page = await store.list(PODS)
    listed = [item.key for item in page.items]
    assert listed in ([A, last.key], [last.key])
    async with following(store, after_revision=before) as watch:
        events = await watch.until_revision(page.revision)
        # Nobody waits for a write that was cancelled: it may come after the next one.
        assert sorted(event.key for event in events if event.revision <= page.revision) == listed
