"""Bodies: how long, of what type, and what cannot be understood."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest

from apiserver.endpoints.body import LIMIT_BYTES
from tests.apiserver.endpoints.gadget_requests import GADGETS, JSON, JSON_PATCH, MERGE, YAML, gadget
from tests.apiserver.status_assertions import assert_status


def padded(size: int) -> bytes:
    """A gadget of exactly this many bytes."""
    empty = orjson.dumps(gadget(spec={"note": ""}))
    return orjson.dumps(gadget(spec={"note": "x" * (size - len(empty))}))


async def chunks(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 64 * 1024):
        yield body[start : start + 64 * 1024]


async def test_a_body_of_more_than_a_megabyte_is_stored(client: aiohttp.ClientSession) -> None:
    """T025"""
    async with client.post(GADGETS, data=io.BytesIO(padded(1_200_000)), headers=JSON) as response:
        assert response.status == 201, await response.text()


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [("POST", GADGETS, JSON), ("PUT", f"{GADGETS}/x", JSON), ("PATCH", f"{GADGETS}/x", MERGE), ("DELETE", f"{GADGETS}/x", JSON)],
    ids=["post", "put", "patch", "delete"],
)
async def test_one_byte_above_the_limit_is_too_many(
    client: aiohttp.ClientSession, method: str, path: str, headers: dict[str, str], chunked: bool
) -> None:
    """T025"""
    body = padded(LIMIT_BYTES + 1)
    async with client.request(method, path, data=chunks(body) if chunked else io.BytesIO(body), headers=headers) as response:
        status = await assert_status(response, 413, "RequestEntityTooLarge")
    assert status["message"] == "Request entity too large: limit is 3145728"
    async with client.get(GADGETS) as response:
        assert response.status == 200


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
async def test_a_body_of_exactly_the_limit_is_read(client: aiohttp.ClientSession, chunked: bool) -> None:
    """T025"""
    body = padded(LIMIT_BYTES)
    assert len(body) == LIMIT_BYTES
    async with client.post(GADGETS, data=chunks(body) if chunked else io.BytesIO(body), headers=JSON) as response:
        assert response.status != 413 or "limit is 3145728" not in await response.text()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"),
        ("{", "couldn't get version/kind; json parse error: unexpected end of JSON input ({)"),
        ("null", "Object 'Kind' is missing in 'null' (6e756c6c)"),
        ('{"metadata":{"name":"x"}}', 'Object \'Kind\' is missing in \'{"metadata":{"name":"x"}}\' ({"metadata":{"name":"x"}})'),
        ('{"apiVersion":"a/b/c","kind":"Gadget"}', 'unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)'),
        (
            '{"apiVersion":5,"kind":"Gadget"}',
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string "
            '({"apiVersion":5,"kind":"Gadget ...)',
        ),
    ],
    ids=["empty", "cut-off", "null", "no-kind", "version-of-three-parts", "version-is-a-number"],
)
async def test_what_is_no_object_is_told_in_upstreams_words(client: aiohttp.ClientSession, body: str, message: str) -> None:
    async with client.post(GADGETS, data=body, headers=JSON) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"] == f"the object provided is unrecognized (must be of type Gadget): {message}"


async def test_metadata_of_a_wrong_type_is_told_in_upstreams_words(client: aiohttp.ClientSession) -> None:
    async with client.post(GADGETS, json=gadget(labels={"a": 1})) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"] == (
        'Gadget in version "v1" cannot be handled as a Gadget: '
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    )


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "application/vnd.kubernetes.protobuf", "nonsense"])
async def test_media_types_that_cannot_be_read_are_told(client: aiohttp.ClientSession, content_type: str) -> None:
    async with client.post(GADGETS, data=b"{}", headers={"Content-Type": content_type}) as response:
        status = await assert_status(response, 415, "UnsupportedMediaType")
    assert status["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


async def test_parameters_of_the_media_type_do_not_matter(client: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    async with client.post(GADGETS, data=orjson.dumps(gadget()), headers=headers) as response:
        assert response.status == 201


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(BOMB.encode(), YAML, id="aliases"),
        pytest.param(b"[" * LIMIT_BYTES, JSON, id="brackets"),
        pytest.param(b"[" * LIMIT_BYTES, YAML, id="brackets-in-yaml"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, JSON, id="nested-arrays"),
        pytest.param(b"!!python/object/apply:os.system [touch /tmp/never]", YAML, id="a-tag-that-constructs"),
        pytest.param(b'{"' + b"k" * 1_000_000 + b'":1}', JSON, id="long-key"),
    ],
)
async def test_documents_that_are_more_than_they_seem_are_refused(
    client: aiohttp.ClientSession, body: bytes, headers: dict[str, str]
) -> None:
    """T027"""
    async with client.post(GADGETS, data=io.BytesIO(body), headers=headers) as response:
        await assert_status(response, 400, "BadRequest")


async def test_a_patch_nested_deeper_than_can_be_walked_is_refused(client: aiohttp.ClientSession) -> None:
    """T027"""
    await client.post(GADGETS, json=gadget())
    async with client.patch(f"{GADGETS}/x", data='{"spec":{"x":' + '{"a":' * 1000 + "1" + "}" * 1002, headers=MERGE) as response:
        await assert_status(response, 400, "BadRequest")


def nested(rounds: int, *, leaf: str = "") -> list[dict[str, Any]]:
    """A patch of a kilobyte for each round, which puts what it has made so far 200 levels deeper into a copy of its template."""
    inner = "/0" * 199
    template: Any = []
    for _ in range(199):
        template = [template]
    operations = [{"op": "add", "path": "/t", "value": template}, {"op": "add", "path": "/made", "value": leaf}]
    for _ in range(rounds):
        operations += [
            {"op": "copy", "from": "/t", "path": "/next"},
            {"op": "move", "from": "/made", "path": f"/next{inner}/-"},
            {"op": "move", "from": "/next", "path": "/made"},
        ]
    return [*operations, {"op": "remove", "path": "/t"}]


@pytest.mark.parametrize(
    "then",
    [
        pytest.param([{"op": "move", "from": "/made", "path": "/spec/note"}], id="where something else should be"),
        pytest.param([{"op": "move", "from": "/made", "path": "/spec/unknown"}], id="where nothing should be"),
        pytest.param([{"op": "move", "from": "/made", "path": "/metadata/annotations"}], id="in metadata"),
        pytest.param([{"op": "copy", "from": "/made", "path": "/spec/note"}], id="copied"),
    ],
)
@pytest.mark.parametrize("rounds", [2, 10, 2_000])
async def test_a_json_patch_nests_no_deeper_than_a_body_may(client: aiohttp.ClientSession, rounds: int, then: list[dict[str, Any]]) -> None:
    """Each of its operations is as flat as it has to be; together they make what no walk should meet."""
    await client.post(GADGETS, json=gadget())
    patch = io.BytesIO(orjson.dumps([*nested(rounds), *then]))
    async with client.patch(f"{GADGETS}/x", data=patch, headers=JSON_PATCH) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"] == "error decoding patch: exceeded max depth"
    async with client.get(f"{GADGETS}/x") as response:
        assert (await response.json())["metadata"]["generation"] == 1
