"""How much of the past is kept, and in which order keys are."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.keys import prefix_end
from storage.window import HistoryLimits, HistoryWindow


def test_history_is_kept_for_the_time_asked_for() -> None:
    window = HistoryWindow(HistoryLimits(seconds=300, revisions=sys.maxsize), revision=0, now_seconds=0)
    forgotten: dict[int, int] = {}
    for now in range(0, 1000, 5):
        floor = window.advance(now * 10, now)
        if floor is not None:
            forgotten[now] = floor
    assert min(forgotten) == 310
    for now, floor in forgotten.items():
        assert now - 311 <= floor / 10 <= now - 300


def test_history_is_kept_for_the_number_of_writes_asked_for() -> None:
    window = HistoryWindow(HistoryLimits(seconds=math.inf, revisions=300), revision=0, now_seconds=0)
    asked = 0
    for revision in range(1, 2001):
        floor = window.advance(revision, 0)
        if floor is not None:
            asked += 1
            assert floor == revision - 300
    assert 150 <= asked <= 180


def test_without_limits_nothing_is_forgotten() -> None:
    window = HistoryWindow(HistoryLimits(seconds=math.inf, revisions=sys.maxsize), revision=0, now_seconds=0)
    assert [window.advance(n * 1_000_000, n * 1000) for n in range(100)] == [None] * 100


def test_what_was_there_at_the_start_counts_as_new() -> None:
    window = HistoryWindow(HistoryLimits(seconds=300), revision=50, now_seconds=1000)
    assert window.advance(60, 1299) is None
    assert window.advance(70, 1310) == 50


def test_a_quiet_time_is_made_up_for() -> None:
    window = HistoryWindow(HistoryLimits(seconds=300), revision=0, now_seconds=0)
    window.advance(10, 20)
    assert window.advance(11, 5000) == 10
    assert window.advance(12, 5001) is None


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("/a/", "/a0"), ("a", "b"), ("", None), ("\U0010ffff", None), ("a\U0010ffff", "b"), ("\ud7ff", "\ue000")],
)
def test_the_end_of_a_prefix(prefix: str, end: str | None) -> None:
    assert prefix_end(prefix) == end


@given(st.text(st.characters(codec="utf-8"), max_size=4), st.text(st.characters(codec="utf-8"), max_size=5))
def test_keys_of_a_prefix_are_those_from_it_to_its_end(prefix: str, key: str) -> None:
    end = prefix_end(prefix)
    between = prefix <= key and (end is None or key < end)
    assert between == key.startswith(prefix) or (prefix and not prefix.strip("\U0010ffff"))
    between_in_bytes = prefix.encode() <= key.encode() and (end is None or key.encode() < end.encode())
    assert between == between_in_bytes
