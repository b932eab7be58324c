"""DELETE of all objects of a namespace that a selector chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.endpoints.body import read_delete_options
from apiserver.endpoints.list import respond_list
from apiserver.endpoints.negotiation import negotiate
from apiserver.meta.options import check_collection, list_options
from apiserver.registry.errors import api_error
from apiserver.registry.listing import list_objects
from apiserver.registry.selection import select
from apiserver.registry.write import Write
from storage.errors import StoreError

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.admission.chain import Chain
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler


def make(store: ResourceStore, tables: TableConvertor, admission: Chain) -> Handler:
    """The handler that deletes what a list would show, and answers with that list: the objects as they were."""

    async def delete_collection(call: Call) -> web.StreamResponse:
        form = negotiate(call, tables=tables)
        info = call.info
        selecting = list_options(info.query)
        options = await read_delete_options(call)
        check_collection(options)
        try:
            listed = await list_objects(store, select(store.kind, info.namespace, info.name, selecting), selecting)
        except StoreError as error:
            raise api_error(error, store.kind.group_resource) from error
        bound = admission.bind(call, store.kind, "DELETE", dry_run=options.dry_run)
        objects = (obj for block in listed.blocks for obj in block.entries)
        await store.delete_all(objects, options, Write(options.dry_run, call.warnings, bound))
        return await respond_list(call, form, store, listed)

    return delete_collection
