"""GET of one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.endpoints.negotiation import negotiate, respond_object

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler


def make(store: ResourceStore, tables: TableConvertor) -> Handler:
    """The handler that answers with one object: as it is now, or with `resourceVersion` one that is at least that old."""

    async def get(call: Call) -> web.Response:
        form = negotiate(call, tables=tables)
        info = call.info
        resource_version = info.query["resourceVersion"][0] if info.query and "resourceVersion" in info.query else ""
        obj = await store.get(info.namespace, info.name, resource_version)
        return respond_object(call, form, obj)

    return get
