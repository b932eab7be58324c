"""T005, T006: addresses that nobody serves, verbs that nobody has, and names that nothing can have."""

from __future__ import annotations

import aiohttp
import pytest
import yarl

from apiserver.endpoints.version import version_info
from tests.apiserver.running import Listening
from tests.apiserver.status_assertions import assert_status

G = "/apis/example.dev/v1"
GADGETS = f"{G}/namespaces/ns1/gadgets"
NOBODY = "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api"),
        ("GET", "/api/v1"),
        ("GET", "/api/v1/nopes"),
        ("GET", "/apis/nope.example"),
        ("GET", "/apis/example.dev/v9"),
        ("GET", "/apis/example.dev/v9/gadgets"),
        ("GET", f"{G}/namespaces/ns1/nopes"),
        ("GET", f"{G}/namespaces/ns1/clustergadgets"),
        ("POST", f"{G}/gadgets"),
        ("DELETE", f"{G}/gadgets"),
        ("GET", f"{G}/gadgets/x"),
        ("GET", f"{G}/proxy/gadgets"),
        ("GET", f"{G}/watch"),
        ("GET", f"//{G}/gadgets"),
        ("GET", f"{G}//gadgets"),
        ("GET", f"{G}/namespaces/ns1//gadgets"),
        ("GET", f"{G}/namespaces/..%2Fclustergadgets/gadgets"),
        ("GET", "/debug/pprof"),
        ("GET", "/metrics2"),
        ("OPTIONS", "/nope"),
    ],
)
async def test_t005_an_address_that_nobody_serves_is_a_404_status(
    server: Listening, client: aiohttp.ClientSession, method: str, path: str
) -> None:
    async with client.request(method, yarl.URL(server.url + path, encoded=True), allow_redirects=False) as response:
        status = await assert_status(response, 404, "NotFound")
        assert (status["message"], status["details"]) == (NOBODY, {})


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        pytest.param("PUT", GADGETS, "update", id="put on a collection"),
        pytest.param("PATCH", GADGETS, "patch", id="patch of a collection"),
        pytest.param("POST", f"{GADGETS}/x", "create", id="post on an object"),
        pytest.param("POST", f"{GADGETS}/x/status", "create", id="post on a status"),
        pytest.param("DELETE", f"{GADGETS}/x/status", "delete", id="delete of a status"),
        pytest.param("DELETE", f"{GADGETS}/x/scale", "delete", id="delete of a scale"),
        pytest.param("OPTIONS", GADGETS, "", id="options"),
        pytest.param("TRACE", f"{GADGETS}/x", "", id="trace"),
    ],
)
async def test_t006_a_verb_that_a_resource_lacks_is_a_405_status(client: aiohttp.ClientSession, method: str, path: str, verb: str) -> None:
    async with client.request(method, path) as response:
        status = await assert_status(response, 405, "MethodNotAllowed")
        assert status["message"] == f'{verb} is not supported on resources of kind "gadgets.example.dev"'
        assert status["details"] == {"group": "example.dev", "kind": "gadgets"}


@pytest.mark.parametrize("path", [f"{GADGETS}/x/nope", f"{G}/clustergadgets/x/status"])
async def test_a_subresource_that_a_resource_lacks_is_a_404_of_the_object(client: aiohttp.ClientSession, path: str) -> None:
    async with client.get(path) as response:
        status = await assert_status(response, 404, "NotFound")
        assert status["message"].endswith('.example.dev "x" not found')


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{GADGETS}/..", "Name parameter invalid: \"..\": may not be '..'"),
        (f"{GADGETS}/.", "Name parameter invalid: \".\": may not be '.'"),
        (f"{GADGETS}/%2e%2e", "Name parameter invalid: \"..\": may not be '..'"),
        (f"{GADGETS}/a%25b", "Name parameter invalid: \"a%b\": may not contain '%'"),
        (f"{GADGETS}/a%00b", 'Name parameter invalid: "a\\x00b": may not contain NUL'),
        (f"{G}/namespaces/../gadgets/x", "Namespace parameter invalid: \"..\": may not be '..'"),
        (f"{G}/namespaces/../gadgets", "Namespace parameter invalid: \"..\": may not be '..'"),
    ],
)
async def test_a_name_that_could_mean_another_place_is_a_400(
    server: Listening, client: aiohttp.ClientSession, path: str, message: str
) -> None:
    async with client.get(yarl.URL(server.url + path, encoded=True), allow_redirects=False) as response:
        assert (await assert_status(response, 400, "BadRequest"))["message"] == message


async def test_head_is_a_get_without_a_body(client: aiohttp.ClientSession) -> None:
    for path in (GADGETS, f"{G}/gadgets", "/version", "/apis"):
        async with client.get(path) as got, client.head(path) as response:
            assert (response.status, await response.read()) == (200, b"")
            # What is made for the answer to a GET alone may be left out of the answer to a HEAD, but never be wrong.
            assert response.headers.get("Content-Length", got.headers["Content-Length"]) == got.headers["Content-Length"]
            assert response.headers["Content-Type"] == got.headers["Content-Type"]


async def test_the_version_is_one_that_kubectl_reads(client: aiohttp.ClientSession) -> None:
    async with client.get("/version") as response:
        info = await response.json()
    assert (info["major"], info["minor"]) == ("1", "37")
    assert info["gitVersion"].startswith("v1.37.2+clrk.")
    assert set(info) == set(version_info("0"))
    async with client.put("/version") as response:
        await assert_status(response, 405, "MethodNotAllowed")


async def test_the_index_lists_what_can_be_asked_for(client: aiohttp.ClientSession) -> None:
    async with client.get("/") as response:
        assert response.content_type == "application/json"
        paths = (await response.json())["paths"]
    assert paths == sorted(paths)
    assert {"/apis", "/apis/example.dev", "/apis/example.dev/v1", "/healthz/ping", "/metrics", "/openapi/v2", "/version"} <= set(paths)
    for path in paths:
        async with client.get(path) as response:
            assert response.status == 200, path
    async with client.post("/") as response:
        await assert_status(response, 405, "MethodNotAllowed")
