"""Our documents have the structure of those that kube-apiserver 1.37 publishes for the same kinds as CustomResourceDefinitions.

reference.json was made from a real server. What differs on purpose is taken out of our side below, with the reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.kinds.local_worker import LocalWorker
from apiserver.kinds.worker_pool import WorkerPool
from apiserver.meta.quantity import PATTERN
from apiserver.meta.resource import describe
from openapi import v2, v3

REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("reference.json").read_text())
PUBLISHED = [describe(WorkerPool).published, describe(LocalWorker).published]
PROTOBUF = "application/vnd.kubernetes.protobuf"
PRESERVE = "x-kubernetes-preserve-unknown-fields"


def facts(node: Any, parameters: dict[str, Any]) -> Any:
    """The same reduction that make_document_reference.py does, without what differs on purpose."""
    if isinstance(node, list):
        return [facts(value, parameters) for value in node]
    if not isinstance(node, dict):
        return node
    if str(node.get("$ref", "")).startswith("#/parameters/"):
        return facts(parameters[node["$ref"].removeprefix("#/parameters/")], parameters)
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "definitions", "schemas"):
            found[key] = {name: facts(child, parameters) for name, child in value.items()}
        elif key == "pattern" and value == PATTERN:
            continue  # a wrong quantity is refused here, which a CustomResourceDefinition without a pattern lets through
        elif not (key == "description" and isinstance(value, str)):
            found[key] = facts(value, parameters)
    if found.pop(PRESERVE, False):
        found["type"] = "object"  # fieldsV1 in the metadata of a claim template is kept as it is
    if isinstance(found.get("required"), list):
        found["required"].sort()
    return found


def reduced(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = facts(document, document.get("parameters", {}))
    found.pop("parameters", None)
    del found["info"]
    for name, definition in (found.get("definitions") or found["components"]["schemas"]).items():
        if name.endswith((".DeleteOptions", ".WatchEvent")):
            del definition["x-kubernetes-group-version-kind"]
    return found


def without_protobuf(node: Any) -> Any:
    """The reference without a media type that this server does not have."""
    if isinstance(node, list):
        return [without_protobuf(value) for value in node if value != PROTOBUF]
    if isinstance(node, dict):
        return {key: without_protobuf(value) for key, value in node.items() if key != PROTOBUF}
    return node


@pytest.mark.parametrize("name", sorted(REFERENCE["v3"]))
def test_v3_has_the_structure_of_kubernetes_document(name: str) -> None:
    ours = reduced(json.loads(v3.documents(PUBLISHED, title="t", version="v")[name].content))
    if name.endswith("v1alpha1"):  # clients look for the events of a watch; documents of built-in groups have them
        del ours["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"]
        del ours["components"]["schemas"]["io.k8s.apimachinery.pkg.runtime.RawExtension"]
    assert ours == without_protobuf(REFERENCE["v3"][name])


def test_v2_has_the_structure_of_kubernetes_document() -> None:
    ours = reduced(json.loads(v2.document(PUBLISHED, title="t", version="v").content))
    for group in ("clrk.apoxy.dev", "worker.saved.sh"):  # kube-apiserver writes these for built-in groups only
        del ours["paths"][f"/apis/{group}/"]
    assert ours == without_protobuf(REFERENCE["v2"])
