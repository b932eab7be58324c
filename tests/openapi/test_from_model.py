"""A model says its structural schema: types, marks, constraints, defaults and descriptions."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field

from openapi.from_model import schema_of
from openapi.markers import (
    AtomicList,
    AtomicMap,
    EmbeddedResource,
    Extension,
    Immutable,
    Int32,
    Int64,
    IntOrString,
    ListMap,
    ListSet,
    Nullable,
    PreserveUnknownFields,
    Time,
)
from openapi.model import AtomicModel, Model
from openapi.structural import ABSENT, Schema


class Color(Enum):
    RED = "Red"
    BLUE = "Blue"


class Port(Model):
    """A port
    of a service.

    Second paragraph.
    """

    name: str | None = None
    number: Int32
    """Where it listens."""


class Reference(AtomicModel):
    """Names something."""

    name: str


class Everything(Model):
    """All that a schema can say."""

    text: str
    short: Annotated[str, Field(min_length=1, max_length=3, pattern="^a")]
    count: Int32 = Field(1, ge=0, le=9)
    above: Int64 | None = Field(None, gt=0, lt=100, multiple_of=5)
    ratio: float | None = None
    flag: bool = False
    when: Time | None = None
    port: IntOrString | None = None
    color: Color | None = None
    mode: Literal["A", "B"] | None = None
    ports: Annotated[list[Port] | None, ListMap("number")] = None
    """The ports, in any order
    that pleases."""
    named_ports: Annotated[list[Port] | None, ListMap("name")] = None
    names: Annotated[list[str], ListSet, Field(min_length=1, max_length=2)] = Field(default_factory=list)
    args: Annotated[list[str] | None, AtomicList] = None
    labels: dict[str, str] | None = Field(None, min_length=1, max_length=4)
    selector: Annotated[dict[str, str] | None, AtomicMap] = None
    anything: Any = None
    free: dict[str, Any] | None = None
    kept: Annotated[Port | None, PreserveUnknownFields] = None
    embedded: Annotated[dict[str, Any] | None, EmbeddedResource] = None
    fixed: Annotated[str | None, Immutable] = None
    null: Annotated[str | None, Nullable] = None
    first: Reference | None = None
    """The first one."""
    second: Reference | None = None
    nested: Port = Field(default_factory=lambda: Port(number=80))
    volume_id: str | None = Field(None, alias="volumeID")


@pytest.fixture(scope="module")
def schema() -> Schema:
    return schema_of(Everything)


def test_names_on_the_wire_are_camel_case_or_the_alias(schema: Schema) -> None:
    assert {"namedPorts", "volumeID"} <= set(schema.properties)


def test_fields_without_a_default_are_required(schema: Schema) -> None:
    assert schema.required == ("text", "short")


def test_lengths_and_patterns_of_strings(schema: Schema) -> None:
    short = schema.properties["short"]
    assert (short.type, short.min_length, short.max_length, short.pattern) == ("string", 1, 3, "^a")


def test_bounds_and_formats_of_numbers(schema: Schema) -> None:
    count, above = schema.properties["count"], schema.properties["above"]
    assert (count.type, count.format, count.minimum, count.maximum, count.exclusive_minimum) == ("integer", "int32", 0, 9, False)
    assert (above.format, above.minimum, above.exclusive_minimum, above.maximum, above.exclusive_maximum) == ("int64", 0, True, 100, True)
    assert above.multiple_of == 5
    assert schema.properties["ratio"].type == "number"


def test_defaults_are_written_as_json_and_none_is_no_default(schema: Schema) -> None:
    defaults = {name: value.default for name, value in schema.properties.items() if value.default is not ABSENT}
    assert defaults == {"count": 1, "flag": False, "names": [], "null": None, "nested": {"number": 80}}


def test_only_the_marker_makes_a_value_nullable(schema: Schema) -> None:
    assert [name for name, value in schema.properties.items() if value.nullable] == ["null"]


def test_enums_from_literals_and_from_classes(schema: Schema) -> None:
    assert schema.properties["mode"].enum == ("A", "B")
    assert schema.properties["color"].enum == ("Red", "Blue")


def test_int_or_string_has_no_type(schema: Schema) -> None:
    assert schema.properties["port"] == Schema(int_or_string=True)


def test_list_markers(schema: Schema) -> None:
    ports, names, args = schema.properties["ports"], schema.properties["names"], schema.properties["args"]
    assert (ports.list_type, ports.list_map_keys, ports.list_type_declared) == ("map", ("number",), True)
    assert (names.list_type, names.min_items, names.max_items) == ("set", 1, 2)
    assert (args.list_type, args.list_type_declared) == ("atomic", True)


def test_a_list_map_key_that_may_be_left_out_gets_the_empty_string_as_default(schema: Schema) -> None:
    named, numbered = schema.properties["namedPorts"].items, schema.properties["ports"].items
    assert named is not None
    assert numbered is not None
    assert named.properties["name"].default == ""
    assert numbered.properties["name"].default is ABSENT


def test_map_markers_on_fields_and_on_models(schema: Schema) -> None:
    assert (schema.properties["selector"].map_type, schema.properties["selector"].map_type_declared) == ("atomic", True)
    assert (schema.properties["labels"].map_type, schema.properties["labels"].map_type_declared) == ("granular", False)
    assert (schema.properties["labels"].min_properties, schema.properties["labels"].max_properties) == (1, 4)
    assert schema.properties["second"].map_type == "atomic"


def test_unknown_fields_are_kept_where_the_model_says_so(schema: Schema) -> None:
    kept = {name for name, value in schema.properties.items() if value.preserve_unknown_fields}
    assert kept == {"anything", "free", "kept", "embedded"}
    assert schema.properties["embedded"].embedded_resource
    assert schema.properties["anything"].type == ""


def test_immutable(schema: Schema) -> None:
    assert [name for name, value in schema.properties.items() if value.immutable] == ["fixed"]


def test_the_description_of_a_field_wins_over_that_of_its_type(schema: Schema) -> None:
    assert schema.description == "All that a schema can say."
    assert schema.properties["ports"].description == "The ports, in any order that pleases."
    assert schema.properties["first"].description == "The first one."
    assert schema.properties["second"].description == "Names something."


def test_lines_of_a_paragraph_are_joined_and_paragraphs_kept(schema: Schema) -> None:
    assert schema.properties["nested"].description == "A port of a service.\n\nSecond paragraph."


class Recursive(Model):
    again: Recursive | None = None


class Torn(Model):
    value: int | bool


class Mixed(Model):
    value: Literal["a", 1]


class WrongKeys(Model):
    values: Annotated[list[Port], ListMap("nope")]


class OptionalNumberKey(Model):
    class Item(Model):
        number: Int32 | None = None

    values: Annotated[list[Item], ListMap("number")]


class NumberedMap(Model):
    values: dict[int, str]


class Strange(Model):
    value: set[str]


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Recursive, "Recursive.again: Recursive contains itself"),
        (Torn, "Torn.value: a union"),
        (Mixed, "Mixed.value: the values of an enum"),
        (WrongKeys, "WrongKeys.values: a list map needs elements"),
        (OptionalNumberKey, "OptionalNumberKey.values: the key number of a list map must be required"),
        (NumberedMap, "NumberedMap.values: the keys of a map are strings"),
        (Strange, "Strange.value"),
    ],
)
def test_what_a_structural_schema_cannot_say_is_refused_with_its_path(model: type[Model], text: str) -> None:
    with pytest.raises(TypeError, match=text.replace(".", r"\.")):
        schema_of(model)


def test_a_list_map_without_keys_is_refused() -> None:
    with pytest.raises(TypeError, match="keys"):
        ListMap()


def test_authors_can_make_further_markers() -> None:
    class Own(Model):
        markers: ClassVar[tuple[Extension, ...]] = (Extension((("max_properties", 1),)),)

    assert schema_of(Own).max_properties == 1


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    assert Port.model_validate({"number": 3.0}).number == 3
    with pytest.raises(ValueError, match="number"):
        Port.model_validate({"number": 3.5})
    with pytest.raises(ValueError, match="number"):
        Port.model_validate({"number": True})
