"""PATCH of an object, or of its status, by server-side apply.

The object is merged by its schema inside the registry's update loop, and created when it is not there (never through a subresource).
Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from apiserver.endpoints.applied_body import decode_applied
from apiserver.endpoints.body import read_body
from apiserver.endpoints.negotiation import negotiate, respond_object
from apiserver.meta import errors
from apiserver.meta.options import patch_options
from apiserver.registry.write import Write
from openapi.normalize import MetadataTypeError

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.admission.chain import Chain
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call, Handler


def make(store: ResourceStore, tables: TableConvertor, admission: Chain, *, subresource: str = "") -> Handler:
    """The handler that applies to an object (or to its status alone) and answers with what is stored then."""
    strategy, ownership = store.strategy, store.ownership[subresource]

    async def apply(call: Call) -> web.Response:
        form = negotiate(call, tables=tables)
        body = await read_body(call)
        options = patch_options(call.info.query, apply=True)
        namespace, name = call.info.namespace, call.info.name
        updating = admission.bind(call, store.kind, "UPDATE", dry_run=options.dry_run)
        change = None
        if updating is None:
            # Controllers apply the same again and again; the digest stands for the body, which would be kept otherwise.
            digest = blake2b(body, digest_size=16).digest()
            change = (subresource, options.field_manager, options.force, options.field_validation, digest)
            if (unchanged := await store.unchanged_by(namespace, name, change)) is not None:
                return respond_object(call, form, unchanged)
        applied = await decode_applied(body, options.field_validation)

        def transform(live: dict[str, Any] | None) -> dict[str, Any]:
            value = ownership.apply(live, applied.value(), options.field_manager, store.now(), force=bool(options.force))
            applied.check_twice(call.warnings)
            try:
                strategy.normalize(value, old=live)
            except MetadataTypeError as error:
                raise errors.bad_request(str(error)) from error
            value.setdefault("metadata", {})
            if live is None:
                _make_new(value, store, name)
            strategy.check_identity(value, namespace, name)
            strategy.deduplicate_owners(value, call.warnings, after_admission=True)
            return value

        write = Write(options.dry_run, call.warnings, updating, change=change)
        if subresource:
            return respond_object(call, form, await store.update(namespace, name, transform, write, subresource=subresource))
        creating = replace(write, admission=admission.bind(call, store.kind, "CREATE", dry_run=options.dry_run))
        obj, is_new = await store.update_or_create(namespace, name, transform, write, creating)
        return respond_object(call, form, obj, code=201 if is_new else 200)

    return apply


def _make_new(value: dict[str, Any], store: ResourceStore, name: str) -> None:
    """See that an object that is not there yet can be created.

    Raises:
        APIError: 409, a certain incarnation is meant.
    """
    metadata = value["metadata"]
    metadata.pop("resourceVersion", None)
    if uid := metadata.get("uid"):
        problem = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise errors.conflict(store.kind.group_resource, name, problem)
