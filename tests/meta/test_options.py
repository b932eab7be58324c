"""Options of requests, against what Kubernetes' own decoders and validators say of the same query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from apiserver.meta import options
from apiserver.meta.errors import APIError


def query(text: str) -> dict[str, list[str]]:
    return parse_qs(text, keep_blank_values=True)


def refusal(call: Callable[[], Any]) -> APIError:
    with pytest.raises(APIError) as caught:
        call()
    return caught.value


def causes(call: Callable[[], Any]) -> list[tuple[str, str, str]]:
    error = refusal(call)
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.details is not None
    return [(cause["field"], cause["reason"], cause["message"]) for cause in error.details["causes"]]


def test_no_query_gives_the_defaults() -> None:
    assert options.list_options({}) == options.ListOptions()
    assert options.create_options({}) == options.WriteOptions(dry_run=False, field_manager="", field_validation="Warn")
    assert options.delete_options({}) == options.DeleteOptions()


def test_a_whole_list_query_is_read() -> None:
    found = options.list_options(query("labelSelector=a&fieldSelector=metadata.name=x&resourceVersion=5&limit=3&timeoutSeconds=7&limit=9"))
    assert (str(found.label_selector), str(found.field_selector)) == ("a", "metadata.name=x")
    assert (found.resource_version, found.limit, found.timeout_seconds) == ("5", 3, 7)


@pytest.mark.parametrize(
    ("text", "value"),
    [("", False), ("watch", True), ("watch=", True), ("watch=true", True), ("watch=no", True), ("watch=0", False), ("watch=FALSE", False)],
)
def test_a_boolean_that_is_there_is_true_unless_it_says_otherwise(text: str, value: bool) -> None:
    assert options.list_options(query(text)).watch is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limit=", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("limit=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ("limit=99999999999999999999", 'strconv.ParseInt: parsing "99999999999999999999": value out of range'),
        ("limit=x&timeoutSeconds=y", 'strconv.ParseInt: parsing "y": invalid syntax'),
        ("labelSelector=a b&limit=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("labelSelector=a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("fieldSelector=a", "invalid selector: 'a'; can't understand 'a'"),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(text: str, message: str) -> None:
    error = refusal(lambda: options.list_options(query(text)))
    assert (error.code, error.reason, error.message) == (400, "BadRequest", message)


MATCH, FORBIDDEN, UNSUPPORTED = "resourceVersionMatch", "FieldValueForbidden", "FieldValueNotSupported"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "resourceVersionMatch=Exact",
            [(MATCH, FORBIDDEN, "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")],
        ),
        (
            "resourceVersion=5&resourceVersionMatch=x",
            [(MATCH, UNSUPPORTED, 'Unsupported value: "x": supported values: "Exact", "NotOlderThan", ""')],
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            [(MATCH, FORBIDDEN, 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"')],
        ),
        (
            "resourceVersion=5&resourceVersionMatch=Exact&continue=x",
            [(MATCH, FORBIDDEN, "Forbidden: resourceVersionMatch is forbidden when continue is provided")],
        ),
        ("sendInitialEvents", [("sendInitialEvents", FORBIDDEN, "Forbidden: sendInitialEvents is forbidden for list")]),
        (
            "watch=1&sendInitialEvents=true",
            [(MATCH, FORBIDDEN, "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")],
        ),
        (
            "watch=1&resourceVersionMatch=Exact",
            [
                (MATCH, FORBIDDEN, "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
                (MATCH, UNSUPPORTED, 'Unsupported value: "Exact": supported values: "NotOlderThan"'),
            ],
        ),
    ],
)
def test_list_options_that_do_not_go_together_are_invalid(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert causes(lambda: options.list_options(query(text))) == expected


def test_initial_events_are_kept_as_given() -> None:
    found = options.list_options(query("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"))
    assert (found.send_initial_events, found.resource_version_match) == (False, "NotOlderThan")
    assert options.list_options(query("watch=1")).send_initial_events is None


WRITES: list[Callable[[dict[str, list[str]]], Any]] = [
    options.create_options,
    options.update_options,
    lambda found: options.patch_options(found, apply=False),
    options.delete_options,
]


@pytest.mark.parametrize("read", WRITES, ids=["create", "update", "patch", "delete"])
@pytest.mark.parametrize(("values", "shown"), [("true", '["true"]'), ("", '[""]'), ("All&dryRun=x", '["All","x"]')])
def test_a_dry_run_is_all_or_nothing_t014(read: Callable[[dict[str, list[str]]], Any], values: str, shown: str) -> None:
    expected = [("dryRun", UNSUPPORTED, f'Unsupported value: {shown}: supported values: "All"')]
    assert causes(lambda: read(query(f"dryRun={values}"))) == expected
    assert read(query("dryRun=All&dryRun=All")).dry_run
    assert not read(query("pretty=true")).dry_run


def test_field_validation_is_one_of_three_t015() -> None:
    assert causes(lambda: options.create_options(query("fieldValidation=Bogus"))) == [
        ("fieldValidation", UNSUPPORTED, 'Unsupported value: "Bogus": supported values: "", "Ignore", "Strict", "Warn"')
    ]
    assert options.create_options(query("fieldValidation=")).field_validation == "Warn"
    assert options.create_options(query("fieldValidation=Strict&fieldValidation=Warn")).field_validation == "Strict"


def test_a_field_manager_is_short_and_printable() -> None:
    assert options.create_options({"fieldManager": ["x" * 128]}).field_manager == "x" * 128
    assert causes(lambda: options.create_options({"fieldManager": ["x" * 129]})) == [
        ("fieldManager", "FieldValueTooLong", "Too long: may not be more than 128 bytes")
    ]
    assert causes(lambda: options.create_options({"fieldManager": ["é\x01b\0"]})) == [
        ("fieldManager", "FieldValueInvalid", 'Invalid value: "é\\x01b\\x00": invalid character U+0001 (at position 2)'),
        ("fieldManager", "FieldValueInvalid", 'Invalid value: "é\\x01b\\x00": invalid character U+0000 (at position 4)'),
    ]


def test_the_user_agent_is_the_field_manager_of_those_who_name_none() -> None:
    assert options.field_manager_of(options.WriteOptions(field_manager="me"), "kubectl/v1") == "me"
    assert options.field_manager_of(options.WriteOptions(), "kubectl-\x01client/v1.37 (linux)") == "kubectl-client"
    assert options.field_manager_of(options.WriteOptions(), "é" * 100) == "é" * 64


def test_an_apply_needs_a_manager_and_only_an_apply_may_force() -> None:
    error = refusal(lambda: options.patch_options({}, apply=True))
    assert error.message == 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    assert causes(lambda: options.patch_options(query("force=false"), apply=False)) == [
        ("force", FORBIDDEN, "Forbidden: may not be specified for non-apply patch")
    ]
    assert options.patch_options(query("fieldManager=x&force"), apply=True).force is True


def test_a_deletion_is_read_from_the_query() -> None:
    text = "gracePeriodSeconds=5&propagationPolicy=Foreground&uid=x&resourceVersion=7"
    assert options.delete_options(query(text)) == options.DeleteOptions(
        grace_period_seconds=5, propagation_policy="Foreground", uid="x", resource_version="7"
    )


def test_a_deletion_is_read_from_the_body_whatever_its_group() -> None:
    preconditions = {"uid": "x", "resourceVersion": "7"}
    for api_version in ("v1", "meta.k8s.io/v1", "clrk.apoxy.dev/v1alpha1"):
        body = {"kind": "DeleteOptions", "apiVersion": api_version, "dryRun": ["All"], "preconditions": preconditions, "foo": 1}
        assert options.delete_options_from_body(body) == options.DeleteOptions(dry_run=True, uid="x", resource_version="7")
    assert options.delete_options_from_body({"orphanDependents": None, "gracePeriodSeconds": 0}).grace_period_seconds == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct"),
        (
            {"kind": 5},
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
        ),
        ({"kind": "X", "apiVersion": "v1"}, 'no kind "X" is registered for version "v1"'),
        ({"dryRun": "All"}, "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string"),
        ({"gracePeriodSeconds": "x"}, "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
        ({"gracePeriodSeconds": True}, "json: cannot unmarshal bool into Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
        (
            {"preconditions": {"uid": 5}},
            "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
        ),
    ],
    ids=str,
)
def test_a_body_that_is_no_delete_options_is_a_bad_request(body: Any, message: str) -> None:
    error = refusal(lambda: options.delete_options_from_body(body))
    assert (error.code, error.message) == (400, message)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"propagationPolicy": "x"},
            [("propagationPolicy", UNSUPPORTED, 'Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"')],
        ),
        (
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            [
                (
                    "propagationPolicy",
                    "FieldValueInvalid",
                    'Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
                )
            ],
        ),
        (
            {"ignoreStoreReadErrorWithClusterBreakingPotential": True, "gracePeriodSeconds": 0},
            [
                (
                    "ignoreStoreReadErrorWithClusterBreakingPotential",
                    "FieldValueInvalid",
                    "Invalid value: true: cannot be set together with .gracePeriodSeconds",
                )
            ],
        ),
        ({"dryRun": ["x"]}, [("dryRun", UNSUPPORTED, 'Unsupported value: ["x"]: supported values: "All"')]),
    ],
    ids=str,
)
def test_delete_options_that_do_not_go_together_are_invalid(body: Any, expected: list[tuple[str, str, str]]) -> None:
    assert causes(lambda: options.delete_options_from_body(body)) == expected
