"""The documents of two kinds: one namespaced with all subresources, one of the whole cluster with none."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from openapi import v2, v3
from openapi.document import Document
from openapi.published import PublishedResource
from openapi.structural import Schema

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
IDENTITY = {"apiVersion": Schema(type="string"), "kind": Schema(type="string"), "metadata": Schema(type="object", description="Names.")}


def resource(group: str, kind: str, *, namespaced: bool, subresources: bool, selectable: tuple[str, ...] = ()) -> PublishedResource:
    return PublishedResource(
        group=group,
        version="v1beta1",
        kind=kind,
        list_kind=f"{kind}List",
        plural=f"{kind.lower()}s",
        namespaced=namespaced,
        schema=Schema(type="object", description=f"A {kind}.", properties=IDENTITY | {"spec": Schema(type="object", description=group)}),
        has_status=subresources,
        has_scale=subresources,
        selectable_fields=selectable,
    )


APPLE = resource("fruit.example.com", "Apple", namespaced=True, subresources=True, selectable=(".spec.color",))
KITE = resource("toys.k8s.io", "Kite", namespaced=False, subresources=False)
BOTH = [APPLE, KITE]


def loaded(document: Document) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(document.content)
    return value


@pytest.fixture(scope="module")
def all_v3() -> dict[str, Any]:
    return {name: loaded(document) for name, document in v3.documents(BOTH, title="t", version="v1").items()}


@pytest.fixture(scope="module")
def whole_v2() -> dict[str, Any]:
    return loaded(v2.document(BOTH, title="t", version="v1"))


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for item in document["paths"].values() for method, operation in item.items() if method != "parameters"]


def references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(references, node)) if node else set()
    if isinstance(node, dict):
        found = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return found.union(*map(references, node.values()))
    return set()


def resolve(document: dict[str, Any], reference: str) -> Any:
    node: Any = document
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    return node


def test_every_reference_leads_somewhere(all_v3: dict[str, Any], whole_v2: dict[str, Any]) -> None:
    for document in (*all_v3.values(), whole_v2):
        for reference in references(document):
            assert resolve(document, reference), reference


def test_every_path_parameter_is_declared(all_v3: dict[str, Any]) -> None:
    for document in all_v3.values():
        for path, item in document["paths"].items():
            declared = {parameter["name"] for parameter in item.get("parameters", []) if parameter["in"] == "path"}
            assert declared == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_addresses_of_a_namespaced_and_of_a_cluster_wide_kind(all_v3: dict[str, Any]) -> None:
    apples, kites = all_v3["apis/fruit.example.com/v1beta1"]["paths"], all_v3["apis/toys.k8s.io/v1beta1"]["paths"]
    own = "/apis/fruit.example.com/v1beta1/namespaces/{namespace}/apples"
    assert list(apples) == [
        "/apis/fruit.example.com/v1beta1/apples",
        own,
        f"{own}/{{name}}",
        f"{own}/{{name}}/scale",
        f"{own}/{{name}}/status",
    ]
    assert list(kites) == ["/apis/toys.k8s.io/v1beta1/kites", "/apis/toys.k8s.io/v1beta1/kites/{name}"]
    assert set(kites["/apis/toys.k8s.io/v1beta1/kites"]) == {"get", "post", "delete", "parameters"}
    assert set(kites["/apis/toys.k8s.io/v1beta1/kites/{name}"]) == {"get", "put", "patch", "delete", "parameters"}


def test_operation_ids_are_unique_and_named_as_kubernetes_names_them(all_v3: dict[str, Any], whole_v2: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in operations(whole_v2)]
    assert len(ids) == len(set(ids))
    assert sorted(ids) == sorted(operation["operationId"] for document in all_v3.values() for operation in operations(document))
    assert {
        "listFruitExampleComV1beta1AppleForAllNamespaces",
        "deleteFruitExampleComV1beta1CollectionNamespacedApple",
        "patchFruitExampleComV1beta1NamespacedAppleStatus",
        "replaceFruitExampleComV1beta1NamespacedAppleScale",
        "createToysV1beta1Kite",
        "getAPIVersions",
        "getToysAPIGroup",
        "getCodeVersion",
    } <= set(ids)


def test_articles_in_descriptions(whole_v2: dict[str, Any]) -> None:
    texts = {operation["operationId"]: operation["description"] for operation in operations(whole_v2)}
    assert texts["createFruitExampleComV1beta1NamespacedApple"] == "create an Apple"
    assert texts["deleteToysV1beta1Kite"] == "delete a Kite"
    assert texts["readFruitExampleComV1beta1NamespacedAppleStatus"] == "read status of the specified Apple"


def test_a_patch_takes_json_merge_and_apply_but_never_strategic_merge(all_v3: dict[str, Any], whole_v2: dict[str, Any]) -> None:
    """T009: kubectl decides by this list how it computes a patch."""
    accepted = {"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
    for document in all_v3.values():
        for operation in operations(document):
            if operation.get("x-kubernetes-action") == "patch":
                assert set(operation["requestBody"]["content"]) == accepted
    for operation in operations(whole_v2):
        if operation.get("x-kubernetes-action") == "patch":
            assert set(operation["consumes"]) == accepted


def test_each_v3_document_has_addresses_of_its_own_group_version_only(all_v3: dict[str, Any]) -> None:
    """T010: one server, two groups."""
    for name, document in all_v3.items():
        assert document["paths"]
        assert all(path.startswith(f"/{name}/") for path in document["paths"])
    assert not any("Kite" in name for name in all_v3["apis/fruit.example.com/v1beta1"]["components"]["schemas"])


def test_v2_has_every_group(whole_v2: dict[str, Any]) -> None:
    """T010: and every definition that is not of a kind bears the name under which Kubernetes knows it."""
    assert {path.split("/")[2] for path in whole_v2["paths"] if path.startswith("/apis/")} == {"", "fruit.example.com", "toys.k8s.io"}
    own = {name for name in whole_v2["definitions"] if not name.startswith(("io.k8s.apimachinery.pkg.", "io.k8s.api."))}
    assert own == {
        "com.example.fruit.v1beta1.Apple",
        "com.example.fruit.v1beta1.AppleList",
        "io.k8s.toys.v1beta1.Kite",
        "io.k8s.toys.v1beta1.KiteList",
    }


def test_kinds_and_operations_say_which_kind_they_are(all_v3: dict[str, Any], whole_v2: dict[str, Any]) -> None:
    """T012: a list of objects on definitions, one object on operations."""
    identity = {"group": "fruit.example.com", "version": "v1beta1"}
    for definitions in (whole_v2["definitions"], all_v3["apis/fruit.example.com/v1beta1"]["components"]["schemas"]):
        for kind in ("Apple", "AppleList"):
            definition = definitions[f"com.example.fruit.v1beta1.{kind}"]
            assert definition["x-kubernetes-group-version-kind"] == [identity | {"kind": kind}]
        for kind in ("DeleteOptions", "WatchEvent"):
            kinds = definitions[META + kind]["x-kubernetes-group-version-kind"]
            assert {"group": "", "version": "v1", "kind": kind} in kinds
            assert identity | {"kind": kind} in kinds
    for operation in operations(all_v3["apis/fruit.example.com/v1beta1"]):
        assert operation["x-kubernetes-group-version-kind"] == identity | {"kind": "Apple"}
        assert operation["x-kubernetes-action"] in {"list", "post", "deletecollection", "get", "put", "delete", "patch"}


def test_the_metadata_of_a_kind_is_the_shared_definition(all_v3: dict[str, Any], whole_v2: dict[str, Any]) -> None:
    apple = all_v3["apis/fruit.example.com/v1beta1"]["components"]["schemas"]["com.example.fruit.v1beta1.Apple"]
    assert apple["properties"]["metadata"] == {"description": "Names.", "allOf": [{"$ref": f"#/components/schemas/{META}ObjectMeta"}]}
    apple = whole_v2["definitions"]["com.example.fruit.v1beta1.Apple"]
    assert apple["properties"]["metadata"] == {"description": "Names.", "$ref": f"#/definitions/{META}ObjectMeta"}


def test_selectable_fields_are_published(all_v3: dict[str, Any]) -> None:
    schemas = all_v3["apis/fruit.example.com/v1beta1"]["components"]["schemas"]
    assert schemas["com.example.fruit.v1beta1.Apple"]["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]


def test_every_definition_and_every_field_of_the_shared_types_is_described(whole_v2: dict[str, Any]) -> None:
    for name, definition in whole_v2["definitions"].items():
        if name.startswith("io.k8s.api"):
            assert definition["description"], name
            for field, schema in definition.get("properties", {}).items():
                assert schema["description"], f"{name}.{field}"


def test_parameters_of_old_kubectls_stand_in_the_operation_itself(whole_v2: dict[str, Any]) -> None:
    """kubectl up to 1.27 looks for these two to find out what the server can do."""
    patch = whole_v2["paths"]["/apis/toys.k8s.io/v1beta1/kites/{name}"]["patch"]
    assert {"dryRun", "fieldValidation"} <= {parameter.get("name") for parameter in patch["parameters"]}


def test_the_index_names_every_document_with_the_hash_of_its_content() -> None:
    found = v3.documents(BOTH, title="t", version="v1")
    paths = loaded(v3.index(found))["paths"]
    assert list(paths) == [
        "apis",
        "apis/fruit.example.com",
        "apis/fruit.example.com/v1beta1",
        "apis/toys.k8s.io",
        "apis/toys.k8s.io/v1beta1",
        "version",
    ]
    for name, document in found.items():
        digest = hashlib.sha512(document.content).hexdigest().upper()
        assert document.etag == digest
        assert paths[name] == {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}


def test_the_order_in_which_kinds_are_given_does_not_matter() -> None:
    one, other = v3.documents(BOTH, title="t", version="v1"), v3.documents(BOTH[::-1], title="t", version="v1")
    assert (list(one), one) == (list(other), other)
    assert v2.document(BOTH, title="t", version="v1") == v2.document(BOTH[::-1], title="t", version="v1")


PROGRAM = """
import sys
from apiserver.core import Affinity
from openapi import v2, v3
from openapi.from_model import schema_of
from openapi.published import PublishedResource
from openapi.structural import Schema
own = {name: Schema(type="string") for name in ("apiVersion", "kind", "metadata")} | {"spec": schema_of(Affinity)}
kinds = [
    PublishedResource(group, "v1", "Thing", "ThingList", "things", True, Schema(type="object", properties=own), True, True)
    for group in ("b.example", "a.example")
]
found = v3.documents(kinds, title="t", version="v1")
print(v3.index(found).etag, v2.document(kinds, title="t", version="v1").etag)
"""


def test_every_process_makes_the_same_bytes() -> None:
    """T010: clients cache documents by their hash, and replicas must agree on it."""
    hashes = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=os.environ | {"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(hashes) == 1
    assert all(hashes)
