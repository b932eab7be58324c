"""What the compiled walk over a value says of it."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.apply import shape
from apiserver.apply.field_set import LEAF, SELF, FieldSet
from apiserver.apply.typed import TypedError, is_granular, item_elements, item_schema, known_schema
from openapi.structural import Schema
from tests.apiserver.apply.specs import SPECS
from tests.apiserver.apply.things import SCHEMA

SPEC_SCHEMA = SCHEMA.properties["spec"]
SHAPE = shape.compile(SPEC_SCHEMA)

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False), st.sampled_from(("", "A", "B", 'a"b', "é")))
KEYS = st.sampled_from((*SPEC_SCHEMA.properties, "name", "port", "protocol", "value", "leaf", "left", "nobody knows"))
ANYTHING = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)))


def everything(value: Any, schema: Schema) -> FieldSet:
    """The definition: a value itself and, when it is taken apart, all of its parts; of duplicates, only that they are there."""
    if not is_granular(value, schema):
        return LEAF
    fields: FieldSet = {SELF: LEAF}
    if isinstance(value, dict):
        fields |= {f"f:{name}": everything(item, known_schema(schema, name)) for name, item in value.items()}
    else:
        for element, item in zip(item_elements(value, schema), value, strict=True):
            fields[element] = LEAF if element in fields else everything(item, item_schema(schema))
    return fields


def outcome(walk: Any, value: Any) -> FieldSet | str:
    try:
        fields: FieldSet = walk(value)
    except TypedError as error:
        return str(error)
    return fields


LISTS = st.lists(ANYTHING, max_size=3)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(SPECS, ANYTHING, st.fixed_dictionaries({"items": LISTS, "ports": LISTS})))
def test_the_compiled_walk_is_what_the_schema_says(value: Any) -> None:
    assert outcome(SHAPE.everything, value) == outcome(lambda value: everything(value, SPEC_SCHEMA), value)


def test_objects_with_the_same_members_do_not_get_to_see_each_others_parts() -> None:
    one, other = {"options": {"a": "1"}, "tags": ["x"]}, {"options": {"b": "1"}, "tags": ["y"]}
    first = SHAPE.everything(one)
    assert SHAPE.everything(other) == {SELF: {}, "f:options": {SELF: {}, "f:b": {}}, "f:tags": {SELF: {}, 'v:"y"': {}}}
    assert first == SHAPE.everything(one) == everything(one, SPEC_SCHEMA)


def test_any_number_of_free_keys_can_follow_each_other() -> None:
    """More than are remembered."""
    for count in range(1, 60):
        value = {"options": {f"{count}-{index}": "x" for index in range(count)}}
        assert SHAPE.everything(value) == everything(value, SPEC_SCHEMA)
