"""A kind of a package outside of the repository: that of docs/adding-a-kind.md, served as the page says, lives a whole life."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.meta.resource import Resource
from tests.apiserver.process import ROOT, Serving, serving

PAGE = ROOT / "docs" / "adding-a-kind.md"
GROUP = "/apis/shop.example/v1"
QUEUES = f"{GROUP}/namespaces/ns1/queues"


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "shop.example/v1", "kind": "Queue", "metadata": {"name": name}, "spec": {"topics": ["a"], **spec}}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("shop")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 1
    (folder / "shop_kinds.py").write_text(blocks[0])
    assert "clrk-apiserver serve --kinds shop_kinds\n" in PAGE.read_text()
    with serving(folder / "data", "--kinds", "shop_kinds", cwd=folder) as running:
        yield running


def ask(shop: Serving, method: str, path: str, value: Any = None, *, media_type: str = "application/json") -> Any:
    code, answer = shop.request(method, path, value, media_type=media_type)
    assert code in (200, 201), answer
    return answer


def test_it_lives_a_whole_life(shop: Serving) -> None:
    created = ask(shop, "POST", QUEUES, queue("orders", storage="1000Mi", env=[{"name": "A", "value": "1"}]))
    assert created["spec"] == {"consumers": 1, "topics": ["a"], "storage": "1000Mi", "env": [{"name": "A", "value": "1"}]}
    path = f"{QUEUES}/orders"
    assert ask(shop, "GET", path) == created
    assert ask(shop, "GET", QUEUES)["items"] == [created]
    assert ask(shop, "GET", f"{GROUP}/queues")["kind"] == "QueueList"
    assert ask(shop, "PUT", path, created) == created
    patched = ask(shop, "PATCH", path, {"spec": {"order": "FIFO"}}, media_type="application/merge-patch+json")
    assert (patched["spec"]["order"], patched["metadata"]["generation"]) == ("FIFO", 2)
    status = {"consumers": 1, "observedGeneration": 2}
    assert ask(shop, "PUT", f"{path}/status", {**patched, "status": status})["status"] == status
    scale = ask(shop, "GET", f"{path}/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 1, "selector": "shop.example/queue=orders"})
    scaled = ask(shop, "PATCH", f"{path}/scale", {"spec": {"replicas": 0}}, media_type="application/merge-patch+json")
    assert "replicas" not in scaled["spec"]
    assert ask(shop, "GET", f"{QUEUES}?fieldSelector=spec.order%3DFIFO")["items"][0]["metadata"]["name"] == "orders"
    assert ask(shop, "GET", f"{QUEUES}?fieldSelector=spec.order%3DAny")["items"] == []
    assert ask(shop, "DELETE", path)["status"] == "Success"
    assert shop.request("GET", path)[0] == 404


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"consumers": 101}, "spec.consumers: Invalid value: 101: spec.consumers in body should be less than or equal to 100"),
        ({"topics": []}, "spec.topics: Invalid value: 0: spec.topics in body should have at least 1 items"),
        ({"order": "LIFO"}, 'spec.order: Unsupported value: "LIFO": supported values: "FIFO", "Any"'),
        ({"order": "FIFO", "consumers": 2}, "spec.consumers: Invalid value: 2: must be at most 1 to keep the order FIFO"),
        ({"env": [{"name": "A"}, {"name": "A"}]}, 'spec.env[1]: Duplicate value: {"name":"A"}'),
    ],
    ids=["range", "length", "literal", "own_rule", "list_map"],
)
def test_its_rules_are_told_in_kubernetes_words(shop: Serving, spec: dict[str, Any], message: str) -> None:
    code, status = shop.request("POST", QUEUES, queue("wrong", **spec))
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["message"].startswith('Queue.shop.example "wrong" is invalid: ')
    assert message in status["message"]


def test_it_is_discovered(shop: Serving) -> None:
    assert [group["name"] for group in ask(shop, "GET", "/apis")["groups"]] == ["shop.example"]
    resources = ask(shop, "GET", GROUP)["resources"]
    assert [resource["name"] for resource in resources] == ["queues", "queues/status", "queues/scale"]
    assert (resources[0]["kind"], resources[0]["singularName"], resources[0]["shortNames"]) == ("Queue", "queue", ["q"])


def test_it_is_described(shop: Serving) -> None:
    paths = ask(shop, "GET", "/openapi/v3")["paths"]
    document = ask(shop, "GET", paths["apis/shop.example/v1"]["serverRelativeURL"])
    schemas = {
        schema["x-kubernetes-group-version-kind"][0]["kind"]: schema
        for schema in document["components"]["schemas"].values()
        if schema.get("x-kubernetes-group-version-kind", [{}])[0].get("group") == "shop.example"
    }
    spec = schemas["Queue"]["properties"]["spec"]
    assert spec["properties"]["consumers"]["description"] == "How many processes read the queue."
    assert spec["required"] == ["topics"]
    assert "QueueList" in schemas
    definitions = ask(shop, "GET", "/openapi/v2")["definitions"]
    assert any(definition.get("description") == "Queue hands messages to consumers." for definition in definitions.values())


def test_our_own_kinds_are_not_served_beside_it(shop: Serving) -> None:
    assert shop.request("GET", "/apis/clrk.apoxy.dev/v1alpha1")[0] == 404


def test_the_page_tells_of_every_class_variable_that_a_kind_may_have() -> None:
    text = PAGE.read_text()
    optional = {"singular", "list_kind"}  # they follow from the kind's name
    assert [name for name in Resource.__annotations__ if name in Resource.__class_vars__ - optional and f"`{name}`" not in text] == []
