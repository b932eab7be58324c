"""The rules of metadata and the wording of field errors, against what Kubernetes' own validators say of the same metadata."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.meta import field_errors, names, time, validation
from apiserver.meta.field_errors import FieldError, Struct
from openapi import rfc3339
from openapi.structural import Violation

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
    "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def told(found: list[FieldError]) -> list[str]:
    return [str(error) for error in found]


def of_new(**metadata: Any) -> list[str]:
    return told(validation.object_meta_errors({"name": "a", "namespace": "n", **metadata}, namespaced=True))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, []),
        ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        ({"name": "Bad_Name"}, [f'metadata.name: Invalid value: "Bad_Name": {SUBDOMAIN}']),
        ({"name": "a\n"}, [f'metadata.name: Invalid value: "a\\n": {SUBDOMAIN}']),
        ({"name": "."}, [f'metadata.name: Invalid value: ".": {SUBDOMAIN}']),
        ({"name": "a" * 254}, [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters']),
        ({"generateName": "a--"}, []),
        ({"generateName": "A-"}, []),
        ({"generateName": "Ab-"}, [f'metadata.generateName: Invalid value: "Ab-": {SUBDOMAIN}']),
        ({"namespace": ""}, ["metadata.namespace: Required value"]),
        ({"namespace": "x.y"}, ['metadata.namespace: Invalid value: "x.y": must not contain dots']),
        ({"namespace": "N"}, [f'metadata.namespace: Invalid value: "N": {LABEL}']),
        ({"generation": -1}, ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]),
        ({"labels": {"-a": "x"}}, [f'metadata.labels: Invalid value: "-a": name part {KEY}']),
        ({"labels": {"a": "-x"}}, [f'metadata.labels: Invalid value: "-x": {VALUE}']),
        (
            {"labels": {"b/": ""}},
            ['metadata.labels: Invalid value: "b/": name part must be non-empty', f'metadata.labels: Invalid value: "b/": name part {KEY}'],
        ),
        ({"labels": {"c": "z" * 64}}, [f'metadata.labels: Invalid value: "{"z" * 64}": must be no more than 63 bytes']),
        ({"annotations": {"UPPER.example.com/X": ""}}, []),
        (
            {"annotations": {"a/b/c": ""}},
            [
                f"metadata.annotations: Invalid value: \"a/b/c\": a valid label key {KEY} with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')"
            ],
        ),
        ({"annotations": {"a": "x" * 262143}}, []),
        ({"annotations": {"a": "é" * 131071}}, []),
        ({"annotations": {"a": "é" * 131072}}, ["metadata.annotations: Too long: may not be more than 262144 bytes"]),
        ({"annotations": {"a": "x" * 262144}}, ["metadata.annotations: Too long: may not be more than 262144 bytes"]),
        ({"finalizers": ["-"]}, [f'metadata.finalizers: Invalid value: "-": name part {KEY}']),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be '
                "both set"
            ],
        ),
        (
            {"managedFields": [{}, {"operation": "x", "fieldsType": "y", "manager": "z\x01", "subresource": "s" * 257}]},
            [
                "metadata.managedFields[0].operation: Required value: must not be empty",
                'metadata.managedFields[1].operation: Unsupported value: "x": supported values: "Apply", "Update"',
                'metadata.managedFields[1].fieldsType: Invalid value: "y": must be `FieldsV1`',
                'metadata.managedFields[1].manager: Invalid value: "z\\x01": invalid character U+0001 (at position 1)',
                "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes",
            ],
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_metadata_of_a_new_object(metadata: dict[str, Any], expected: list[str]) -> None:
    assert of_new(**metadata) == expected


def test_owner_references_are_complete_and_have_one_controller() -> None:
    empty = {"apiVersion": "", "kind": "", "name": "", "uid": ""}
    path = {"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u", "controller": True}
    event = {"uid": "u", "name": "n<", "kind": "Event", "apiVersion": "v1", "controller": True, "blockOwnerDeletion": False}
    shown = '{"apiVersion":"v1","kind":"Event","name":"n\\u003c","uid":"u","controller":true,"blockOwnerDeletion":false}'
    assert of_new(ownerReferences=[empty, path, event]) == [
        *(f"metadata.ownerReferences[0].{name}: Required value: must not be empty" for name in empty),
        'metadata.ownerReferences[1].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>',
        f"metadata.ownerReferences[2]: Invalid value: {shown}: /v1, Kind=Event is disallowed from being an owner",
        'metadata.ownerReferences: Invalid value: [{"apiVersion":"","kind":"","name":"","uid":""},'
        f'{{"apiVersion":"a/b/c","kind":"K","name":"n","uid":"u","controller":true}},{shown}]: '
        'Only one reference can have Controller set to true. Found "true" in references for K/n and Event/n<',
    ]


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    found = validation.object_meta_errors({"name": "a", "namespace": "n"}, namespaced=False)
    assert told(found) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_what_may_not_change_in_metadata_is_told() -> None:
    old = {"name": "a", "namespace": "n", "uid": "1", "generation": 2, "deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["x"]}
    new = {
        "name": "b",
        "namespace": "m",
        "uid": "2",
        "generation": 1,
        "finalizers": ["x", "b", "a"],
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
    }
    assert told(validation.object_meta_update_errors(new, old)) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        '[]string{"a", "b"}',
        'metadata.resourceVersion: Invalid value: "": must be specified for an update',
        "metadata.generation: Invalid value: 1: must not be decremented",
        'metadata.name: Invalid value: "b": field is immutable',
        'metadata.namespace: Invalid value: "m": field is immutable',
        'metadata.uid: Invalid value: "2": field is immutable',
        'metadata.creationTimestamp: Invalid value: "2020-01-01T00:00:00Z": field is immutable',
        "metadata.deletionTimestamp: Invalid value: null: field is immutable",
        "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
    ]
    assert validation.object_meta_update_errors({**old, "resourceVersion": "1"}, old) == []


def test_what_is_known_to_be_good_is_asked_for_the_change_alone() -> None:
    old = {"name": "a", "namespace": "n", "resourceVersion": "1"}
    new = {**old, "uid": "2", "labels": {"-a": "x"}}
    changed, label = 'metadata.uid: Invalid value: "2": field is immutable', f'metadata.labels: Invalid value: "-a": name part {KEY}'
    assert told(validation.object_meta_update_errors(new, old)) == [changed, label]
    assert told(validation.object_meta_update_errors(new, old, is_good=True)) == [changed]


@settings(deadline=None)
@given(key=st.text("aA0-._/", max_size=6) | st.builds(str.__mul__, st.sampled_from("aA."), st.integers(60, 66)).map("a/{}".format))
def test_a_key_is_good_if_its_parts_are(key: str) -> None:
    *prefixes, name = key.split("/")
    label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    is_prefix = len(prefixes) < 2 and all(re.fullmatch(rf"{label}(\.{label})*", prefix) for prefix in prefixes)
    is_name = len(name) <= 63 and re.fullmatch("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", name)
    assert (not validation.label_key_errors(key)) == bool(is_prefix and is_name)


def test_a_prefix_is_no_longer_than_a_domain() -> None:
    assert validation.label_key_errors(f"{'a' * 253}/b") == []
    assert validation.label_key_errors(f"{'a' * 254}/b") == ["prefix part must be no more than 253 bytes"]


def test_entries_that_others_write_are_good_as_well() -> None:
    entry = {"operation": "Update", "manager": "é" * 64, "subresource": "x" * 256}
    assert of_new(managedFields=[entry, {**entry, "fieldsType": "FieldsV1", "manager": ""}]) == []
    wrong = {"operation": "Apply", "fieldsType": "FieldsV1", "manager": "a\n", "subresource": "status"}
    found = 'metadata.managedFields[1].manager: Invalid value: "a\\n": invalid character U+000A (at position 1)'
    assert of_new(managedFields=[entry, wrong]) == [found]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a", []), ("..", ["may not be '..'"]), ("a/b", ["may not contain '/'"]), ("a/b%c", ["may not contain '/'", "may not contain '%'"])],
)
def test_a_name_is_one_segment_of_an_address(name: str, expected: list[str]) -> None:
    assert validation.path_segment_errors(name) == expected


def test_finalizers_without_a_domain_get_a_warning() -> None:
    ending = "to avoid accidental conflicts with other finalizer writers"
    assert validation.finalizer_warnings("example.com/x") == []
    assert validation.finalizer_warnings("orphan") == []
    assert validation.finalizer_warnings("x") == [f'metadata.finalizers: "x": prefer a domain-qualified finalizer name {ending}']
    assert validation.finalizer_warnings("x.y") == [
        f'metadata.finalizers: "x.y": prefer a domain-qualified finalizer name including a path (/) {ending}'
    ]


@pytest.mark.parametrize("name", ["a" * 100_000 + "_", "a." * 50_000, "a-" * 50_000])
def test_a_hostile_name_is_judged_in_linear_time(name: str) -> None:
    assert validation.dns1123_subdomain_errors(name)
    assert validation.label_key_errors(name)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (field_errors.required("a"), "a: Required value"),
        (field_errors.required("a", "why"), "a: Required value: why"),
        (field_errors.invalid("a", 'x"\n', "why"), 'a: Invalid value: "x\\"\\n": why'),
        (field_errors.invalid("a", True, "why"), "a: Invalid value: true: why"),
        (field_errors.invalid("a", 2000000.0, "why"), "a: Invalid value: 2e+06: why"),
        (field_errors.invalid("a", None, "why"), "a: Invalid value: null: why"),
        (field_errors.invalid("a", {"b": "<", "a": [1]}, "why"), 'a: Invalid value: {"a":[1],"b":"\\u003c"}: why'),
        (field_errors.invalid("a", Struct(b=1, a=2), "why"), 'a: Invalid value: {"b":1,"a":2}: why'),
        (field_errors.type_invalid("a", "string", "why"), 'a: Invalid value: "string": why'),
        (field_errors.not_supported("a", "x", ("y", 'z"')), 'a: Unsupported value: "x": supported values: "y", "z\\""'),
        (field_errors.duplicate("a", {"name": "x"}), 'a: Duplicate value: {"name":"x"}'),
        (field_errors.not_found("a", "x"), 'a: Not found: "x"'),
        (field_errors.forbidden("a", "why"), "a: Forbidden: why"),
        (field_errors.too_long("a", "xx", 1), "a: Too long: may not be more than 1 byte"),
        (field_errors.too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
    ],
    ids=str,
)
def test_each_error_has_its_wording(error: FieldError, text: str) -> None:
    assert str(error) == text
    assert error.to_cause().to_json() == {"reason": error.reason, "message": text[3:], "field": "a"}


def test_a_huge_value_is_cut() -> None:
    for value in ("x" * 10**6, ["x" * 10**6]):
        assert len(field_errors.invalid("a", value, "why").message) < 4200


def test_no_more_than_a_hundred_labels_are_told() -> None:
    many = {f"-{number}": "" for number in range(100_000)}
    assert len(of_new(labels=many, annotations=many, finalizers=list(many))) == 301  # one more says that the annotations are too large


def test_a_violation_of_a_schema_becomes_a_cause() -> None:
    violations = [
        Violation("required", "a"),
        Violation("not_supported", "a", "x", supported=("y",)),
        Violation("too_long", "a", "", "may not be more than 5 bytes"),
        Violation("too_many", "a", 2, "must have at most 1 item"),
    ]
    assert [(cause.reason, cause.message) for cause in map(field_errors.to_cause, violations)] == [
        ("FieldValueRequired", "Required value"),
        ("FieldValueNotSupported", 'Unsupported value: "x": supported values: "y"'),
        ("FieldValueTooLong", "Too long: may not be more than 5 bytes"),
        ("FieldValueTooMany", "Too many: 2: must have at most 1 item"),
    ]


def test_several_errors_are_one_text() -> None:
    one, two = field_errors.required("a"), field_errors.required("b")
    assert field_errors.aggregate([one, one]) == "a: Required value"
    assert field_errors.aggregate([one, two, one]) == "[a: Required value, b: Required value]"


def test_generated_names_fit_a_label_and_differ_t019() -> None:
    found = {names.generate_name("pool-") for _ in range(100)}
    assert len(found) > 90
    assert all(re.fullmatch("pool-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in found)
    assert len(names.generate_name("x" * 100)) == 63


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (10860, "3h1m"),
        (28800, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (180000, "2d2h"),
        (691200, "8d"),
        (63071999, "729d"),
        (63072000, "2y"),
        (70000000, "2y80d"),
        (252288000, "8y"),
        (500000000, "15y"),
    ],
)
def test_ages_are_short(seconds: float, text: str) -> None:
    assert time.human_duration(seconds) == text


def test_timestamps_are_utc_and_whole_seconds() -> None:
    moment = rfc3339.parse("2020-01-01T01:30:00.75+01:00")
    assert time.timestamp(moment) == "2020-01-01T00:30:00Z"
    assert rfc3339.parse(time.timestamp()).tzinfo is not None
