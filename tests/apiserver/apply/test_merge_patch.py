"""JSON merge patch as kube-apiserver's library does it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apply.merge_patch import merge


@pytest.mark.parametrize(
    ("value", "patch", "merged"),
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
def test_a_patch_gives_what_upstream_gives(value: dict[str, Any], patch: dict[str, Any], merged: dict[str, Any]) -> None:
    merge(value, patch)
    assert value == merged


def test_a_patch_shares_nothing_with_its_result_and_can_be_applied_again() -> None:
    patch: dict[str, Any] = {"a": {"b": [{"c": 1}]}}
    first: dict[str, Any] = {}
    merge(first, patch)
    first["a"]["b"][0]["c"] = 2
    second: dict[str, Any] = {}
    merge(second, patch)
    assert second == {"a": {"b": [{"c": 1}]}}
