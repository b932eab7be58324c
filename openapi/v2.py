"""OpenAPI v2 (Swagger 2.0) as kube-apiserver publishes it: one document of everything.

Parameters that do not depend on a kind are written once and referred to; their names carry a hash of their content, so that merging this
document with another server's never mixes them up.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import orjson

from openapi.adopted import adopted
from openapi.definitions import definitions
from openapi.document import Document, by_path, common_parameters, encoded
from openapi.operations import Operation, discovery_operations, operations_of
from openapi.parameters import Parameter
from openapi.published import PublishedResource
from openapi.writer import META, V2

_OURS: Final[Mapping[str, Any]] = MappingProxyType({})
_NEVER_SHARED = {"name", "dryRun", "fieldValidation"}
"""`name` depends on the kind; old versions of kubectl look for the other two in the operation itself."""


def document(resources: Sequence[PublishedResource], *, title: str, version: str, shared_words: Mapping[str, Any] = _OURS) -> Document:
    """Return the document at `/openapi/v2`. `title` and `version` say what the server is.

    `shared_words` are definitions of shared types by another server, whose words are used where both mean the same.
    """
    ordered = sorted(resources, key=lambda resource: (resource.group, resource.version, resource.plural))
    groups = dict.fromkeys(resource.group for resource in ordered)
    operations = [*discovery_operations(groups), *(operation for resource in ordered for operation in operations_of(resource))]
    shared: dict[str, Any] = {}
    paths = {path: _path_item(at_path, shared) for path, at_path in by_path(operations).items()}
    # No address refers to the events of a watch, but clients look for their definition.
    roots = [paths, list(shared.values()), V2.reference(f"{META}WatchEvent")]
    return encoded(
        {
            "swagger": "2.0",
            "info": {"title": title, "version": version},
            "paths": paths,
            "definitions": adopted(definitions(roots, ordered, V2), shared_words),
            "parameters": shared,
            "securityDefinitions": {
                "BearerToken": {"description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header"}
            },
            "security": [{"BearerToken": []}],
        }
    )


def _path_item(operations: list[Operation], shared: dict[str, Any]) -> dict[str, Any]:
    common = common_parameters(operations)
    item: dict[str, Any] = {operation.method: _operation(operation, common, shared) for operation in operations}
    if common:
        item["parameters"] = [_parameter(parameter, shared) for parameter in common]
    return item


def _operation(operation: Operation, common: tuple[Parameter, ...], shared: dict[str, Any]) -> dict[str, Any]:
    node: dict[str, Any] = {
        "description": operation.description,
        "consumes": list(operation.consumes),
        "produces": list(operation.produces),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.operation_id,
        "responses": {code: {"description": text, "schema": V2.reference(operation.returned)} for code, text in operation.codes}
        | {"401": {"description": "Unauthorized"}},
    }
    own = [_parameter(parameter, shared) for parameter in operation.parameters if parameter not in common]
    if operation.body:
        own.insert(0, _body(operation, shared))
    if own:
        node["parameters"] = own
    if operation.group_version_kind:
        group, version, kind = operation.group_version_kind
        node["x-kubernetes-action"] = operation.action
        node["x-kubernetes-group-version-kind"] = {"group": group, "kind": kind, "version": version}
    return node


def _body(operation: Operation, shared: dict[str, Any]) -> dict[str, Any]:
    node: dict[str, Any] = {"name": "body", "in": "body", "schema": V2.reference(operation.body)}
    if operation.body_required:
        node["required"] = True
    return _shared("body", node, shared) if operation.body.startswith(META) else node


def _parameter(parameter: Parameter, shared: dict[str, Any]) -> dict[str, Any]:
    node: dict[str, Any] = {
        "uniqueItems": True,
        "type": parameter.type,
        "description": parameter.description,
        "name": parameter.name,
        "in": parameter.place,
    }
    if parameter.place == "path":
        node["required"] = True
    return node if parameter.name in _NEVER_SHARED else _shared(parameter.name, node, shared)


def _shared(name: str, node: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Put a parameter among the shared ones, and return a reference to it."""
    digest = hashlib.sha256(orjson.dumps(node, option=orjson.OPT_SORT_KEYS)).digest()[:6]
    key = f"{name}-{base64.urlsafe_b64encode(digest).decode()}"
    shared[key] = node
    return {"$ref": f"#/parameters/{key}"}
