"""etcd's messages, as far as we use them: a table of their fields, from which protobuf makes the classes.

Knows names, numbers and types as etcd publishes them. What is not in the table is kept out of requests and ignored in responses, so a
field is added here when it is used. Enumerations are numbers, as they are on the wire.

Source: https://github.com/etcd-io/etcd/blob/v3.7.3/api/etcdserverpb/rpc.proto, and api/mvccpb/kv.proto beside it
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_PACKAGE = "etcdserverpb"
_FIELDS = {
    "ResponseHeader": "uint64 cluster_id=1, int64 revision=3",
    "KeyValue": "bytes key=1, int64 mod_revision=3, int64 version=4, bytes value=5",
    "Event": "int32 type=1, KeyValue kv=2",
    "RangeRequest": "bytes key=1, bytes range_end=2, int64 limit=3, int64 revision=4, bool keys_only=8",
    "RangeResponse": "ResponseHeader header=1, KeyValue* kvs=2, bool more=3, int64 count=4",
    "PutRequest": "bytes key=1, bytes value=2",
    "DeleteRangeRequest": "bytes key=1, bool prev_kv=3",
    "DeleteRangeResponse": "KeyValue* prev_kvs=3",
    "Compare": "int32 target=2, bytes key=3, int64 version=4, int64 mod_revision=6",
    "RequestOp": "RangeRequest request_range=1, PutRequest request_put=2, DeleteRangeRequest request_delete_range=3",
    "ResponseOp": "RangeResponse response_range=1, DeleteRangeResponse response_delete_range=3",
    "TxnRequest": "Compare* compare=1, RequestOp* success=2, RequestOp* failure=3",
    "TxnResponse": "ResponseHeader header=1, bool succeeded=2, ResponseOp* responses=3",
    "CompactionRequest": "int64 revision=1",
    "CompactionResponse": "ResponseHeader header=1",
    "WatchRequest": "WatchCreateRequest create_request=1, WatchProgressRequest progress_request=3",
    "WatchCreateRequest": "bytes key=1, bytes range_end=2, int64 start_revision=3, bool fragment=8",
    "WatchProgressRequest": "",
    "WatchResponse": (
        "ResponseHeader header=1, bool created=3, bool canceled=4, int64 compact_revision=5, string cancel_reason=6, bool fragment=7, "
        "Event* events=11"
    ),
    "StatusRequest": "",
    "StatusResponse": "ResponseHeader header=1, string version=2, int64 dbSize=3",
    "AuthenticateRequest": "string name=1, string password=2",
    "AuthenticateResponse": "ResponseHeader header=1, string token=2",
}
_TYPES = {
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "string": FieldDescriptorProto.TYPE_STRING,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
}


def _classes() -> dict[str, Any]:
    file = FileDescriptorProto(name="clrk/etcd.proto", package=_PACKAGE, syntax="proto3")
    for name, text in _FIELDS.items():
        file.message_type.append(DescriptorProto(name=name, field=map(_field, filter(None, text.split(", ")))))
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


def _field(text: str) -> FieldDescriptorProto:
    kind, _, rest = text.partition(" ")
    name, _, number = rest.partition("=")
    repeated = kind.endswith("*")
    kind = kind.rstrip("*")
    field = FieldDescriptorProto(
        name=name,
        number=int(number),
        label=FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL,
        type=_TYPES.get(kind, FieldDescriptorProto.TYPE_MESSAGE),
    )
    if kind not in _TYPES:
        field.type_name = f".{_PACKAGE}.{kind}"
    return field


_CLASSES = _classes()
AuthenticateRequest = _CLASSES["AuthenticateRequest"]
AuthenticateResponse = _CLASSES["AuthenticateResponse"]
CompactionRequest = _CLASSES["CompactionRequest"]
CompactionResponse = _CLASSES["CompactionResponse"]
RangeRequest = _CLASSES["RangeRequest"]
RangeResponse = _CLASSES["RangeResponse"]
StatusRequest = _CLASSES["StatusRequest"]
StatusResponse = _CLASSES["StatusResponse"]
TxnRequest = _CLASSES["TxnRequest"]
TxnResponse = _CLASSES["TxnResponse"]
WatchCreateRequest = _CLASSES["WatchCreateRequest"]
WatchProgressRequest = _CLASSES["WatchProgressRequest"]
WatchRequest = _CLASSES["WatchRequest"]
WatchResponse = _CLASSES["WatchResponse"]

COMPARE_VERSION = 0
COMPARE_MOD = 2
EVENT_DELETE = 1
