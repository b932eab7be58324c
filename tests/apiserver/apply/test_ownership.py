"""Who owns what, through creates, updates and applies; expected values as a kube-apiserver 1.37 gives them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from apiserver.apply.managed_fields import Entry
from apiserver.apply.ownership import Ownership
from apiserver.meta.errors import APIError
from tests.apiserver.apply.things import API_VERSION, SCHEMA

OWNERSHIP = Ownership(SCHEMA, API_VERSION, "Thing", reset=frozenset(("status",)))
OF_STATUS = Ownership(SCHEMA, API_VERSION, "Thing", subresource="status", reset=frozenset(("metadata", "spec")))
T1, T2, T3 = (f"2026-01-01T00:00:0{second}Z" for second in (1, 2, 3))
Value = dict[str, Any]


def thing(spec: Value | None = None, status: Value | None = None, **metadata: Any) -> Value:
    value = {"apiVersion": API_VERSION, "kind": "Thing", "metadata": {"name": "t", **metadata}, "spec": spec, "status": status}
    return {name: member for name, member in value.items() if member is not None}


def created(spec: Value, manager: str = "maker", now: str = T1, **metadata: Any) -> Value:
    value = thing(spec, **metadata)
    OWNERSHIP.update(None, value, manager, now)
    return value


def updated(live: Value, manager: str, now: str, ownership: Ownership = OWNERSHIP, **changes: Any) -> Value:
    """The object with other members below spec (or status, or metadata)."""
    value = deepcopy(live)
    for name, change in changes.items():
        value[name] = {**value.get(name, {}), **change}
        value[name] = {key: member for key, member in value[name].items() if member is not None}
    ownership.update(live, value, manager, now)
    return value


def entries(value: Value) -> list[tuple[str, str, str, Value]]:
    """Of each entry: name, operation, time, fields."""
    found: list[Entry] = value["metadata"].get("managedFields", [])
    return [(entry["manager"], entry["operation"], entry.get("time", ""), entry["fieldsV1"]) for entry in found]


def fields_of(value: Value, manager: str, operation: str = "Apply") -> Value:
    [found] = [fields for name, how, _, fields in entries(value) if (name, how) == (manager, operation)]
    return found


def apply(live: Value | None, spec: Value, manager: str, now: str = T2, *, force: bool = False, **metadata: Any) -> Value:
    before = deepcopy(live)
    value = OWNERSHIP.apply(live, thing(spec, **metadata), manager, now, force=force)
    assert live == before
    return value


# Updates


def test_who_creates_owns_everything_down_to_the_leaves() -> None:
    value = created({"count": 1, "items": [{"name": "A", "tags": ["x"]}], "selector": {"k": "v"}, "numbers": [1]}, labels={"l": "1"})
    assert value["metadata"]["managedFields"] == [
        {
            "manager": "maker",
            "operation": "Update",
            "apiVersion": API_VERSION,
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
                "f:spec": {
                    ".": {},
                    "f:count": {},
                    "f:items": {".": {}, 'k:{"name":"A"}': {".": {}, "f:name": {}, "f:tags": {".": {}, 'v:"x"': {}}}},
                    "f:selector": {},
                    "f:numbers": {},
                },
            },
        }
    ]


def test_who_changes_a_field_takes_it_from_everybody_else() -> None:
    live = created({"count": 1, "note": "a"})
    value = updated(live, "other", T2, spec={"count": 2})
    assert entries(value) == [
        ("maker", "Update", T1, {"f:spec": {".": {}, "f:note": {}}}),
        ("other", "Update", T2, {"f:spec": {"f:count": {}}}),
    ]
    again = updated(value, "maker", T3, spec={"count": 3})
    assert entries(again) == [("maker", "Update", T3, {"f:spec": {".": {}, "f:count": {}, "f:note": {}}})]


def test_an_update_that_changes_nothing_changes_no_entry() -> None:
    """T038"""
    live = created({"count": 1})
    assert updated(live, "other", T2)["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_a_removed_field_belongs_to_nobody() -> None:
    live = created({"note": "a"}, labels={"l": "1"})
    value = updated(live, "other", T2, metadata={"labels": None})
    assert entries(value) == [("maker", "Update", T1, {"f:spec": {".": {}, "f:note": {}}})]


def test_status_is_not_owned_through_the_object_nor_the_object_through_status() -> None:
    """T040"""
    live = created({"count": 1})
    value = updated(live, "m", T2, status={"ready": 1})
    assert entries(value) == entries(live)
    value = updated(live, "m", T2, OF_STATUS, status={"ready": 1}, spec={"count": 5}, metadata={"labels": {"a": "b"}})
    assert entries(value) == [*entries(live), ("m", "Update", T2, {"f:status": {".": {}, "f:ready": {}}})]
    assert value["metadata"]["managedFields"][1]["subresource"] == "status"


def test_the_eleventh_updater_makes_the_oldest_ancient() -> None:
    value = created({"count": 1})
    for number in range(12):
        value = updated(value, f"u{number:02}", T2, metadata={"labels": {**value["metadata"].get("labels", {}), f"l{number}": "x"}})
    names = [name for name, *_ in entries(value)]
    assert names == ["ancient-changes", *(f"u{number:02}" for number in range(3, 12))]
    assert entries(value)[0][3] == {
        "f:metadata": {"f:labels": {".": {}, "f:l0": {}, "f:l1": {}, "f:l2": {}}},
        "f:spec": {".": {}, "f:count": {}},
    }


# Entries that a client writes

ENTRY = {"manager": "x", "operation": "Update", "apiVersion": API_VERSION, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:note": {}}}}


def test_one_empty_entry_forgets_all_owners_until_somebody_applies() -> None:
    live = created({"count": 1}, uid="u")
    value = updated(live, "m", T2, metadata={"managedFields": [{}]})
    assert entries(value) == []
    assert entries(updated(value, "m", T2, spec={"count": 2})) == []
    assert entries(apply(value, {"note": "b"}, "m", T3)) == [
        ("m", "Apply", T3, {"f:spec": {"f:note": {}}}),
        ("before-first-apply", "Update", T3, {"f:spec": {".": {}, "f:count": {}}}),
    ]


@pytest.mark.parametrize(
    "forged",
    [
        {**ENTRY, "operation": "Foo"},
        {name: member for name, member in ENTRY.items() if name != "fieldsType"},
        {**ENTRY, "apiVersion": ""},
        {**ENTRY, "fieldsV1": {"x": {}}},
        {**ENTRY, "fieldsV1": {"f:spec": []}},
    ],
)
def test_unsound_entries_do_not_count(forged: Entry) -> None:
    live = created({"count": 1})
    value = updated(live, "m", T2, metadata={"managedFields": [forged]}, spec={"count": 2})
    assert entries(value) == [("maker", "Update", T1, {"f:spec": {}}), ("m", "Update", T2, {"f:spec": {"f:count": {}}})]


def test_entries_of_another_version_leave_all_as_it_was() -> None:
    live = created({"count": 1})
    value = updated(live, "m", T2, metadata={"managedFields": [{**ENTRY, "apiVersion": "example.dev/v9"}]}, spec={"count": 2})
    assert entries(value) == entries(live)


def test_sound_entries_count_through_the_object_and_not_through_a_subresource() -> None:
    live = created({"count": 1})
    assert entries(updated(live, "m", T2, metadata={"managedFields": [ENTRY]})) == [("x", "Update", "", {"f:spec": {"f:note": {}}})]
    assert entries(updated(live, "m", T2, OF_STATUS, metadata={"managedFields": [ENTRY]})) == entries(live)


def test_forged_entries_of_a_new_object_lose_what_it_has() -> None:
    forged = {**ENTRY, "fieldsV1": {"f:spec": {"f:note": {}, "f:nope": {}}}}
    value = thing({"note": "a"}, managedFields=[forged])
    OWNERSHIP.update(None, value, "m", T1)
    assert entries(value) == [
        ("x", "Update", "", {"f:spec": {"f:nope": {}}}),
        ("m", "Update", T1, {"f:spec": {".": {}, "f:note": {}}}),
    ]


def test_an_object_that_cannot_be_taken_apart_keeps_its_entries() -> None:
    live = created({"count": 1})
    value = updated(live, "m", T2, spec={"items": [{"value": "no name"}]})
    assert entries(value) == entries(live)


# Apply


def test_who_applies_owns_what_he_mentions() -> None:
    value = apply(
        None, {"count": 2, "branch": {"leaf": {"left": "a"}, "size": 1}, "items": [{"name": "A"}], "options": {}}, "m", labels={"l": "1"}
    )
    assert entries(value) == [
        (
            "m",
            "Apply",
            T2,
            {
                "f:metadata": {"f:labels": {"f:l": {}}},
                "f:spec": {
                    "f:count": {},
                    "f:branch": {"f:leaf": {"f:left": {}}, "f:size": {}},
                    "f:items": {'k:{"name":"A"}': {".": {}, "f:name": {}}},
                    "f:options": {},
                },
            },
        )
    ]


def test_applying_the_same_again_changes_nothing() -> None:
    """T036"""
    spec = {"count": 2, "items": [{"name": "A", "value": "1"}], "options": {}, "flag": False, "numbers": [1], "selector": {"a": "b"}}
    first = apply(None, spec, "m", T1)
    assert apply(first, spec, "m", T2) == first
    second = apply(first, spec, "n", T2)
    assert [entry[0] for entry in entries(second)] == ["n", "m"]
    assert "time" not in second["metadata"]["managedFields"][0]
    assert apply(second, spec, "n", T3) == second == apply(second, spec, "m", T3)


def test_another_value_for_a_field_of_somebody_else_is_a_conflict() -> None:
    live = created({"count": 2, "note": "a", "items": [{"name": "B", "value": "1"}, {"name": "A", "value": "1"}]}, "x")
    live = updated(live, "y", T2, spec={"count": 7})
    with pytest.raises(APIError) as raised:
        apply(live, {"count": 5, "note": "z", "items": [{"name": "B", "value": "2"}, {"name": "A", "value": "2"}]}, "m")
    error = raised.value
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == (
        'Apply failed with 4 conflicts: conflicts with "x" using example.dev/v1:\n- .spec.note\n- .spec.items[name="A"].value\n'
        '- .spec.items[name="B"].value\nconflicts with "y" using example.dev/v1:\n- .spec.count'
    )
    assert error.details is not None
    assert error.details["causes"][0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "x" using example.dev/v1',
        "field": ".spec.note",
    }


def test_a_single_conflict_is_told_in_one_line() -> None:
    live = OF_STATUS.apply(thing({"count": 1}), thing(status={"ready": 1}), "m2", T1)
    with pytest.raises(APIError) as raised:
        OF_STATUS.apply(live, thing(status={"ready": 2}), "m3", T1)
    assert raised.value.message == 'Apply failed with 1 conflict: conflict with "m2" with subresource "status": .status.ready'


def test_force_takes_the_field_over() -> None:
    live = apply(None, {"count": 2, "note": "a"}, "m1", T1)
    value = apply(live, {"count": 3}, "m2", T2, force=True)
    assert value["spec"] == {"count": 3, "note": "a"}
    assert entries(value) == [("m1", "Apply", T1, {"f:spec": {"f:note": {}}}), ("m2", "Apply", T2, {"f:spec": {"f:count": {}}})]


def test_the_same_value_is_owned_together() -> None:
    live = apply(None, {"count": 2}, "m1", T1)
    value = apply(live, {"count": 2}, "m2", T2)
    assert {name for name, *_ in entries(value)} == {"m1", "m2"}
    with pytest.raises(APIError):
        apply(value, {"count": 3}, "m1", T3)


def test_what_is_given_up_goes_unless_somebody_else_owns_it() -> None:
    """T045"""
    items = [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]
    live = apply(None, {"count": 3, "items": items}, "m1", T1, labels={"a": "1"})
    live = apply(live, {"count": 3}, "m2", T2)
    live = apply(live, {"items": items[:1]}, "m1", T3)
    assert live["spec"] == {"count": 3, "items": items[:1]}
    assert "labels" not in live["metadata"]
    live = OWNERSHIP.apply(live, thing(), "m2", T3)
    assert live["spec"] == {"items": items[:1]}
    assert [name for name, *_ in entries(live)] == ["m1"]
    edited = updated(live, "kubectl-edit", T3, metadata={"labels": {"a": "2"}})
    assert apply(edited, {"items": items[:1]}, "m1", T3)["metadata"]["labels"] == {"a": "2"}


def test_parts_that_others_own_keep_the_item_that_they_are_in() -> None:
    live = apply(None, {"items": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]}, "m1", T1)
    live = apply(live, {"items": [{"name": "A", "tags": ["x"]}]}, "m2", T2)
    value = apply(live, {"note": "n"}, "m1", T3)
    assert value["spec"] == {"items": [{"name": "A", "tags": ["x"]}], "note": "n"}


def test_a_list_whose_items_all_go_is_empty_if_the_list_itself_is_owned() -> None:
    """A kube-apiserver makes it null for a custom resource, which then is no list: 422."""
    live = created({"options": {}, "items": []}, "x")
    live = apply(live, {"items": [{"name": "A"}], "options": {"k": "v"}}, "m1", T2)
    live = updated(live, "x", T2, spec={"note": "n"})
    value = apply(live, {"options": {}, "count": 1}, "m1", T3)
    assert value["spec"] == {"options": {}, "items": [], "note": "n", "count": 1}


def test_maps_with_free_keys_lose_the_keys_that_are_given_up() -> None:
    live = apply(None, {"groups": {"g": {"size": 1}, "h": {"size": 2}}}, "m1", T1)
    value = apply(live, {"groups": {"h": {"size": 2}}}, "m1", T2)
    assert value["spec"] == {"groups": {"h": {"size": 2}}}
    assert fields_of(value, "m1") == {"f:spec": {"f:groups": {"f:h": {".": {}, "f:size": {}}}}}


def test_an_item_is_known_by_both_keys_with_their_defaults() -> None:
    live = apply(None, {"ports": [{"port": 1, "name": "a"}, {"port": 1, "protocol": "UDP"}]}, "m1", T1)
    value = apply(live, {"ports": [{"port": 1, "protocol": "TCP", "name": "a"}]}, "m1", T2)
    assert value["spec"]["ports"] == [{"port": 1, "name": "a", "protocol": "TCP"}]
    assert list(fields_of(value, "m1")["f:spec"]["f:ports"]) == ['k:{"port":1,"protocol":"TCP"}']


def test_an_atomic_value_has_one_owner() -> None:
    live = apply(None, {"selector": {"a": "1"}, "numbers": [1]}, "m1", T1)
    with pytest.raises(APIError):
        apply(live, {"selector": {"b": "1"}}, "m2")
    value = apply(live, {"selector": {"b": "1"}}, "m2", T2, force=True)
    assert value["spec"]["selector"] == {"b": "1"}
    assert fields_of(value, "m1") == {"f:spec": {"f:numbers": {}}}


def test_what_has_become_atomic_since_is_owned_as_a_whole() -> None:
    live = apply(None, {"selector": {"a": "1"}}, "m1", T1)
    live["metadata"]["managedFields"][0]["fieldsV1"] = {"f:spec": {"f:selector": {"f:a": {}}}}
    value = apply(live, {"note": "n"}, "m2", T2)
    assert fields_of(value, "m1") == {"f:spec": {"f:selector": {}}}


def test_items_that_are_there_twice_can_still_be_applied_to() -> None:
    """T043"""
    live = created({"items": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]})
    assert fields_of(live, "maker", "Update")["f:spec"]["f:items"] == {".": {}, 'k:{"name":"A"}': {}}
    assert apply(live, {"note": "n"}, "m")["spec"]["items"] == live["spec"]["items"]
    assert apply(live, {"items": [{"name": "A", "value": "3"}]}, "m", force=True)["spec"]["items"] == [{"name": "A", "value": "3"}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"apiVersion": None}, "invalid object type: /, Kind=Thing"),
        ({"apiVersion": "example.dev/v2"}, "invalid object type: example.dev/v2, Kind=Thing"),
        ({"apiVersion": "v1"}, "invalid object type: /v1, Kind=Thing"),
        ({"apiVersion": "a/b/c"}, "invalid object type: /, Kind="),
        ({"kind": 1}, "invalid object type: example.dev/v1, Kind="),
        ({"metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
        ({"metadata": []}, "failed to create typed patch object (/; example.dev/v1, Kind=Thing): .metadata: expected map, got &{[]}"),
        (
            {"metadata": {"name": "t", "namespace": "n"}, "spec": {"timedThing": {}}},
            "failed to create typed patch object (n/t; example.dev/v1, Kind=Thing): .spec.timedThing: field not declared in schema",
        ),
    ],
)
def test_what_cannot_be_applied_is_a_bad_request(changes: Value, message: str) -> None:
    """T035, T039, T044"""
    with pytest.raises(APIError) as raised:
        OWNERSHIP.apply(None, {**thing({}), **changes}, "m", T1)
    assert (raised.value.code, raised.value.message) == (400, message)


# From client-side apply


def test_kubectl_takes_over_what_it_applied_on_the_client() -> None:
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    last = '{"apiVersion":"example.dev/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"count":2,"note":"a"}}'
    live = created({"count": 2, "note": "a"}, "kubectl-client-side-apply", annotations={annotation: last})
    with pytest.raises(APIError):
        apply(live, {"count": 5, "note": "a"}, "somebody")
    value = apply(live, {"count": 5, "note": "a"}, "kubectl")
    assert value["spec"] == {"count": 5, "note": "a"}
    text = '{"apiVersion":"example.dev/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"count":5,"note":"a"}}\n'
    assert value["metadata"]["annotations"][annotation] == text
    edited = updated(value, "other", T3, spec={"count": 9})
    with pytest.raises(APIError) as raised:
        apply(edited, {"count": 6, "note": "zz"}, "kubectl")
    assert raised.value.message == 'Apply failed with 1 conflict: conflict with "other" using example.dev/v1: .spec.count'
