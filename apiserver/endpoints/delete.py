"""DELETE of one object."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from apiserver.endpoints.body import read_delete_options
from apiserver.endpoints.negotiation import negotiate, respond_object, respond_value
from apiserver.meta import errors
from apiserver.registry.stored_object import UnreadableObject
from apiserver.registry.write import Write
from openapi.gotext import quote

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.admission.chain import Chain
    from apiserver.auth.authorization import Authorization
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.stored_object import StoredObject
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler


_UNSAFE_VERB = "unsafe-delete-ignore-read-errors"
"""What one has to be allowed beside `delete`, to delete what cannot be read."""


def make(store: ResourceStore, tables: TableConvertor, admission: Chain, authorization: Authorization) -> Handler:
    """The handler that deletes an object: a Status when it is gone, the marked object when finalizers keep it."""

    async def delete(call: Call) -> web.Response:
        form = negotiate(call, tables=tables)
        options = await read_delete_options(call)
        if options.ignore_store_read_error:
            if call.audit is not None:
                call.audit.annotations["apiserver.k8s.io/unsafe-delete-ignore-read-error"] = ""
            decision = await authorization.decide(call.user, replace(call.info, verb=_UNSAFE_VERB))
            if decision.verdict != "allow":
                problem = f"not permitted to do {quote(_UNSAFE_VERB)}, reason: {decision.reason}"
                raise errors.forbidden(store.kind.group_resource, call.info.name, problem)
        bound = admission.bind(call, store.kind, "DELETE", dry_run=options.dry_run)
        write = Write(options.dry_run, call.warnings, bound)
        obj, gone = await store.delete(call.info.namespace, call.info.name, options, write)
        if gone:
            return respond_value(call, form, _success(store, obj))
        # 202 for those who asked for dependents to go first, the old way; upstream keeps 200 for all others.
        return respond_object(call, form, obj, code=202 if options.orphan_dependents is False else 200)

    return delete


def _success(store: ResourceStore, obj: StoredObject) -> dict[str, Any]:
    """The Status of a deletion; its uid tells a client which incarnation has gone, unless that could not be read."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if isinstance(obj, UnreadableObject):
        return status | {"details": {"name": obj.name, "kind": store.kind.kind}, "code": 200}
    return status | {"details": {"name": obj.name, "group": store.kind.group, "kind": store.kind.plural, "uid": obj.uid}}
