"""Objects that have been overwritten or deleted: they take little room, and read as they always did."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from apiserver.meta.resource import describe
from apiserver.registry.stored_object import ObjectCodec, StoredObject
from storage.store import KeyValue
from tests.apiserver.gadgets import Gadget

CODEC = ObjectCodec(describe(Gadget))
METADATA = {"namespace": "ns1", "name": "x", "uid": "11111111-2222-3333-4444-555555555555"}


def state(revision: int, text: str, **spec: Any) -> StoredObject:
    value = {
        "apiVersion": "example.dev/v1",
        "kind": "Gadget",
        "metadata": {**METADATA, "labels": {"a": "b"}},
        "spec": {"text": text, **spec},
    }
    encoded = CODEC.encode(value)
    return encoded.stored(KeyValue("/k", encoded.value, revision))


def noise(length: int) -> str:
    return random.Random(length).randbytes(length // 2).hex()


@pytest.mark.parametrize("length", [10, 3_000, 40_000])
def test_all_states_read_as_they_did_before_they_were_overwritten(length: int) -> None:
    text = noise(length)
    states = [state(revision, text, replicas=revision) for revision in range(1, 60)]
    before = [(one.wire, one.value, one.metadata_wire, one.content, one.at(99).wire, dict(one.labels)) for one in states]
    for older, newer in itertools.pairwise(states):
        older.retire(newer)
    states[-1].retire(None)
    assert [(one.wire, one.value, one.metadata_wire, one.content, one.at(99).wire, dict(one.labels)) for one in states] == before


def test_a_small_change_takes_little_room_and_a_chain_of_them_has_an_end() -> None:
    text = noise(3_000)
    states = [state(revision, text, replicas=revision) for revision in range(1, 200)]
    sizes = [older.retire(newer) for older, newer in itertools.pairwise(states)]
    whole = [size for size in sizes if size > 3_000]
    assert len(whole) == len(sizes) // 17
    assert max(size for size in sizes if size not in whole) < 700


def test_what_was_deleted_takes_less_than_half_of_the_room_and_reads_as_before() -> None:
    older = state(1, "word " * 400)
    deleted = state(2, "words " * 400)
    before = [(one.wire, one.value, one.at(99).wire) for one in (older, deleted)]
    older.retire(deleted)
    whole = len(deleted.wire)
    assert whole > 2_400
    assert deleted.retire(None) < 500 + whole // 2
    assert [(one.wire, one.value, one.at(99).wire) for one in (older, deleted)] == before


def test_what_was_deleted_and_does_not_compress_is_kept_whole() -> None:
    deleted = state(1, random.Random(1).randbytes(3_000).decode("latin-1"))
    wire = deleted.wire
    assert deleted.retire(None) > len(wire)
    assert deleted.wire == wire


def test_what_has_nothing_in_common_with_its_successor_is_kept_whole() -> None:
    older, newer = state(1, noise(3_000)), state(2, noise(3_002)[::-1])
    wire = older.wire
    assert older.retire(newer) > 3_000
    assert older.wire == wire


def test_what_is_derived_from_a_state_is_made_anew_after_it_was_overwritten() -> None:
    older, newer = state(1, "a"), state(2, "b")
    assert older.memo("form", lambda one: len(one.wire)) == len(older.wire)
    older.retire(newer)
    assert older.memo("form", lambda one: one.wire) == older.wire
