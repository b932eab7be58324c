"""PATCH of an object, or of its status, by JSON patch or merge patch; an apply goes on to `apply.py`.

The patch is applied inside the registry's update loop, to the newest object, until it is stored: a client never sees the conflict of a
patch that names no resourceVersion.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apiserver.endpoints.apply import make as make_apply
from apiserver.endpoints.body import check_type_meta, read_body
from apiserver.endpoints.negotiation import negotiate, respond_object
from apiserver.endpoints.patch_body import APPLY_PATCH, PatchBody, patch_type_of
from apiserver.meta.options import field_manager_of, patch_options
from apiserver.registry.write import Write

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.admission.chain import Chain
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler


def make(store: ResourceStore, tables: TableConvertor, admission: Chain, *, subresource: str = "") -> Handler:
    """The handler that patches an object (or its status alone) and answers with what is stored then."""
    strategy = store.strategy
    apply = make_apply(store, tables, admission, subresource=subresource)

    async def patch(call: Call) -> web.StreamResponse:
        patch_type = patch_type_of(call)
        if patch_type == APPLY_PATCH:
            return await apply(call)
        form = negotiate(call, tables=tables)
        body = await read_body(call)
        options = patch_options(call.info.query, apply=False)
        change = PatchBody(body, patch_type, options.field_validation)
        namespace, name = call.info.namespace, call.info.name

        def transform(old: dict[str, Any]) -> dict[str, Any]:
            def read(value: dict[str, Any], report: list[str]) -> None:
                check_type_meta(value)
                strategy.normalize(value, old=old, report=report)

            value = change.apply(old, read, call.warnings)
            value["metadata"] = dict(value.get("metadata") or ())
            strategy.check_identity(value, namespace, name)
            strategy.deduplicate_owners(value, call.warnings, after_admission=True)
            return value

        manager = field_manager_of(options, call.http.headers.get("User-Agent", ""))
        write = Write(options.dry_run, call.warnings, admission.bind(call, store.kind, "UPDATE", dry_run=options.dry_run), manager)
        obj = await store.update(namespace, name, transform, write, subresource=subresource)
        return respond_object(call, form, obj)

    return patch
