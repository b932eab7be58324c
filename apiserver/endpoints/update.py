"""PUT of an object, or of its status."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from apiserver.endpoints.body import ObjectBody, format_of, read_body
from apiserver.endpoints.negotiation import negotiate, respond_object
from apiserver.meta.options import field_manager_of, update_options
from apiserver.registry.write import Write

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.admission.chain import Chain
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler


def make(store: ResourceStore, tables: TableConvertor, admission: Chain, *, subresource: str = "") -> Handler:
    """The handler that replaces an object (or its status alone) and answers with what is stored then."""
    bodies = ObjectBody(store.kind, store.strategy.normalize)

    async def update(call: Call) -> web.Response:
        form = negotiate(call, tables=tables)
        body = await read_body(call)
        options = update_options(call.info.query)
        value = await bodies.decode(body, format_of(call), options.field_validation, call.warnings)
        namespace, name = call.info.namespace, call.info.name
        store.strategy.check_identity(value, namespace, name)
        store.strategy.deduplicate_owners(value, call.warnings, after_admission=False)
        bound = admission.bind(call, store.kind, "UPDATE", dry_run=options.dry_run)

        def transform(_: dict[str, Any]) -> dict[str, Any]:
            # The registry changes the two outer levels only; admission may change everything.
            return {**value, "metadata": {**value["metadata"]}} if bound is None else deepcopy(value)

        manager = field_manager_of(options, call.http.headers.get("User-Agent", ""))
        write = Write(options.dry_run, call.warnings, bound, manager)
        uid = value["metadata"].get("uid", "")
        obj = await store.update(namespace, name, transform, write, subresource=subresource, uid=uid)
        return respond_object(call, form, obj)

    return update
