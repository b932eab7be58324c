"""What is accepted is good, by the walk of the schema and by the model: found with random values, most of them nearly good."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal, Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, RootModel, field_validator, model_validator

from apiserver.core import EnvVar, Volume
from apiserver.meta.quantity import Quantity
from openapi import validate
from openapi.accept import Acceptor, has_rules_of_change
from openapi.from_model import schema_of
from openapi.markers import Extension, Format, Immutable, Int32, Int64, IntOrString, ListMap, ListSet, Nullable, Time
from openapi.model import Model
from openapi.structural import JSON, Schema


class Port(Model):
    """An item that two fields name."""

    port: Int32
    protocol: Literal["TCP", "UDP"] = "TCP"


class Parcel(Model):
    """All that a model can say."""

    name: str = Field(min_length=1, max_length=3)
    code: Annotated[str, Field(pattern="^[a-z]+$")] | None = None
    digits: Annotated[str | None, Field(pattern=r"^\d$")] = None
    bracket: Annotated[str | None, Extension((("pattern", r"^[\][a]*$"),))] = None
    count: Int32 = Field(1, ge=0, le=10)
    large: Int64 | None = None
    above: Annotated[int, Field(gt=2)] | None = None
    half: Annotated[int | None, Extension((("minimum", 1.5),))] = None
    triple: Annotated[int, Field(multiple_of=3)] | None = None
    weight: float | None = None
    light: Annotated[float, Field(lt=10)] | None = None
    flag: bool | None = None
    mode: Literal["A", "B"] = "A"
    level: Literal[1, 2] | None = None
    on: Literal[True] | None = None
    start: IntOrString | None = None
    limits: dict[str, Quantity] | None = None
    when: Time | None = None
    address: Annotated[str, Format("ipv4")] | None = None
    note: Annotated[str | None, Nullable] = None
    words: Annotated[list[str] | None, ListSet] = None
    few: Annotated[list[str], Field(min_length=1, max_length=2)] | None = None
    labels: Annotated[dict[str, str], Field(max_length=2)] | None = None
    ports: Annotated[list[Port] | None, ListMap("port", "protocol")] = None
    env: Annotated[list[EnvVar] | None, ListMap("name")] = None
    volume: Volume | None = None
    anything: Any = None
    free: dict[str, Any] | None = None
    fixed: Annotated[str | None, Immutable] = None
    stays: Port = Field(default_factory=lambda: Port(port=1))


SCHEMA = schema_of(Parcel)
WALK = validate.compile(SCHEMA)
accept = Acceptor(Parcel, SCHEMA)

GOOD: dict[str, JSON] = {
    "name": "ab",
    "code": "ab",
    "digits": "3",
    "bracket": "a]",
    "count": 10,
    "large": 2**63 - 1,
    "above": 3,
    "half": 2,
    "triple": 9,
    "weight": 2.5,
    "light": 9,
    "flag": False,
    "mode": "B",
    "level": 2,
    "on": True,
    "start": "1",
    "limits": {"cpu": 2, "memory": "2Gi"},
    "when": "2026-01-01T00:00:00Z",
    "address": "10.0.0.1",
    "note": None,
    "words": ["a", "b"],
    "few": ["a"],
    "labels": {"a": "b"},
    "ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}],
    "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}, {"name": "B", "value": ""}],
    "volume": {"name": "a", "emptyDir": {"sizeLimit": "1Gi"}},
    "anything": [{"a": None}],
    "free": {"a": [1]},
    "fixed": "a",
    "stays": {"port": 1, "protocol": "TCP"},
}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2))
texts = st.sampled_from(
    ["", "a", "ab", "abcd", "A", "a\n", "3", "٣", "1m", "2Gi", "[", "a]", "10.0.0.1", "2026-01-01T00:00:00Z", "TCP", "name"]
)
numbers = st.sampled_from([-(2**31) - 1, -1, 0, 1, 2, 3, 10, 11, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30, 1.0, 2.5, 1e300])


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    """Values of the right type, mostly."""
    return st.one_of(*[_of_type(schema)] * 9, anything)


def _of_type(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.enum:
        return st.sampled_from(schema.enum)
    if schema.int_or_string:
        return numbers | texts
    match schema.type:
        case "string":
            return texts
        case "integer" | "number":
            return numbers
        case "boolean":
            return st.booleans()
        case "array" if schema.items is not None:
            return st.lists(values_of(schema.items), max_size=3)
        case "object" if schema.additional_properties is not None:
            return st.dictionaries(texts, values_of(schema.additional_properties), max_size=3)
        case "object" if schema.properties:
            members = {name: values_of(child) for name, child in schema.properties.items()}
            needed = {name: member for name, member in members.items() if name in schema.required}
            others = st.lists(st.sampled_from([name for name in members if name not in needed] or ["x"]), max_size=4, unique=True)
            return others.flatmap(lambda names: st.fixed_dictionaries(needed | {name: members.get(name, anything) for name in names}))
    return anything


members = {name: st.just(GOOD[name]) | values_of(child) for name, child in SCHEMA.properties.items()}
parcels = st.lists(st.sampled_from([*members]), max_size=4, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({"name": st.just("a"), **{name: members[name] for name in names}})
)


@settings(deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(value=parcels)
def test_what_is_accepted_is_good_and_what_pydantic_makes_of_it(value: JSON) -> None:
    accepted = accept(value)
    if accepted is not None:
        assert WALK(value) == []
        assert accepted == Parcel.model_validate(value)
        assert accepted.model_fields_set == Parcel.model_validate(value).model_fields_set


@pytest.mark.parametrize("name", SCHEMA.properties)
def test_a_good_value_of_each_field_is_accepted(name: str) -> None:
    value = {"name": "a", name: GOOD[name]}
    assert WALK(value) == []
    assert accept(value) == Parcel.model_validate(value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "abcd"},
        {},
        {"code": "a\n"},
        {"digits": "٣"},
        {"count": 11},
        {"count": 2**31},
        {"count": True},
        {"large": 2**63},
        {"above": 2},
        {"half": 0},
        {"triple": 4},
        {"light": 10},
        {"mode": "C"},
        {"level": 3},
        {"level": True},
        {"on": 1},
        {"limits": {"cpu": "x"}},
        {"when": "yesterday"},
        {"address": "x"},
        {"flag": None},
        {"words": ["a", "a"]},
        {"few": []},
        {"labels": {"a": "1", "b": "2", "c": "3"}},
        {"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "TCP"}]},
        {"env": [{"name": "A"}, {"name": "A"}]},
        {"volume": {"name": "a", "hostPath": {"path": "/", "type": "Door"}}},
    ],
    ids=str,
)
def test_what_is_wrong_is_not_accepted(wrong: dict[str, JSON]) -> None:
    value = {"name": "a", **wrong} if wrong else wrong
    assert WALK(value) != []
    assert accept(value) is None


def _no_x(value: str) -> str:
    if value == "x":
        raise ValueError("x")
    return value


class Color(Enum):
    """A type of Python's."""

    RED = "red"


class WithFieldValidator(Model):
    """Rules that no schema says."""

    a: str = ""

    @field_validator("a")
    @classmethod
    def _check(cls, value: str) -> str:
        return _no_x(value)


class WithModelValidator(Model):
    """Rules that no schema says."""

    a: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _no_x(self.a)
        return self


class WithAnnotatedValidator(Model):
    """Rules that no schema says."""

    a: Annotated[str, AfterValidator(_no_x)] = ""


class WithInit(Model):
    """A way of its own to come into being."""

    a: str = ""

    def __init__(self, **members: Any) -> None:
        super().__init__(**members)


class WithPrivate(Model):
    """More than its fields."""

    a: str = ""
    _seen: list[str] = PrivateAttr(default_factory=list)


class WithConfig(Model):
    """Changes what it is given."""

    model_config = ConfigDict(str_to_lower=True)
    a: str = ""


class WithEnum(Model):
    """A value that is no JSON."""

    a: Color = Color.RED


class Text(RootModel[str]):
    """No object."""


class WithOtherType(Model):
    """Marked as something else than it is."""

    a: Annotated[str, Extension((("type", "integer"),))] = ""


class Outer(Model):
    """Holds one of these."""

    inner: WithFieldValidator | None = None


VALIDATED = [WithFieldValidator, WithModelValidator, WithAnnotatedValidator, Outer]
OTHERS = [WithInit, WithPrivate, WithConfig, WithEnum, WithOtherType]


@pytest.mark.parametrize("model", [*VALIDATED, *OTHERS], ids=lambda model: model.__name__)
def test_of_a_model_that_does_more_nothing_is_accepted(model: type[BaseModel]) -> None:
    assert Acceptor(model, schema_of(model))({}) is None


def test_nor_of_one_that_is_no_object() -> None:
    assert Acceptor(Text, Schema(type="string"))("a") is None


def test_members_that_the_schema_leaves_out_are_looked_at_for_their_types() -> None:
    free = Acceptor(Parcel, Schema(type="object"))
    assert free({"name": "abcd", "count": 11}) is not None
    assert free({"name": 1}) is None


def test_what_was_made_ready_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = Acceptor(Parcel, SCHEMA)
    prepared.prepare()
    monkeypatch.delattr("openapi.accept._Rewriting")
    prepared.prepare()
    assert prepared({"name": "a"}) == Parcel(name="a")


def test_rules_of_change_are_found_wherever_they_are() -> None:
    fixed = Schema(type="string", immutable=True)
    item = Schema(type="object", properties={"a": fixed})
    assert has_rules_of_change(SCHEMA)
    assert has_rules_of_change(Schema(type="array", items=item))
    assert has_rules_of_change(Schema(type="object", additional_properties=item))
    assert not has_rules_of_change(schema_of(Volume))
