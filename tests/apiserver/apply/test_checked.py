"""What cannot be applied, in the words of a kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apply.checked import checked
from apiserver.apply.typed import TypedError
from tests.apiserver.apply.things import SCHEMA


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"timedThing": {}}, ".spec.timedThing: field not declared in schema"),
        ({"items": [{"name": "A", "x": 1}]}, '.spec.items[name="A"].x: field not declared in schema'),
        ({"items": [{"name": "A"}, {"name": "A"}]}, '.spec.items: duplicate entries for key [name="A"]'),
        ({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}, '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]'),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"note": 1}, ".spec.note: expected string, got &value.valueUnstructured{Value:1}"),
        ({"count": "x"}, ".spec.count: expected numeric (int or float), got string"),
        ({"branch": [1, "b", {"c": True}]}, ".spec.branch: expected map, got &{[1 b map[c:true]]}"),
        ({"items": {"a": 1}}, ".spec.items: expected list, got &{map[a:1]}"),
        ({"items": [1]}, ".spec.items: element 0: associative list with keys may not have non-map elements"),
        ({"items": [None]}, ".spec.items: element 0: associative list with keys may not have a null element"),
        (
            {"items": [{"value": "x"}]},
            '.spec.items: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have '
            "default values for any key fields)",
        ),
        ({"tags": [{}]}, ".spec.tags: element 0: associative list without keys has an element that's a map type"),
        ({"tags": [None]}, ".spec.tags: element 0: associative list without keys has an element that's an explicit null"),
        ({"flag": "x"}, ".spec.flag: expected boolean, got &{x}"),
        (
            {"count": True, "note": {"a": [None, "x"]}},
            "errors:\n  .spec.count: expected numeric (int or float), got bool\n"
            "  .spec.note: expected string, got &value.valueUnstructured{Value:map[string]interface {}"
            '{"a":[]interface {}{interface {}(nil), "x"}}}',
        ),
    ],
)
def test_what_does_not_fit_is_told_with_its_path(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypedError) as raised:
        checked({"spec": spec}, SCHEMA)
    assert str(raised.value) == problem


def test_a_null_where_none_can_be_stored_says_nothing() -> None:
    """T029. A null means the default where there is one; in metadata it is the empty value."""
    given = {"metadata": {"labels": {"a": None}}, "spec": {"note": None, "count": None, "branch": {"size": None}, "extra": {"a": None}}}
    assert checked(given, SCHEMA) == {"metadata": {"labels": {"a": None}}, "spec": {"count": None, "branch": {}, "extra": {"a": None}}}


def test_whole_floats_become_integers_and_the_original_stays_untouched() -> None:
    given = {"spec": {"count": 2.0, "numbers": [1.0], "branch": {}}}
    copy = checked(given, SCHEMA)
    assert repr(copy) == repr({"spec": {"branch": {}, "count": 2, "numbers": [1]}})
    assert copy["spec"]["branch"] is not given["spec"]["branch"]
    assert repr(given) == repr({"spec": {"count": 2.0, "numbers": [1.0], "branch": {}}})
