"""What holds for every sequence of creates, updates and applies."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.apply import field_set
from apiserver.apply.applied_fields import applied_fields
from apiserver.apply.field_set import LEAF, FieldSet
from apiserver.apply.ownership import Ownership
from apiserver.meta.errors import APIError
from tests.apiserver.apply.specs import SPECS
from tests.apiserver.apply.things import API_VERSION, SCHEMA, SHAPE

Value = dict[str, Any]

OWNERSHIP = Ownership(SCHEMA, API_VERSION, "Thing")
MANAGERS = st.sampled_from(("m1", "m2", "m3"))
STEPS = st.lists(st.tuples(st.sampled_from(("apply", "force", "update")), MANAGERS, SPECS), min_size=1, max_size=6)


def thing(spec: Value) -> Value:
    return {"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def is_an_empty_container(path: field_set.Path, value: Value | None) -> bool:
    """Whether there is an empty container: a field like others as long as it is empty."""
    node: Any = value
    for element in path:
        if not isinstance(node, dict):
            return False
        node = node.get(element[2:])
    return node in ({}, [])


def owners(value: Value | None) -> dict[tuple[str, str], FieldSet]:
    entries = value["metadata"].get("managedFields", ()) if value is not None else ()
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def step(live: Value | None, how: str, manager: str, spec: Value) -> Value | None:
    """The object after a write; as it was when that is a conflict."""
    if how == "update":
        value = thing(deepcopy(spec))
        if live is not None:
            value["metadata"] = {**live["metadata"]}
        OWNERSHIP.update(live, value, manager, "T")
        return value
    try:
        return OWNERSHIP.apply(live, thing(spec), manager, "T", force=how == "force")
    except APIError as error:
        if error.code != 409:
            raise
        return live


def walked(steps: list[tuple[str, str, Value]]) -> Value | None:
    live: Value | None = None
    for how, manager, spec in steps:
        live = deepcopy(step(live, how, manager, spec))
    return live


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, MANAGERS, SPECS)
def test_applying_twice_is_applying_once(steps: list[tuple[str, str, Value]], manager: str, spec: Value) -> None:
    once = OWNERSHIP.apply(walked(steps), thing(spec), manager, "T", force=True)
    assert OWNERSHIP.apply(deepcopy(once), thing(spec), manager, "later", force=True) == once
    assert OWNERSHIP.apply(deepcopy(once), thing(spec), manager, "later") == once


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, MANAGERS, SPECS)
def test_what_is_applied_is_there_and_owned(steps: list[tuple[str, str, Value]], manager: str, spec: Value) -> None:
    value = OWNERSHIP.apply(walked(steps), thing(spec), manager, "T", force=True)
    wanted = applied_fields({"spec": spec}, SHAPE)
    missing = field_set.difference(wanted, applied_fields(value, SHAPE))
    assert all(is_an_empty_container(path, thing(spec)) for path in field_set.paths(missing))
    assert owners(value).get((manager, "Apply"), LEAF) == wanted


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, MANAGERS, SPECS)
def test_nobody_loses_a_field_to_an_apply_that_does_not_force(steps: list[tuple[str, str, Value]], manager: str, spec: Value) -> None:
    """But for what is inside of an item that the applier had applied and gives up: it goes with its item."""
    live = walked(steps)
    before, present = owners(live), applied_fields(live or {}, SHAPE)
    value = step(deepcopy(live), "apply", manager, spec)
    after, still = owners(value), applied_fields(value or {}, SHAPE)
    me = (manager, "Apply")
    given_up = field_set.difference(before.get(me, LEAF), after.get(me, LEAF))
    for owner, fields in before.items():
        if owner != me:
            gone = field_set.difference(field_set.intersection(fields, present), still)
            for path in field_set.paths(field_set.union(field_set.difference(fields, after.get(owner, LEAF)), gone)):
                went_with = any(field_set.has(given_up, path[:size]) for size in range(1, len(path)))
                assert went_with or (field_set.has(after.get(owner, LEAF), path) and is_an_empty_container(path, live))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_owners_together_own_all_that_was_set_through_them(steps: list[tuple[str, str, Value]]) -> None:
    live = walked(steps)
    together = LEAF
    for fields in owners(live).values():
        assert fields != LEAF
        assert field_set.canonical(fields) == fields
        together = field_set.union(together, fields)
    present = applied_fields({"spec": (live or {}).get("spec", {})}, SHAPE)
    # When nobody owns anything any more, nobody is tracked until somebody applies. A container that lost its parts is nobody's, if nobody
    # ever made it.
    assert not owners(live) or all(is_an_empty_container(path, live) for path in field_set.paths(field_set.difference(present, together)))
