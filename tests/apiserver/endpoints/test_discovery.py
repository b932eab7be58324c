"""Discovery in both forms, over real HTTP."""

from __future__ import annotations

import aiohttp
import orjson
import pytest

from tests.apiserver.reading import GADGETS, create, read
from tests.apiserver.status_assertions import assert_status

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
V9 = "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"
REORDERED = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io"
WHOLE_VERBS = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}


@pytest.mark.parametrize("accept", [V2, REORDERED, f"{V2},{V2BETA1},application/json", f"application/json,{V2}"])
async def test_aggregated_discovery_in_v2(client: aiohttp.ClientSession, accept: str) -> None:
    """T001, T002 (a, d)."""
    async with client.get("/apis", headers={"Accept": accept}) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == V2
        assert response.headers["Vary"] == "Accept"
        document = orjson.loads(await response.read())
    assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    (group,) = document["items"]
    assert group["metadata"]["name"] == "example.dev"
    (version,) = group["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    cluster, gadgets = version["resources"]
    assert (cluster["scope"], gadgets["scope"]) == ("Cluster", "Namespaced")
    own = {"group": "example.dev", "version": "v1", "kind": "Gadget"}
    assert (gadgets["resource"], gadgets["singularResource"], gadgets["responseKind"]) == ("gadgets", "gadget", own)
    assert set(gadgets["verbs"]) == WHOLE_VERBS
    assert (gadgets["shortNames"], gadgets["categories"]) == (["gd"], ["all"])
    status, scale = gadgets["subresources"]
    assert (status["subresource"], status["responseKind"], set(status["verbs"])) == ("status", own, {"get", "patch", "update"})
    assert (scale["subresource"], scale["responseKind"]["kind"], scale["responseKind"]["group"]) == ("scale", "Scale", "autoscaling")
    assert "subresources" not in cluster


async def test_version_of_discovery_that_nobody_knows_is_not_acceptable(client: aiohttp.ClientSession) -> None:
    """T002 (b, c)."""
    async with client.get("/apis", headers={"Accept": V9}) as response:
        assert response.status == 406
        assert orjson.loads(await response.read())["reason"] == "NotAcceptable"
    async with client.get("/apis", headers={"Accept": f"{V9},application/json"}) as response:
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Vary"] == "Accept"
        assert orjson.loads(await response.read())["kind"] == "APIGroupList"


async def test_aggregated_discovery_in_v2beta1_is_true_to_its_version(client: aiohttp.ClientSession) -> None:
    """T002 (e)."""
    async with client.get("/apis", headers={"Accept": V2BETA1}) as response:
        assert response.headers["Content-Type"] == V2BETA1
        assert orjson.loads(await response.read()) == await read(client, "/apis", accept=V2) | {"apiVersion": "apidiscovery.k8s.io/v2beta1"}


@pytest.mark.parametrize(
    ("media_type", "beginning"),
    [
        ("application/json", b'{"kind":'),
        ("application/yaml", b"apiVersion: apidiscovery.k8s.io/v2\nitems:\n"),
        ("application/vnd.kubernetes.protobuf", b"k8s\x00"),
    ],
)
async def test_aggregated_discovery_in_each_media_type(client: aiohttp.ClientSession, media_type: str, beginning: bytes) -> None:
    """Under one entity tag, that of the content; the bytes are compared with kube-apiserver's in tests/differential."""
    wanted = V2.replace("application/json", media_type)
    async with client.get("/apis", headers={"Accept": V2}) as response:
        etag = response.headers["ETag"]
    async with client.get("/apis", headers={"Accept": wanted}) as response:
        assert (response.status, response.headers["Content-Type"], response.headers["ETag"]) == (200, wanted, etag)
        body = await response.read()
    assert body.startswith(beginning)
    assert b"gadgets" in body


async def test_aggregated_discovery_is_indented_for_people(client: aiohttp.ClientSession) -> None:
    async with client.get("/apis?pretty=true", headers={"Accept": V2}) as response:
        assert (await response.text()).startswith('{\n  "kind": "APIGroupDiscoveryList",\n')


async def test_aggregated_discovery_is_sent_once(client: aiohttp.ClientSession) -> None:
    async with client.get("/apis", headers={"Accept": V2}) as response:
        etag = response.headers["ETag"]
        assert response.headers["Cache-Control"] == "public"
    async with client.get("/apis", headers={"Accept": V2, "If-None-Match": etag}) as response:
        assert response.status == 304
        assert await response.read() == b""


async def test_classic_discovery(client: aiohttp.ClientSession) -> None:
    groups = await read(client, "/apis")
    version = {"groupVersion": "example.dev/v1", "version": "v1"}
    assert groups["groups"] == [{"name": "example.dev", "versions": [version], "preferredVersion": version}]
    group = await read(client, "/apis/example.dev")
    assert (group["kind"], group["apiVersion"], group["name"]) == ("APIGroup", "v1", "example.dev")
    resources = await read(client, "/apis/example.dev/v1")
    assert (resources["kind"], resources["groupVersion"]) == ("APIResourceList", "example.dev/v1")
    by_name = {resource["name"]: resource for resource in resources["resources"]}
    assert set(by_name) == {"clustergadgets", "gadgets", "gadgets/status", "gadgets/scale"}
    assert set(by_name["gadgets"]["verbs"]) == WHOLE_VERBS
    assert by_name["gadgets"]["storageVersionHash"] == "wufZJ/QTga4="
    assert by_name["gadgets/scale"]["kind"] == "Scale"
    async with client.get("/apis", headers={"Accept": "application/yaml"}) as response:
        assert response.content_type == "application/yaml"
        assert b"kind: APIGroupList" in await response.read()


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/nope.example", "/apis/example.dev/v9", "/apis/example.dev/v1/nope"])
async def test_what_is_not_served_is_not_found(client: aiohttp.ClientSession, path: str) -> None:
    """T005."""
    async with client.get(path) as response:
        await assert_status(response, 404, "NotFound")


async def test_every_verb_that_is_listed_works_and_no_other(client: aiohttp.ClientSession) -> None:
    """T114."""
    await create(client, "a")
    resources = await read(client, "/apis/example.dev/v1")
    aggregated = await read(client, "/apis", accept=V2)
    [group] = [group for group in aggregated["items"] if group["metadata"]["name"] == "example.dev"]
    told = {resource["resource"]: resource for resource in group["versions"][0]["resources"]}
    for resource in resources["resources"]:
        name, _, subresource = resource["name"].partition("/")
        if subresource:
            [same] = [one for one in told[name]["subresources"] if one["subresource"] == subresource]
        else:
            same = told[name]
        assert sorted(same["verbs"]) == sorted(resource["verbs"])
        if resource["name"].startswith("gadgets/"):
            path = f"{GADGETS}/a/{resource['name'].partition('/')[2]}"
            assert set(resource["verbs"]) == {"get", "patch", "update"}
            async with client.get(path) as response:
                assert response.status == 200
            for method in ("POST", "DELETE"):
                async with client.request(method, path, json={}) as response:
                    await assert_status(response, 405, "MethodNotAllowed")
    for method, path in (("POST", f"{GADGETS}/a"), ("PUT", GADGETS), ("PATCH", GADGETS)):
        async with client.request(method, path, json={}) as response:
            await assert_status(response, 405, "MethodNotAllowed")
    async with client.post("/apis", json={}) as response:
        await assert_status(response, 405, "MethodNotAllowed")


async def test_the_document_of_a_group_version_is_given_as_yaml(client: aiohttp.ClientSession) -> None:
    async with client.get("/apis/example.dev/v1", headers={"Accept": "application/yaml"}) as response:
        assert response.status == 200
        assert "  verbs:\n  - delete\n" in await response.text()


@pytest.mark.parametrize("path", ["/apis", "/apis/example.dev", "/apis/example.dev/v1"])
async def test_classic_documents_in_protobuf_and_never_converted(client: aiohttp.ClientSession, path: str) -> None:
    """Old client-go asks for protobuf first; the bytes are compared with kube-apiserver's in tests/differential."""
    protobuf = "application/vnd.kubernetes.protobuf"
    async with client.get(path, headers={"Accept": f"{protobuf},application/json"}) as response:
        assert (response.status, response.headers["Content-Type"]) == (200, protobuf)
        body = await response.read()
    assert body.startswith(b"k8s\x00")
    assert b"example.dev" in body
    async with client.get(path, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}) as response:
        await assert_status(response, 406, "NotAcceptable")
