"""What differs between two states of an object."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apply import field_set
from apiserver.apply.compare import compare
from tests.apiserver.apply.things import SHAPE

TWICE = [{"name": "A"}, {"name": "A"}]
"""What no schema allows, and older versions may have stored."""


def differences(old: dict[str, Any], new: dict[str, Any]) -> tuple[list[str], ...]:
    """The paths below .spec that are removed, modified and added."""
    sets = compare({"spec": old}, {"spec": new}, SHAPE)
    return tuple([field_set.path_text(path).removeprefix(".spec") for path in field_set.paths(fields)] for fields in sets)


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        ({"count": 1}, {"count": 1}, [], [], []),
        ({"count": 1}, {"count": 2}, [], [".count"], []),
        ({"count": 1}, {"count": 1.0}, [], [], []),
        ({"note": "a"}, {"flag": False}, [".note"], [], [".flag"]),
        ({"options": {"a": "1"}}, {"options": {"b": "1"}}, [".options.a"], [], [".options.b"]),
        ({}, {"options": {}}, [], [], [".options"]),
        ({"options": {}}, {"options": {"a": "1"}}, [], [], [".options.a"]),
        ({}, {"options": {"a": "1"}}, [], [], [".options", ".options.a"]),
        ({"options": {"a": "1"}}, {"options": {}}, [".options.a"], [], []),
        ({"selector": {"a": "1"}}, {"selector": {"b": "1"}}, [], [".selector"], []),
        ({"numbers": [1]}, {"numbers": [1, 2]}, [], [".numbers"], []),
        ({"tags": ["a", "b"]}, {"tags": ["b", "c", "a"]}, [], [], ['.tags[="c"]']),
        ({"items": [{"name": "A"}]}, {"items": []}, ['.items[name="A"]', '.items[name="A"].name'], [], []),
        ({"items": [{"name": "A", "value": "1"}]}, {"items": [{"name": "A", "value": "2"}]}, [], ['.items[name="A"].value'], []),
        ({"ports": [{"port": 1, "protocol": "TCP"}]}, {"ports": [{"port": 1}]}, ['.ports[port=1,protocol="TCP"].protocol'], [], []),
        ({"extra": {"a": True}}, {"extra": {"a": 1}}, [], [".extra.a"], []),
        ({"extra": {"a": [True]}}, {"extra": {"a": [1]}}, [], [".extra.a"], []),
        ({"extra": {"a": "x"}}, {"extra": {"a": {"b": 1}}}, [], [".extra.a"], [".extra.a.b"]),
        ({"extra": {"a": {"b": 1}}}, {"extra": {"a": "x"}}, [".extra.a.b"], [".extra.a"], []),
        ({"options": None}, {"options": {"a": "1"}}, [], [], [".options.a"]),
        ({"options": None}, {"options": {}}, [], [".options"], []),
        ({"items": TWICE}, {"items": TWICE[:]}, [], [], []),
        ({"items": TWICE}, {"items": TWICE[:1]}, ['.items[name="A"]'], [], ['.items[name="A"]', '.items[name="A"].name']),
        ({"items": TWICE[:1]}, {"items": TWICE}, ['.items[name="A"]', '.items[name="A"].name'], [], ['.items[name="A"]']),
    ],
)
def test_differences(old: dict[str, Any], new: dict[str, Any], removed: list[str], modified: list[str], added: list[str]) -> None:
    assert differences(old, new) == (removed, modified, added)


def test_the_same_object_differs_in_nothing() -> None:
    value = {"spec": {"items": [{"no": "key"}]}}
    assert not any(compare(value, {"spec": value["spec"]}, SHAPE))
