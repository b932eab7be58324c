"""What is wrong with an object, to the letter: the expectations are what kube-apiserver's own functions said for the same schema."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openapi import normalize, validate
from openapi.structural import JSON, Schema, Violation

STRING = Schema(type="string")
ENV = Schema(type="object", required=("name",), properties={"name": STRING, "value": STRING})
PAIR = Schema(type="object", properties={"port": Schema(type="integer"), "protocol": STRING})
SPEC = Schema(
    type="object",
    required=("image", "mode"),
    properties={
        "replicas": Schema(type="integer", format="int32", minimum=0),
        "generation": Schema(type="integer", format="int64"),
        "small": Schema(type="integer", maximum=5),
        "number": Schema(type="number", maximum=1000000),
        "above": Schema(type="number", minimum=1.5, exclusive_minimum=True),
        "triple": Schema(type="integer", multiple_of=3),
        "image": Schema(type="string", min_length=2, max_length=5, pattern="^[a-z]+$"),
        "mode": Schema(type="string", enum=("A", "B"), default="A"),
        "time": Schema(type="string", format="date-time"),
        "enabled": Schema(type="boolean"),
        "port": Schema(int_or_string=True),
        "note": Schema(type="string", nullable=True),
        "labels": Schema(type="object", additional_properties=STRING, max_properties=2, min_properties=1),
        "limits": Schema(type="object", additional_properties=Schema(int_or_string=True, pattern="^[0-9]+m?$")),
        "words": Schema(type="array", items=STRING, list_type="set"),
        "few": Schema(type="array", items=STRING, max_items=1, min_items=1),
        "env": Schema(type="array", items=ENV, list_type="map", list_map_keys=("name",)),
        "ports": Schema(type="array", items=PAIR, list_type="map", list_map_keys=("port", "protocol")),
        "fixed": Schema(type="object", immutable=True, properties={"x": STRING}),
    },
)
VALIDATE = validate.compile(Schema(type="object", required=("spec",), properties={"spec": SPEC}))


def told(value: JSON, old: JSON = None, *, at: str = "") -> list[tuple[str, str, JSON, str]]:
    found = VALIDATE(value, at=at) if old is None else VALIDATE(value, old, at=at)
    return [(v.kind, v.path, v.value, v.detail or ", ".join(v.supported)) for v in found]


def thing(**spec: JSON) -> dict[str, Any]:
    return {"spec": {"image": "abc", "mode": "A", **spec}}


def invalid(path: str, value: JSON, text: str) -> tuple[str, str, JSON, str]:
    return ("invalid", path, value, text)


def wrong_type(path: str, got: str, wanted: str) -> tuple[str, str, JSON, str]:
    return ("type_invalid", path, got, f'{path} in body must be of type {wanted}: "{got}"')


def neither(path: str, got: str) -> list[tuple[str, str, JSON, str]]:
    """What is said of a value that is neither an integer nor a string."""
    any_of = ("invalid", "<nil>", "", f'"{path}" must validate at least one schema (anyOf)')
    return [wrong_type(path, got, "integer,string"), any_of, wrong_type(path, got, "integer")]


NOT_INT64 = "Checked value must be of type integer (default format)"
NOT_INT32 = ("invalid", "<nil>", "", "Checked value must be of type integer with format int32 in spec.replicas")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": "3"}, [wrong_type("spec.replicas", "string", "integer")]),
        ({"replicas": True}, [wrong_type("spec.replicas", "", "int32")]),
        ({"replicas": {}}, [wrong_type("spec.replicas", "", "int32")]),
        ({"replicas": 3.5}, [wrong_type("spec.replicas", "float64", "int32"), NOT_INT32]),
        ({"replicas": 3.0}, []),
        ({"replicas": -1}, [invalid("spec.replicas", -1, "spec.replicas in body should be greater than or equal to 0")]),
        ({"replicas": 2147483647}, []),
        ({"replicas": 2147483648}, [NOT_INT32]),
        ({"generation": 2**63 - 1}, []),
        ({"small": 9}, [invalid("spec.small", 9, "spec.small in body should be less than or equal to 5")]),
        ({"small": True}, [wrong_type("spec.small", "boolean", "integer")]),
        ({"number": 2000000}, [invalid("spec.number", 2000000, "spec.number in body should be less than or equal to 1000000")]),
        ({"number": 2000000.5}, [invalid("spec.number", 2000000.5, "spec.number in body should be less than or equal to 1e+06")]),
        ({"above": 1.5}, [invalid("spec.above", 1.5, "spec.above in body should be greater than 1.5")]),
        ({"above": 1}, [invalid("spec.above", 1, "spec.above in body should be greater than 1")]),
        ({"triple": 4}, [invalid("spec.triple", 4, "spec.triple in body should be a multiple of 3")]),
        ({"image": ""}, [invalid("spec.image", "", "spec.image in body should be at least 2 chars long")]),
        ({"image": "abcdef"}, [("too_long", "spec.image", "", "may not be more than 5 bytes")]),
        ({"image": "a1"}, [invalid("spec.image", "a1", "spec.image in body should match '^[a-z]+$'")]),
        ({"image": "ab\n"}, [invalid("spec.image", "ab\n", "spec.image in body should match '^[a-z]+$'")]),
        ({"image": 5}, [wrong_type("spec.image", "integer", "string")]),
        ({"mode": "C"}, [("not_supported", "spec.mode", "C", "A, B")]),
        ({"mode": 5}, [wrong_type("spec.mode", "integer", "string"), ("not_supported", "spec.mode", 5, "A, B")]),
        ({"time": "2020-01-01T00:00:00Z"}, []),
        ({"time": "2020-02-30T00:00:00Z"}, [wrong_type("spec.time", "2020-02-30T00:00:00Z", "date-time")]),
        ({"time": 5}, [wrong_type("spec.time", "int64", "date-time")]),
        ({"enabled": "true"}, [wrong_type("spec.enabled", "string", "boolean")]),
        ({"port": 1.5}, [*neither("spec.port", "number"), ("invalid", "<nil>", "", f"{NOT_INT64} in spec.port")]),
        ({"port": True}, neither("spec.port", "boolean")),
        ({"port": 3.0}, []),
        ({"note": None, "words": ["a", None]}, [wrong_type("spec.words[1]", "null", "string")]),
        ({"labels": {"a": 1}}, [wrong_type("spec.labels.a", "integer", "string")]),
        ({"labels": [1]}, [wrong_type("spec.labels", "array", "object")]),
        ({"labels": {}}, [invalid("spec.labels", 0, "spec.labels in body should have at least 1 properties")]),
        ({"labels": {"a": "", "b": "", "c": ""}}, [("too_many", "spec.labels", 3, "must have at most 2 items")]),
        (
            {"limits": {"cpu": "1 core", "memory": 1}},
            [invalid("spec.limits[cpu]", "1 core", "spec.limits[cpu] in body should match '^[0-9]+m?$'")],
        ),
        ({"words": ["a", "a", "b", "b", "a"]}, [("duplicate", "spec.words[1]", "a", ""), ("duplicate", "spec.words[3]", "b", "")]),
        ({"few": ["a", "b"]}, [("too_many", "spec.few", 2, "must have at most 1 item")]),
        ({"few": []}, [invalid("spec.few", 0, "spec.few in body should have at least 1 items")]),
        ({"env": "x"}, [wrong_type("spec.env", "string", "array")]),
        (
            {"env": [{"name": "A"}, {"name": "A"}, {}]},
            [("required", "spec.env[2].name", "", ""), ("duplicate", "spec.env[1]", {"name": "A"}, "")],
        ),
        (
            {"env": [{"name": "A"}, "x"]},
            [wrong_type("spec.env[1]", "string", "object"), invalid("spec.env[1]", "x", "must be an object for an array of list-type map")],
        ),
        ({"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]}, []),
        ({"ports": [{"port": 1}, {"port": 1}]}, [("duplicate", "spec.ports[1]", {"port": 1}, "")]),
        ({"ports": [{"port": 1}, {"port": True}]}, [wrong_type("spec.ports[1].port", "boolean", "integer")]),
    ],
    ids=str,
)
def test_a_wrong_value_is_told_as_kube_apiserver_tells_it(spec: dict[str, Any], expected: list[tuple[str, str, JSON, str]]) -> None:
    assert told(thing(**spec)) == expected


def test_an_array_where_a_formatted_string_belongs_is_refused() -> None:
    """kube-apiserver lets it pass, which helps nobody."""
    assert told(thing(time=["x"])) == [wrong_type("spec.time", "array", "string")]


def test_problems_come_in_the_order_of_the_schema_and_required_ones_last() -> None:
    assert [v.path for v in VALIDATE({"spec": {"enabled": 1, "small": "x", "replicas": "x"}})] == [
        "spec.replicas",
        "spec.small",
        "spec.enabled",
        "spec.image",
        "spec.mode",
    ]


def test_the_status_subresource_is_named_in_the_field_and_not_in_the_text() -> None:
    check = validate.compile(SPEC)
    assert check({"mode": "A", "small": "x"}, at="status") == [
        Violation("type_invalid", "status.small", "string", 'small in body must be of type integer: "string"'),
        Violation("required", "status.image", ""),
    ]


def test_what_did_not_change_is_not_told_again() -> None:
    old = thing(small=9, mode="C", env=[{"name": "A", "value": 5}], words=["a", "a"])
    assert told(copy.deepcopy(old), old) == []
    new = copy.deepcopy(old)
    new["spec"] |= {"replicas": "x", "words": ["a", "a", "b"]}
    assert told(new, old) == [wrong_type("spec.replicas", "string", "integer")]


def test_elements_of_a_list_map_are_compared_by_their_key() -> None:
    old = thing(env=[{"name": "A", "value": 5}, {"name": "B"}])
    assert told(thing(env=[{"name": "C"}, {"name": "A", "value": 5}]), old) == []
    assert told(thing(env=[{"name": "C", "value": 5}]), old) == [wrong_type("spec.env[0].value", "integer", "string")]


def test_elements_without_a_key_count_as_new() -> None:
    old = thing(env=[{"value": "x"}], words=["a"])
    assert told(thing(env=[{"value": "x"}], words=["b"]), old) == [("required", "spec.env[0].name", "", "")]


def test_one_is_not_true_when_old_and_new_are_compared() -> None:
    assert told(thing(small=True), thing(small=1)) == [wrong_type("spec.small", "boolean", "integer")]


def test_duplicates_are_told_on_update_unless_the_old_object_had_some() -> None:
    assert told(thing(words=["a", "a"]), thing(words=["a"])) == [("duplicate", "spec.words[1]", "a", "")]
    assert told(thing(words=["a", "a"]), thing(words=["b", "b"])) == []


@pytest.mark.parametrize("new", [{"fixed": {"x": "b"}}, {"fixed": {}}, {}], ids=str)
def test_an_immutable_value_may_not_change_once_it_is_set(new: dict[str, Any]) -> None:
    assert told(thing(**new), thing(fixed={"x": "a"})) == [invalid("spec.fixed", new.get("fixed"), "field is immutable")]
    assert told(thing(fixed={"x": "a"}), thing()) == []
    assert told(thing(fixed={"x": "a"}), thing(fixed={"x": "a"})) == []


def test_about_a_hundred_mistakes_of_one_list_or_map_are_told() -> None:
    many = thing(words=[1] * 100_000, labels={str(number): 1 for number in range(100_000)}, few=["a", "a"] * 50_000)
    assert 200 <= len(VALIDATE(many)) <= 303


class Untouchable(dict[str, Any]):
    def items(self) -> Any:
        raise AssertionError("an identical subtree was walked")


def test_identical_subtrees_are_not_walked() -> None:
    fixed = Untouchable(x="a")
    assert told(thing(fixed=fixed, replicas=1), thing(fixed=fixed, replicas=2)) == []


@pytest.mark.parametrize("pattern", [r"\p{L}", "[[:alpha:]]", "(", r"\Qa\E"])
def test_a_pattern_that_python_reads_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        validate.compile(Schema(type="string", pattern=pattern))


def test_dollar_in_a_class_is_a_dollar_and_digits_are_ascii() -> None:
    check = validate.compile(Schema(type="string", pattern=r"^[\d$]+$"))
    assert check("1$") == []
    assert check("٣") != []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "value", "port", "protocol", "x"]), inner, max_size=4)
    ),
    max_leaves=20,
)
quietly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quietly
@given(spec=st.dictionaries(st.sampled_from([*SPEC.properties, "unknown"]), json_values, max_size=8))
def test_no_json_value_makes_validation_fail(spec: dict[str, Any]) -> None:
    value = {"spec": spec}
    VALIDATE(value)
    normalize.compile(Schema(type="object", properties={"spec": SPEC}))(value)
    VALIDATE(value)
    VALIDATE(copy.deepcopy(value), value)
    assert VALIDATE(value, value) == []


@quietly
@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_a_value_of_any_type_gets_an_answer(value: JSON) -> None:
    for schema in (SPEC, ENV, STRING, Schema(), Schema(type="array", list_type="map", list_map_keys=("a",), items=ENV)):
        validate.compile(schema)(value, value)
        validate.compile(schema)(value)
