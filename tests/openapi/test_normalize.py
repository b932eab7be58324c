"""Pruning, nulls, defaults, numbers and metadata: the outcomes are those of kube-apiserver's own functions for the same input."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openapi import normalize
from openapi.normalize import MetadataTypeError
from openapi.structural import JSON, Schema

STRING = Schema(type="string")
INT = Schema(type="integer", format="int32", minimum=0)
ENV = Schema(type="object", required=("name",), properties={"name": STRING, "value": STRING, "port": Schema(int_or_string=True)})
SPEC = Schema(
    type="object",
    required=("image",),
    properties={
        "replicas": Schema(type="integer", default=1),
        "warmPool": INT,
        "image": STRING,
        "note": Schema(type="string", nullable=True),
        "cache": Schema(type="object", default={}, properties={"enabled": Schema(type="boolean", default=True), "size": INT}),
        "labels": Schema(type="object", additional_properties=STRING),
        "ports": Schema(type="object", additional_properties=Schema(type="integer", default=80)),
        "env": Schema(type="array", items=ENV, list_type="map", list_map_keys=("name",)),
        "words": Schema(type="array", items=STRING),
        "raw": Schema(type="object", preserve_unknown_fields=True, properties={"known": ENV}),
        "embedded": Schema(type="object", embedded_resource=True, properties={"spec": ENV}),
        "ratio": Schema(type="number"),
    },
)
ROOT = Schema(type="object", required=("spec",), properties={"apiVersion": STRING, "kind": STRING, "spec": SPEC})
NORMALIZE = normalize.compile(ROOT)


def of_spec(**spec: JSON) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Thing", "spec": spec}


def normalized(value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    report: list[str] = []
    NORMALIZE(value, report=report)
    return value, report


def normalized_spec(**spec: JSON) -> tuple[JSON, list[str]]:
    value, report = normalized(of_spec(**spec))
    spec = value["spec"]
    if spec.get("replicas") == 1:
        del spec["replicas"]
    if spec.get("cache") == {"enabled": True}:
        del spec["cache"]
    return spec, report


def test_unknown_fields_are_removed_and_reported_sorted() -> None:
    spec, report = normalized_spec(zone="a", replicaz=2, env=[{"name": "A"}, {"name": "B", "valeu": "x"}])
    assert spec == {"env": [{"name": "A"}, {"name": "B"}]}
    assert report == ["spec.env[1].valeu", "spec.replicaz", "spec.zone"]


def test_unknown_metadata_is_reported_before_the_rest() -> None:
    value, report = normalized(
        {"metadata": {"name": "x", "foo": 1, "ownerReferences": [{"name": "o", "bar": 1}]}, "extra": {}, "spec": {"a": 1}}
    )
    assert report == ["metadata.foo", "metadata.ownerReferences[0].bar", "extra", "spec.a"]
    assert value["metadata"] == {"name": "x", "ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": ""}]}


@pytest.mark.parametrize(
    ("given_spec", "kept"),
    [
        pytest.param({"warmPool": None}, {}, id="no-default-drops-the-null"),
        pytest.param({"replicas": None}, {}, id="default-replaces-the-null"),
        pytest.param({"note": None}, {"note": None}, id="nullable-keeps-it"),
        pytest.param({"labels": {"a": None, "b": "x"}}, {"labels": {"b": "x"}}, id="in-a-map"),
        pytest.param({"ports": {"http": None}}, {"ports": {"http": 80}}, id="in-a-map-with-default"),
        pytest.param({"words": ["a", None]}, {"words": ["a", None]}, id="in-a-list-it-stays-to-be-named"),
        pytest.param({"image": None}, {}, id="required-field"),
    ],
)
def test_nulls_of_fields_that_may_not_be_null_go_t029(given_spec: dict[str, Any], kept: dict[str, Any]) -> None:
    assert normalized_spec(**given_spec) == (kept, [])


def test_an_unknown_null_is_unknown_first() -> None:
    assert normalized_spec(zone=None) == ({}, ["spec.zone"])


def test_defaults_fill_the_object_and_what_defaults_create() -> None:
    value, _ = normalized(of_spec())
    assert value["spec"] == {"replicas": 1, "cache": {"enabled": True}}
    value, _ = normalized(of_spec(cache={"size": 3}))
    assert value["spec"] == {"replicas": 1, "cache": {"size": 3, "enabled": True}}


def test_two_objects_never_share_a_default() -> None:
    one, _ = normalized(of_spec())
    two, _ = normalized(of_spec())
    one["spec"]["cache"]["enabled"] = False
    assert two["spec"]["cache"] == {"enabled": True}


@pytest.mark.parametrize(
    ("value", "kept"),
    [(3.0, 3), (1e2, 100), (3.5, 3.5), (1e17, 1e17), (-2.0, -2), (9007199254740993, 9007199254740993), (True, True)],
)
def test_integral_floats_become_integers_t017(value: JSON, kept: JSON) -> None:
    spec, _ = normalized_spec(warmPool=value, ports={"a": value}, raw={"deep": [{"x": value}]})
    for found in (spec["warmPool"], spec["ports"]["a"], spec["raw"]["deep"][0]["x"]):
        assert (found, type(found)) == (kept, type(kept))


def test_a_float_where_none_belongs_stays_one_to_be_named() -> None:
    spec, _ = normalized_spec(image=3.0, words=[3.0])
    assert [type(found) for found in (spec["image"], spec["words"][0])] == [float, float]


def test_preserved_objects_keep_what_is_unknown_but_not_inside_what_is_known() -> None:
    spec, report = normalized_spec(raw={"any": {"x": [None]}, "known": {"name": "a", "zzz": 1}})
    assert spec == {"raw": {"any": {"x": [None]}, "known": {"name": "a"}}}
    assert report == ["spec.raw.known.zzz"]


def test_embedded_resources_keep_their_type_and_metadata() -> None:
    embedded = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "zzz": 1}, "spec": {"name": "x"}, "other": 1}
    spec, report = normalized_spec(embedded=embedded)
    assert spec == {"embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"name": "x"}}}
    assert report == ["spec.embedded.metadata.zzz", "spec.embedded.other"]


def test_objects_of_the_wrong_type_lose_their_members_and_stay_to_be_named() -> None:
    value, report = normalized({"spec": [{"a": 1}, [{"b": 2}]]})
    assert value == {"spec": [{}, [{}]]}
    assert report == ["spec[0].a", "spec[1][0].b"]


def test_metadata_is_read_and_written_as_object_meta() -> None:
    metadata = {
        "name": "a",
        "generateName": "",
        "labels": {"x": None},
        "annotations": {},
        "finalizers": [],
        "creationTimestamp": None,
        "deletionTimestamp": "2020-01-01T00:00:00.5+01:00",
        "deletionGracePeriodSeconds": 0,
        "generation": 2.0,
        "managedFields": [{"manager": "m", "time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:image": {}}}}, None],
    }
    value, _ = normalized({"metadata": metadata, "spec": {}})
    assert value["metadata"] == {
        "name": "a",
        "labels": {"x": ""},
        "deletionTimestamp": "2019-12-31T23:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "generation": 2,
        "managedFields": [{"manager": "m", "time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:image": {}}}}, {}],
    }


def test_null_metadata_is_removed() -> None:
    assert "metadata" not in normalized({"metadata": None, "spec": {}})[0]


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ("x", "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
        ({"name": 5}, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
        ({"uid": []}, "json: cannot unmarshal array into Go struct field ObjectMeta.uid of type types.UID"),
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        ({"labels": {"b": 1, "a": []}}, "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type string"),
        ({"labels": []}, "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string"),
        ({"finalizers": [True]}, "json: cannot unmarshal bool into Go struct field ObjectMeta.finalizers of type string"),
        ({"generation": "a"}, "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64"),
        ({"generation": 1.5}, "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64"),
        (
            {"ownerReferences": {}},
            "json: cannot unmarshal object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference",
        ),
        (
            {"ownerReferences": ["x"]},
            "json: cannot unmarshal string into Go struct field ObjectMeta.ownerReferences of type v1.OwnerReference",
        ),
        (
            {"ownerReferences": [{"name": 1}]},
            "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.name of type string",
        ),
        ({"creationTimestamp": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ({"creationTimestamp": "2020-13-01T00:00:00Z"}, 'parsing time "2020-13-01T00:00:00Z": month out of range'),
        ({"creationTimestamp": 5}, "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of type string"),
        ({"name": 5, "labels": 5}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string"),
    ],
    ids=str,
)
def test_wrongly_typed_metadata_is_told_in_go_words(metadata: JSON, text: str) -> None:
    with pytest.raises(MetadataTypeError) as caught:
        NORMALIZE({"metadata": metadata, "spec": {}})
    assert str(caught.value) == text


def test_all_unknown_fields_go_and_a_thousand_or_so_are_reported() -> None:
    many = {f"x{number}": 1 for number in range(50_000)}
    value = {"metadata": dict(many), "spec": {**many, "env": [{"name": "a", "x": 1}] * 5, "words": [dict(many)]}, **many}
    value, report = normalized(value)
    assert value == {"spec": {"replicas": 1, "cache": {"enabled": True}, "env": [{"name": "a"}] * 5, "words": [{}]}, "metadata": {}}
    assert 1000 <= len(report) < 5000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["name", "value", "port", "enabled", "size", "known", "spec", "metadata", "x"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)
specs = st.dictionaries(st.sampled_from([*SPEC.properties, "unknown"]), json_values, max_size=8)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spec=specs)
def test_normalizing_twice_changes_nothing_more(spec: dict[str, Any]) -> None:
    value = of_spec(**spec)
    try:
        NORMALIZE(value)
    except MetadataTypeError:
        return
    once = copy.deepcopy(value)
    report: list[str] = []
    NORMALIZE(value, report=report)
    assert (value, report) == (once, [])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spec=specs, change=specs)
def test_what_is_shared_with_a_normalized_object_need_not_be_walked_again(spec: dict[str, Any], change: dict[str, Any]) -> None:
    old = of_spec(**spec)
    try:
        NORMALIZE(old)
        shared = {**old, "spec": {**old["spec"], **copy.deepcopy(change)}}
        alone, before = copy.deepcopy(shared), copy.deepcopy(old)
        expected = normalized(alone)
    except MetadataTypeError:
        return
    report: list[str] = []
    NORMALIZE(shared, old=old, report=report)
    assert (shared, report) == expected
    assert old == before


metadata_members = [
    "name",
    "uid",
    "generation",
    "creationTimestamp",
    "labels",
    "annotations",
    "finalizers",
    "managedFields",
    "ownerReferences",
]
some_metadata = st.dictionaries(
    st.sampled_from([*metadata_members, "unknown"]),
    st.sampled_from(["", "a", 0, 1, {}, {"a": "b"}, {"a": None}, [], ["a"], [None], [{"name": "a", "x": 1}], "2026-01-01T00:00:00Z"])
    | json_values,
    max_size=4,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(metadata=some_metadata, change=some_metadata)
def test_metadata_that_is_shared_need_not_be_read_again(metadata: dict[str, Any], change: dict[str, Any]) -> None:
    old: dict[str, Any] = {"metadata": metadata, "spec": {}}
    try:
        NORMALIZE(old)
        shared = {**old, "metadata": {**old["metadata"], **copy.deepcopy(change)}}
        alone, before = copy.deepcopy(shared), copy.deepcopy(old)
        expected = normalized(alone)
    except MetadataTypeError:
        return
    report: list[str] = []
    NORMALIZE(shared, old=old, report=report)
    assert (shared, report) == expected
    assert old == before
    same = {**old}
    NORMALIZE(same, old=old)
    assert same["metadata"] is old["metadata"]
