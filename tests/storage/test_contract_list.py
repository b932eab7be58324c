"""Get and list, now and at a revision, over every store."""

from __future__ import annotations

import asyncio

import pytest

from storage.errors import FutureRevision, KeyNotFound
from storage.store import KeyValue, Page, Store
from tests.storage.following import PODS, state_at, write_history


async def create_all(store: Store, *names: str) -> list[KeyValue]:
    return [await store.create(PODS + name, name.encode()) for name in names]


async def test_an_empty_prefix_is_an_empty_page_at_the_current_revision(store: Store) -> None:
    other = await store.create("/registry/nodes/a", b"node")
    page = await store.list(PODS)
    assert page.items == []
    assert page.remaining == 0
    assert page.revision >= other.revision


async def test_a_new_store_has_a_revision_above_zero(store: Store) -> None:
    """Zero has a meaning of its own to Kubernetes' clients."""
    assert await store.current_revision() > 0
    assert (await store.list(PODS)).revision > 0


async def test_list_is_ordered_by_the_bytes_of_the_keys(store: Store) -> None:
    names = ["ns1/b", "ns1/a", "ns1/a-b", "ns1/a.b", "ns1/aa", "ns1/Z", "ns1/é", "ns1/\U0001f600", "ns1/\uffee"]
    created = await create_all(store, *names)
    assert (await store.list(PODS)).items == sorted(created, key=lambda item: item.key.encode())


async def test_a_prefix_does_not_match_a_longer_name(store: Store) -> None:
    mine, *_ = await create_all(store, "ns/a", "ns-1/a", "ns1/a", "nsa")
    await store.create("/registry/pods2/ns/a", b"other resource")
    assert (await store.list(PODS + "ns/")).items == [mine]
    assert len((await store.list(PODS)).items) == 4


async def test_an_upper_case_prefix_is_another_one(store: Store) -> None:
    """SQL's LIKE would not tell them apart."""
    lower, upper = await create_all(store, "ns_1/a", "NS_1/a")
    await create_all(store, "nsx1/a")
    assert (await store.list(PODS + "ns_1/")).items == [lower]
    assert (await store.list(PODS + "NS_1/")).items == [upper]


async def test_a_limit_says_how_many_remain_in_the_prefix(store: Store) -> None:
    created = await create_all(store, *(f"ns1/{n}" for n in range(5)))
    await store.create(PODS + "ns2/a", b"other namespace")
    pages = {limit: await store.list(PODS + "ns1/", limit=limit) for limit in (1, 4, 5, 6)}
    assert {limit: page.items for limit, page in pages.items()} == {limit: created[:limit] for limit in pages}
    assert {limit: page.remaining for limit, page in pages.items()} == {1: 4, 4: 1, 5: 0, 6: 0}


async def test_start_key_is_inclusive_and_need_not_exist(store: Store) -> None:
    a, b, c = await create_all(store, "ns1/a", "ns1/b", "ns1/c")
    assert (await store.list(PODS, start_key=b.key)).items == [b, c]
    assert (await store.list(PODS, start_key=b.key + "\0")).items == [c]
    assert (await store.list(PODS, start_key=PODS)).items == [a, b, c]
    page = await store.list(PODS, start_key=a.key + "\0", limit=1)
    assert (page.items, page.remaining) == ([b], 1)
    assert (await store.list(PODS, start_key=c.key + "\0")).items == []


async def test_start_key_before_the_prefix_does_not_widen_it(store: Store) -> None:
    await store.create("/registry/nodes/a", b"node")
    (a,) = await create_all(store, "ns1/a")
    assert (await store.list(PODS, start_key="/registry/nodes/")).items == [a]


async def test_pages_at_one_revision_are_one_listing_whatever_is_written_between(store: Store) -> None:
    created = await create_all(store, *(f"ns1/{n}" for n in range(7)))
    page = await store.list(PODS, limit=2)
    revision, items, remaining = page.revision, [*page.items], [page.remaining]
    for n in range(3):
        await store.create(f"{PODS}ns1/{n}-new", b"new")
        await store.delete(created[-1 - n].key, expected_revision=created[-1 - n].revision)
        page = await store.list(PODS, start_key=items[-1].key + "\0", limit=2, revision=revision)
        assert page.revision == revision
        items += page.items
        remaining.append(page.remaining)
    assert items == created
    assert remaining == [5, 3, 1, 0]


async def test_list_at_every_revision_is_the_replayed_history(store: Store) -> None:
    events = await write_history(store)
    for prefix in (PODS, PODS + "ns1/", PODS + "ns2/"):
        for event in events:
            page = await store.list(prefix, revision=event.revision)
            assert page == Page(state_at(events, event.revision, prefix), event.revision, 0)


async def test_limits_at_every_revision_count_what_was_there(store: Store) -> None:
    events = await write_history(store)
    for event in events:
        expected = state_at(events, event.revision)
        page = await store.list(PODS, limit=1, revision=event.revision)
        assert (page.items, page.remaining) == (expected[:1], max(len(expected) - 1, 0))


async def test_get_at_every_revision_is_the_replayed_history(store: Store) -> None:
    events = await write_history(store)
    for event in events:
        expected = {item.key: item for item in state_at(events, event.revision)}
        for key in {event.key for event in events}:
            if key in expected:
                assert await store.get(key, revision=event.revision) == expected[key]
            else:
                with pytest.raises(KeyNotFound):
                    await store.get(key, revision=event.revision)


async def test_a_revision_that_was_not_given_yet_is_refused(store: Store) -> None:
    created = await store.create(PODS + "ns1/a", b"one")
    ahead = await store.current_revision() + 1000
    with pytest.raises(FutureRevision) as caught:
        await store.list(PODS, revision=ahead)
    assert caught.value.revision == ahead
    assert created.revision <= caught.value.current_revision < ahead
    with pytest.raises(FutureRevision):
        await store.get(created.key, revision=ahead)


async def test_list_sees_every_write_that_has_returned(store: Store) -> None:
    for n in range(20):
        created = await store.create(f"{PODS}ns1/{n:02}", b"value")
        page = await store.list(PODS)
        assert page.items[-1] == created
        assert page.revision >= created.revision


async def test_a_listing_read_again_at_its_revision_is_the_same_while_others_write(store: Store) -> None:
    current = {n: await store.create(f"{PODS}ns1/{n}", b"0") for n in range(8)}
    writing = True

    async def write(n: int) -> None:
        count = 0
        while writing:
            # A store that is done at once gives nobody else a turn.
            await asyncio.sleep(0)
            count += 1
            current[n] = await store.update(current[n].key, b"%d" % count, expected_revision=current[n].revision)

    writers = [asyncio.create_task(write(n)) for n in current]
    for _ in range(20):
        await asyncio.sleep(0)
        first = await store.list(PODS)
        await asyncio.gather(*(store.get(item.key) for item in first.items))
        assert await store.list(PODS, revision=first.revision) == first
        for item in first.items:
            assert item.revision <= first.revision
            assert await store.get(item.key, revision=first.revision) == item
    writing = False
    await asyncio.gather(*writers)
    assert (await store.list(PODS)).items == [current[n] for n in sorted(current)]
