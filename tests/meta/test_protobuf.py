"""Protobuf as a kube-apiserver 1.37 wrote it for the same values, byte for byte."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta import protobuf

FIELDS = (
    b'{"f:metadata":{"f:annotations":{".":{},"f:y":{},"f:z":{}},"f:finalizers":{".":{},"v:\\"example.dev/x\\"":{}},'
    b'"f:labels":{".":{},"f:a":{},"f:b":{}},"f:ownerReferences":{".":{},"k:{\\"uid\\":\\"u1\\"}":{}}},'
    b'"f:spec":{".":{},"f:replicas":{},"f:template":{".":{},"f:image":{}}}}'
)
METADATA: dict[str, Any] = {
    "annotations": {"z": "ä", "y": ""},
    "creationTimestamp": "2026-11-30T23:28:51Z",
    "finalizers": ["example.dev/x"],
    "generation": 1,
    "labels": {"b": "2", "a": "1"},
    "managedFields": [
        {
            "apiVersion": "clrk.apoxy.dev/v1alpha1",
            "fieldsType": "FieldsV1",
            "fieldsV1": orjson.loads(FIELDS),
            "manager": "unknown",
            "operation": "Update",
            "time": "2026-11-30T23:28:51Z",
        }
    ],
    "name": "pb-probe",
    "namespace": "default",
    "ownerReferences": [
        {"apiVersion": "v1", "blockOwnerDeletion": False, "controller": True, "kind": "ConfigMap", "name": "o", "uid": "u1"}
    ],
    "resourceVersion": "1458",
    "uid": "ad65ab57-e6da-47e9-bb60-4bbb6c19e3d8",
}
PARTIAL = (
    b"k8s\x00\n'\n\x0emeta.k8s.io/v1\x12\x15PartialObjectMetadata\x12\xf3\x03\n\xf0\x03\n\x08pb-probe\x12\x00\x1a\x07default\"\x00"
    b"*$ad65ab57-e6da-47e9-bb60-4bbb6c19e3d82\x0414588\x01B\x08\x08\xb3\x8d\xb8\xd8\x06\x10\x00Z\x06\n\x01a\x12\x011Z\x06\n\x01b\x12\x012"
    b"b\x05\n\x01y\x12\x00b\x07\n\x01z\x12\x02\xc3\xa4j\x1a\n\tConfigMap\x1a\x01o\"\x02u1*\x02v10\x018\x00r\rexample.dev/x\x8a\x01\xd2\x02"
    b"\n\x07unknown\x12\x06Update\x1a\x17clrk.apoxy.dev/v1alpha1\"\x08\x08\xb3\x8d\xb8\xd8\x06\x10\x002\x08FieldsV1:\x8f\x02\n\x8c\x02"
    + FIELDS
    + b'B\x00\x1a\x00"\x00'
)  # fmt: skip


def test_metadata_is_written_as_kube_apiserver_writes_it() -> None:
    message = protobuf.partial_object_metadata(METADATA)
    assert protobuf.envelope("meta.k8s.io/v1", "PartialObjectMetadata", message) == PARTIAL


def test_an_object_that_is_being_deleted_says_when_and_how() -> None:
    """The part of the real answer from `generation` to the labels."""
    metadata = METADATA | {"generation": 3, "deletionTimestamp": "2026-11-30T23:28:52Z", "deletionGracePeriodSeconds": 0}
    part = b"8\x03B\x08\x08\xb3\x8d\xb8\xd8\x06\x10\x00J\x08\x08\xb4\x8d\xb8\xd8\x06\x10\x00P\x00Z\x06\n\x01a"
    assert part in protobuf.partial_object_metadata(metadata)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(
            {"metadata": {}, "status": "Failure", "message": 'workerpools.clrk.apoxy.dev "nope" not found', "reason": "NotFound",
             "details": {"name": "nope", "group": "clrk.apoxy.dev", "kind": "workerpools"}, "code": 404},
            b'\x12t\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a+workerpools.clrk.apoxy.dev "nope" not found"\x08NotFound'
            b"*'\n\x04nope\x12\x0eclrk.apoxy.dev\x1a\x0bworkerpools(\x002\x000\x94\x03",
            id="details",
        ),
        pytest.param(
            {"metadata": {}, "status": "Failure", "message": "too old resource version: 1 (783)", "reason": "Expired", "code": 410},
            b'\x12@\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a!too old resource version: 1 (783)"\x07Expired0\x9a\x03',
            id="no details",
        ),
        pytest.param(
            {"metadata": {}, "status": "Failure", "message":
             'WorkerPool.clrk.apoxy.dev "pb-probe" is invalid: [spec.replicas: Invalid value: -1: spec.replicas in body should be greater '
             "than or equal to 0, spec.template: Required value, .spec.replicas: Invalid value: -1: should be a non-negative integer]",
             "reason": "Invalid", "code": 422, "details": {"name": "pb-probe", "group": "clrk.apoxy.dev", "kind": "WorkerPool", "causes": [
                 {"reason": "FieldValueInvalid", "message": "Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
                  "field": "spec.replicas"},
                 {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.template"},
                 {"reason": "FieldValueInvalid", "message": "Invalid value: -1: should be a non-negative integer",
                  "field": ".spec.replicas"}]}},
            b'\x12\xc2\x04\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\xf3\x01WorkerPool.clrk.apoxy.dev "pb-probe" is invalid: [spec.'
            b"replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, spec.template: Required value, "
            b'.spec.replicas: Invalid value: -1: should be a non-negative integer]"\x07Invalid'
            b'*\xac\x02\n\x08pb-probe\x12\x0eclrk.apoxy.dev\x1a\nWorkerPool"q\n\x11FieldValueInvalid'
            b'\x12MInvalid value: -1: spec.replicas in body should be greater than or equal to 0\x1a\r'
            b'spec.replicas"3\n\x12FieldValueRequired\x12\x0eRequired value\x1a\rspec.template"X\n\x11FieldValueInvalid\x123Invalid value: '
            b"-1: should be a non-negative integer\x1a\x0e.spec.replicas(\x002\x000\xa6\x03",
            id="causes",
        ),
    ],
)  # fmt: skip
def test_a_status_is_written_as_kube_apiserver_writes_it(value: dict[str, Any], message: bytes) -> None:
    assert protobuf.status(value) == b"k8s\x00\n\x0c\n\x02v1\x12\x06Status" + message + b'\x1a\x00"\x00'


def test_an_event_is_written_as_kube_apiserver_writes_it() -> None:
    metadata = {"resourceVersion": "1098", "annotations": {"k8s.io/initial-events-end": "true"}}
    bookmark = protobuf.envelope("meta.k8s.io/v1", "PartialObjectMetadata", protobuf.partial_object_metadata(metadata))
    assert protobuf.watch_event(b"BOOKMARK", bookmark) == (
        b"\n\x08BOOKMARK\x12n\nlk8s\x00\n'\n\x0emeta.k8s.io/v1\x12\x15PartialObjectMetadata\x129\n7\n\x00\x12\x00\x1a\x00\"\x00*\x00"
        b'2\x0410988\x00B\x00b!\n\x19k8s.io/initial-events-end\x12\x04true\x1a\x00"\x00'
    )


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_are_read_back(number: int) -> None:
    value = sum((digit & 127) << 7 * place for place, digit in enumerate(protobuf.varint(number)))
    assert value - (value >> 63 << 64) == number


def test_times_before_1970_and_none_at_all() -> None:
    before = protobuf.partial_object_metadata({"creationTimestamp": "1969-12-31T23:59:58.5Z"})
    assert b"B\x0d\x08" + protobuf.varint(-2) + b"\x10\x00" in before
    never = protobuf.partial_object_metadata({"creationTimestamp": None})
    assert never == protobuf.partial_object_metadata({}) == protobuf.partial_object_metadata({"creationTimestamp": "0001-01-01T00:00:00Z"})
