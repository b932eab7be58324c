"""GET, PUT and PATCH of the `scale` subresource: autoscaling/v1 Scale, whatever the kind.

A write changes the one field behind it through the registry's update, with all rules of the kind; the resourceVersion of a Scale is that
of its object, and only a client that sends one is told of a conflict.
Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/registry/customresource/etcd.go
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from apiserver.apply.scale_fields import ScaleFields
from apiserver.endpoints.applied_body import AppliedBody, decode_applied
from apiserver.endpoints.body import BodyError, decode, format_of, go_type_of, read_body, strict_problem, unknown_fields
from apiserver.endpoints.negotiation import negotiate, respond_object, respond_value
from apiserver.endpoints.patch_body import APPLY_PATCH, PatchBody, patch_type_of
from apiserver.meta import errors
from apiserver.meta.options import field_manager_of, patch_options, update_options
from apiserver.meta.resource import Column
from apiserver.registry.scaling import NOT_SET, AccessorError, missing_replicas, scale_of, set_replicas
from apiserver.registry.stored_object import ObjectCodec
from apiserver.registry.table import TableConvertor
from apiserver.registry.write import Write
from openapi import normalize
from openapi.from_model import schema_of
from openapi.json_values import copy
from openapi.meta_v1 import Scale
from openapi.normalize import MetadataTypeError
from storage.store import KeyValue

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.admission.chain import Chain
    from apiserver.apply.managed_fields import Entry
    from apiserver.meta.options import PatchOptions
    from apiserver.meta.resource import ResourceKind, ScalePaths
    from apiserver.registry.forms import Form
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.request import Call, Handler

_INT32 = range(-(2**31), 2**31)
_AGE_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in "
    "happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\n"
    "Populated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_COLUMNS = (
    Column("Desired", "integer", ".spec.replicas", description="Number of desired replicas"),
    Column("Available", "integer", ".status.replicas", description="Number of actual replicas"),
    Column("Age", "date", ".metadata.creationTimestamp", description=_AGE_DESCRIPTION),
)


def make_get(store: ResourceStore, paths: ScalePaths) -> Handler:
    """The handler that answers with the Scale of an object."""
    forms = _ScaleForms(store.kind)

    async def get(call: Call) -> web.Response:
        form = forms.negotiate(call)
        query, info = call.info.query, call.info
        obj = await store.get(info.namespace, info.name, query["resourceVersion"][0] if "resourceVersion" in query else "")
        scale = _scale_of(obj.object(), paths)
        if scale["spec"].get("replicas") == NOT_SET:
            raise missing_replicas(paths)
        return forms.respond(call, form, scale)

    return get


def make_update(store: ResourceStore, paths: ScalePaths, admission: Chain) -> Handler:
    """The handler that takes a whole Scale and answers with the new one."""
    read = _reader()
    changes = _ScaleChanges(store, paths)
    forms = _ScaleForms(store.kind)

    async def update(call: Call) -> web.Response:
        form = forms.negotiate(call)
        body = await read_body(call)
        options = update_options(call.info.query)
        scale = _decode(body, call, read, options.field_validation)
        store.strategy.check_identity(scale, call.info.namespace, call.info.name)
        write = Write(options.dry_run, call.warnings, admission.bind(call, store.kind, "UPDATE", dry_run=options.dry_run))
        uid = scale["metadata"].get("uid", "")
        manager = field_manager_of(options, call.http.headers.get("User-Agent", ""))
        obj = await store.update(call.info.namespace, call.info.name, changes.by_update(lambda _: scale, manager), write, uid=uid)
        return forms.respond(call, form, _scale_of(obj.object(), paths))

    return update


def make_patch(store: ResourceStore, paths: ScalePaths, admission: Chain) -> Handler:
    """The handler that patches the Scale of an object, or applies one, and answers with the new one."""
    read = _reader()
    changes = _ScaleChanges(store, paths)
    forms = _ScaleForms(store.kind)

    async def patch(call: Call) -> web.Response:
        patch_type = patch_type_of(call)
        form = forms.negotiate(call)
        body = await read_body(call)
        options = patch_options(call.info.query, apply=patch_type == APPLY_PATCH)
        namespace, name = call.info.namespace, call.info.name
        if patch_type == APPLY_PATCH:
            applied = await decode_applied(body, options.field_validation)

            def check(scale: dict[str, Any]) -> None:
                applied.check_twice(call.warnings)
                store.strategy.check_identity(scale, namespace, name)

            transform = changes.by_apply(applied, options, check)
        else:
            change = PatchBody(body, patch_type, options.field_validation)

            def patched(current: dict[str, Any]) -> dict[str, Any]:
                scale = change.apply(_scale_of(current, paths), read, call.warnings)
                store.strategy.check_identity(scale, namespace, name)
                return scale

            transform = changes.by_update(patched, field_manager_of(options, call.http.headers.get("User-Agent", "")))
        write = Write(options.dry_run, call.warnings, admission.bind(call, store.kind, "UPDATE", dry_run=options.dry_run))
        obj = await store.update(namespace, name, transform, write)
        return forms.respond(call, form, _scale_of(obj.object(), paths))

    return patch


_Transform = Callable[[dict[str, Any]], dict[str, Any]]


class _ScaleChanges:
    """The changes of an object that a new Scale asks for, and who owns them."""

    def __init__(self, store: ResourceStore, paths: ScalePaths) -> None:
        self._store = store
        self._paths = paths
        self._fields = ScaleFields(store.kind.api_version, paths.spec_replicas)

    def by_update(self, wanted: _Transform, manager: str) -> _Transform:
        def transform(current: dict[str, Any]) -> dict[str, Any]:
            scale = wanted(current)
            value = copy(current)
            replicas = (scale.get("spec") or {}).get("replicas", 0)
            entries = self._fields.updated(_entries(value), _scale_of(current, self._paths), scale, manager, self._store.now())
            return self._changed(value, scale, replicas, entries)

        return transform

    def by_apply(self, applied: AppliedBody, options: PatchOptions, check: Callable[[dict[str, Any]], None]) -> _Transform:
        def transform(current: dict[str, Any]) -> dict[str, Any]:
            live, value = _scale_of(current, self._paths), copy(current)
            scale, entries = self._fields.applied(
                _entries(value), live, applied.value(), options.field_manager, self._store.now(), force=bool(options.force)
            )
            check(scale)
            # Who gives the number up does not mean zero by it.
            replicas = scale["spec"].get("replicas", live["spec"].get("replicas", 0))
            return self._changed(value, scale, replicas, entries)

        return transform

    def _changed(self, value: dict[str, Any], scale: dict[str, Any], replicas: int, entries: list[Entry]) -> dict[str, Any]:
        if replicas == NOT_SET:
            raise errors.bad_request(f'the spec replicas field "{self._paths.spec_replicas}" cannot be empty')
        set_replicas(value, self._paths, replicas)
        metadata = value["metadata"]
        if given := scale["metadata"].get("resourceVersion"):
            metadata["resourceVersion"] = given
        if entries:
            metadata["managedFields"] = entries
        else:
            metadata.pop("managedFields", None)
        return value


def _entries(value: dict[str, Any]) -> list[Entry]:
    entries: list[Entry] = value["metadata"].get("managedFields", [])
    return entries


class _ScaleForms:
    """Scales as clients want them. For tables and metadata alone they are objects of a kind of their own."""

    def __init__(self, kind: ResourceKind) -> None:
        scale = replace(kind, group="autoscaling", version="v1", kind="Scale", columns=_COLUMNS, selectable_fields=())
        self._codec = ObjectCodec(scale)
        self._tables = TableConvertor(scale)

    def negotiate(self, call: Call) -> Form:
        return negotiate(call, tables=self._tables)

    def respond(self, call: Call, form: Form, scale: dict[str, Any]) -> web.Response:
        if not form.as_:
            return respond_value(call, form, scale)
        metadata = scale["metadata"]
        key = self._codec.key(metadata.get("namespace", ""), metadata["name"])
        encoded = self._codec.encode(scale)
        return respond_object(call, form, encoded.stored(KeyValue(key, encoded.value, int(metadata.get("resourceVersion", 0)))))


def _scale_of(value: dict[str, Any], paths: ScalePaths) -> dict[str, Any]:
    try:
        return scale_of(value, paths)
    except AccessorError as error:
        raise errors.internal_error(str(error)) from error


def _decode(body: bytes, call: Call, read: Callable[[dict[str, Any], list[str]], None], field_validation: str) -> dict[str, Any]:
    """The Scale of a body."""
    report: list[str] = []
    written = format_of(call)
    try:
        value, twice = decode(body, written, strict=field_validation != "Ignore")
        if value is None:  # to Go, null is a struct without members
            value = {}
        if value.__class__ is not dict:
            raise BodyError(f"json: cannot unmarshal {go_type_of(value)} into Go value of type v1.Scale")
        read(value, report)
    except (BodyError, MetadataTypeError) as error:
        raise _cannot_be_handled(str(error)) from error
    unknown = unknown_fields(report)
    if (twice or unknown) and field_validation == "Strict":
        raise _cannot_be_handled(strict_problem(twice, unknown, written))
    if field_validation != "Ignore":
        call.warnings.extend((*twice, *unknown))
    scale: dict[str, Any] = value
    return scale


def _cannot_be_handled(problem: str) -> errors.APIError:
    return errors.bad_request(f'Scale in version "v1" cannot be handled as a Scale: {problem}')


def _reader() -> Callable[[dict[str, Any], list[str]], None]:
    """What brings a decoded Scale into form, and refuses what is none."""
    normalize_scale = normalize.compile(schema_of(Scale))

    def read(value: dict[str, Any], report: list[str]) -> None:
        kind, api_version = value.get("kind") or "Scale", value.get("apiVersion") or "autoscaling/v1"
        if (kind, api_version) != ("Scale", "autoscaling/v1"):
            raise BodyError(f'no kind "{kind}" is registered for version "{api_version}"')
        normalize_scale(value, report=report)
        value.setdefault("metadata", {})
        for name, struct in (("spec", "ScaleSpec"), ("status", "ScaleStatus")):
            part = value.get(name)
            if part is not None and part.__class__ is not dict:
                raise BodyError(f"json: cannot unmarshal {go_type_of(part)} into Go struct field Scale.{name} of type v1.{struct}")
            replicas = (part or {}).get("replicas", 0)
            if replicas.__class__ is not int or replicas not in _INT32:
                shown = f"number {replicas}" if replicas.__class__ in (int, float) else go_type_of(replicas)
                raise BodyError(f"json: cannot unmarshal {shown} into Go struct field {struct}.{name}.replicas of type int32")

    return read
