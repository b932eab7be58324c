"""JSON merge patch as kube-apiserver's library does it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apply.merge_patch import merged


@pytest.mark.parametrize(
    ("value", "patch", "result"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="replaces"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="adds"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="null-removes"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="list-by-text"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="objects-merge"),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="lists-are-replaced"),
        pytest.param({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}, id="nulls-of-new-objects-go"),
        pytest.param({"a": [0]}, {"a": [{"b": None}, None]}, {"a": [{}, None]}, id="nulls-in-lists-of-objects-go"),
        pytest.param({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}, id="but-not-when-an-object-becomes-a-list"),
        pytest.param({"a": None}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="object-for-null"),
    ],
)
def test_a_patch_gives_what_upstream_gives(value: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert merged(value, patch) == result


def test_a_patch_shares_nothing_with_its_result_and_can_be_applied_again() -> None:
    patch: dict[str, Any] = {"a": {"b": [{"c": 1}]}}
    first = merged({}, patch)
    first["a"]["b"][0]["c"] = 2
    assert merged({}, patch) == {"a": {"b": [{"c": 1}]}}


def test_a_patch_leaves_the_value_as_it_is_and_shares_with_the_result_what_it_does_not_name() -> None:
    value: dict[str, Any] = {"a": {"b": {"c": 1}, "d": {"e": 2}}, "f": [3]}
    result = merged(value, {"a": {"b": {"c": 4}}})
    assert value == {"a": {"b": {"c": 1}, "d": {"e": 2}}, "f": [3]}
    assert result == {"a": {"b": {"c": 4}, "d": {"e": 2}}, "f": [3]}
    assert result["a"]["d"] is value["a"]["d"]
    assert result["f"] is value["f"]
