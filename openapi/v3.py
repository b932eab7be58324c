"""OpenAPI v3 as kube-apiserver publishes it: a document for each group version, some for discovery, and an index of them all.

Source: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2896-openapi-v3
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openapi.definitions import definitions
from openapi.document import Document, by_path, common_parameters, encoded
from openapi.operations import Operation, discovery_operations, operations_of
from openapi.parameters import Parameter
from openapi.published import PublishedResource
from openapi.writer import META, V3

_BEARER_TOKEN = {"BearerToken": {"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"}}


def documents(resources: Sequence[PublishedResource], *, title: str, version: str) -> dict[str, Document]:
    """Return every document by its name below `/openapi/v3/`, as in `apis/clrk.apoxy.dev/v1alpha1`, sorted.

    `title` and `version` say what the server is.
    """
    info = {"title": title, "version": version}
    found: dict[str, Document] = {}
    groups = dict.fromkeys(sorted(resource.group for resource in resources))
    for operation in discovery_operations(groups):
        found[operation.path.strip("/")] = _document([operation], [], info, {"securitySchemes": _BEARER_TOKEN})
    for group, group_version in sorted({(resource.group, resource.version) for resource in resources}):
        own = [resource for resource in resources if (resource.group, resource.version) == (group, group_version)]
        operations = [operation for resource in own for operation in operations_of(resource)]
        found[f"apis/{group}/{group_version}"] = _document(operations, own, info, {})
    return dict(sorted(found.items()))


def index(found: Mapping[str, Document]) -> Document:
    """Return the document at `/openapi/v3`: where each document is, with the hash of its content in the address."""
    return encoded({"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={document.etag}"} for name, document in found.items()}})


def _document(
    operations: Iterable[Operation], resources: Sequence[PublishedResource], info: dict[str, str], components: dict[str, Any]
) -> Document:
    paths = {path: _path_item(at_path) for path, at_path in by_path(operations).items()}
    # No address refers to the events of a watch, but clients look for their definition.
    roots = [paths, V3.reference(f"{META}WatchEvent")] if resources else [paths]
    schemas = definitions(roots, resources, V3)
    return encoded({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas} | components})


def _path_item(operations: list[Operation]) -> dict[str, Any]:
    common = common_parameters(operations)
    item: dict[str, Any] = {operation.method: _operation(operation, common) for operation in operations}
    if common:
        item["parameters"] = [_parameter(parameter) for parameter in common]
    return item


def _operation(operation: Operation, common: tuple[Parameter, ...]) -> dict[str, Any]:
    returned = _content(operation.produces, operation.returned)
    node: dict[str, Any] = {
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.operation_id,
        "responses": {code: {"description": text, "content": returned} for code, text in operation.codes}
        | {"401": {"description": "Unauthorized"}},
    }
    own = [_parameter(parameter) for parameter in operation.parameters if parameter not in common]
    if own:
        node["parameters"] = own
    if operation.body:
        node["requestBody"] = {"content": _content(operation.consumes, operation.body)}
        if operation.body_required:
            node["requestBody"]["required"] = True
    if operation.group_version_kind:
        group, version, kind = operation.group_version_kind
        node["x-kubernetes-action"] = operation.action
        node["x-kubernetes-group-version-kind"] = {"group": group, "kind": kind, "version": version}
    return node


def _content(media_types: Iterable[str], name: str) -> dict[str, Any]:
    return {media_type: {"schema": V3.reference(name)} for media_type in media_types}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    node: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "schema": {"type": parameter.type, "uniqueItems": True},
    }
    return node | ({"required": True} if parameter.place == "path" else {})
