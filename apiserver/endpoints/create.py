"""POST of a new object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.endpoints.body import ObjectBody, format_of, read_body
from apiserver.endpoints.negotiation import negotiate, respond_object
from apiserver.meta.options import create_options, field_manager_of
from apiserver.registry.write import Write

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.admission.chain import Chain
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler


def make(store: ResourceStore, tables: TableConvertor, admission: Chain) -> Handler:
    """The handler that stores a new object and answers 201 with it."""
    bodies = ObjectBody(store.kind, store.strategy.normalize)

    async def create(call: Call) -> web.Response:
        form = negotiate(call, tables=tables)
        written = format_of(call)
        body = await read_body(call)
        options = create_options(call.info.query)
        value = await bodies.decode(body, written, options.field_validation, call.warnings)
        namespace = call.info.namespace
        store.strategy.check_namespace(value, namespace)
        bound = admission.bind(call, store.kind, "CREATE", dry_run=options.dry_run)
        manager = field_manager_of(options, call.http.headers.get("User-Agent", ""))
        obj = await store.create(namespace, value, Write(options.dry_run, call.warnings, bound, manager))
        return respond_object(call, form, obj, code=201)

    return create
