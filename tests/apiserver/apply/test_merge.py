"""Putting an applied object over a live one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.apply.merge import merge
from tests.apiserver.apply.things import SHAPE


def merged(live: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    before = deepcopy((live, applied))
    result = merge({"spec": live}, {"spec": applied}, SHAPE)
    assert (live, applied) == before
    spec: dict[str, Any] = result["spec"]
    return spec


@pytest.mark.parametrize(
    ("live", "applied", "wanted"),
    [
        ("abc", "ab", "abc"),
        ("ab", "abc", "abc"),
        ("abc", "", "abc"),
        ("", "abc", "abc"),
        ("ab", "ba", "ba"),
        ("abc", "def", "abcdef"),
        ("abc", "cdef", "abcdef"),
        ("abcgf", "cdef", "abcgdef"),
        ("cdef", "ace", "acdef"),
        ("abcxyz", "def", "abcxyzdef"),
        ("abcxyz", "defxyz", "abcdefxyz"),
        ("cagf", "cfag", "cfag"),
        ("abcd", "defa", "bcdefa"),
        ("cdefghij", "2h3e4kl", "cdfg2hij3e4kl"),
        ("abcdefghij", "1b2h3e4kl", "a1bcdfg2hij3e4kl"),
    ],
)
def test_items_come_in_the_order_of_upstream(live: str, applied: str, wanted: str) -> None:
    """Source: structured-merge-diff v6.4.2, typed/merge_test.go."""
    assert merged({"tags": list(live)}, {"tags": list(applied)}) == {"tags": list(wanted)}
    names = [[{"name": name} for name in text] for text in (live, applied, wanted)]
    assert merged({"items": names[0]}, {"items": names[1]}) == {"items": names[2]}


ORDERS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(ORDERS, ORDERS)
def test_no_item_is_lost_or_doubled_and_applied_items_keep_their_order(live: list[str], applied: list[str]) -> None:
    result = merged({"tags": live}, {"tags": applied})["tags"]
    assert sorted(result) == sorted({*live, *applied})
    assert [item for item in result if item in applied] == applied


@pytest.mark.parametrize(
    ("live", "applied", "wanted"),
    [
        ({"note": "a"}, {"count": 2}, {"note": "a", "count": 2}),
        ({"numbers": [1, 2]}, {"numbers": [3]}, {"numbers": [3]}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "2"}}, {"selector": {"b": "2"}}),
        ({"options": {"a": "1", "b": "1"}}, {"options": {"b": "2"}}, {"options": {"a": "1", "b": "2"}}),
        ({"options": {"a": "1"}}, {"options": {}}, {"options": {"a": "1"}}),
        ({"options": {"a": "1"}}, {"options": None}, {"options": {"a": "1"}}),
        ({"options": {}}, {"options": None}, {"options": None}),
        ({"selector": {"a": "1"}}, {"selector": None}, {"selector": None}),
        ({"branch": {"leaf": {"left": "a"}}}, {"branch": {"leaf": {"right": "b"}}}, {"branch": {"leaf": {"left": "a", "right": "b"}}}),
        ({"items": [{"name": "A", "value": "1"}]}, {"items": [{"name": "A"}]}, {"items": [{"name": "A", "value": "1"}]}),
        (
            {"ports": [{"port": 1, "protocol": "TCP", "name": "x"}, {"port": 1, "protocol": "UDP"}]},
            {"ports": [{"port": 1, "name": "y"}]},
            {"ports": [{"port": 1, "protocol": "TCP", "name": "y"}, {"port": 1, "protocol": "UDP"}]},
        ),
        (
            {"extra": {"a": 1, "b": {"c": 1}}},
            {"extra": {"a": {"x": 1}, "b": {"d": [1]}}},
            {"extra": {"a": {"x": 1}, "b": {"c": 1, "d": [1]}}},
        ),
        ({"extra": {"a": [1, 2]}}, {"extra": {"a": [3]}}, {"extra": {"a": [3]}}),
        ({"items": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, {"items": [{"name": "A"}]}, {"items": [{"name": "A"}]}),
        (
            {"items": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
            {"items": [{"name": "B"}]},
            {"items": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B"}]},
        ),
    ],
)
def test_values_merge_by_their_type(live: dict[str, Any], applied: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert merged(live, applied) == wanted


def test_an_object_that_gains_nothing_is_the_live_one() -> None:
    live = {"spec": {"note": "a", "items": [{"name": "A", "value": "1"}], "options": {"k": "v"}, "numbers": [1], "selector": {"a": "b"}}}
    assert merge(live, deepcopy(live), SHAPE) is live
