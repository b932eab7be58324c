"""The published documents, over real HTTP."""

from __future__ import annotations

import gzip

import aiohttp
import orjson

from apiserver.endpoints.openapi import Documents
from apiserver.meta.resource import describe
from openapi import v2_protobuf
from openapi.document import encoded
from tests.apiserver.gadgets import Gadget
from tests.apiserver.reading import read
from tests.apiserver.status_assertions import assert_status


async def test_v3_addresses_carry_the_hash_of_their_content(client: aiohttp.ClientSession) -> None:
    """T010."""
    index = await read(client, "/openapi/v3")
    assert "apis/example.dev/v1" in index["paths"]
    for name, entry in index["paths"].items():
        url = entry["serverRelativeURL"]
        assert url.startswith(f"/openapi/v3/{name}?hash=")
        async with client.get(url) as response:
            assert response.status == 200
            assert response.headers["Cache-Control"] == "public, immutable"
            assert response.headers["Expires"].endswith("GMT")
            assert response.headers["ETag"] == f'"{url.partition("=")[2]}"'
            assert response.headers["Vary"].startswith("Accept")
            document = orjson.loads(await response.read())
        assert document["openapi"] == "3.0.0"
        assert all(path.strip("/").startswith(name) for path in document["paths"])


async def test_old_hash_is_sent_to_the_new_address(client: aiohttp.ClientSession) -> None:
    async with client.get("/openapi/v3/apis/example.dev/v1?hash=OLD", allow_redirects=False) as response:
        assert response.status == 301
        location = response.headers["Location"]
    assert (await read(client, location))["openapi"] == "3.0.0"


async def test_document_is_sent_once(client: aiohttp.ClientSession) -> None:
    for path in ("/openapi/v2", "/openapi/v3", "/openapi/v3/apis/example.dev/v1"):
        async with client.get(path) as response:
            etag = response.headers["ETag"]
            assert "immutable" not in response.headers["Cache-Control"]
        async with client.get(path, headers={"If-None-Match": f'"x", {etag}'}) as response:
            assert response.status == 304
            assert response.headers["ETag"] == etag


async def test_v2_comes_as_json_and_as_the_protobuf_that_kubectl_asks_for(client: aiohttp.ClientSession) -> None:
    """T012."""
    document = await read(client, "/openapi/v2")
    kinds = [kind for definition in document["definitions"].values() for kind in definition.get("x-kubernetes-group-version-kind", [])]
    for name in ("Gadget", "GadgetList"):
        assert {"group": "example.dev", "version": "v1", "kind": name} in kinds
    for accept in v2_protobuf.ACCEPTED:
        async with client.get("/openapi/v2", headers={"Accept": accept}) as response:
            assert response.status == 200
            assert response.headers["Content-Type"] == v2_protobuf.MEDIA_TYPE
            assert (await response.read()) == v2_protobuf.encoded(encoded(document)).content


async def test_t010_words_of_another_server_make_another_document_and_the_same_words_none() -> None:
    documents = Documents([describe(Gadget)], title="t", version="v1")
    name = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
    words = {name: {"description": "In other words.", "type": "string", "format": "date-time"}}

    async def etag() -> str:
        return (await documents.get("v2"))["application/json"].hash

    ours = await etag()
    documents.adopt(words)
    theirs, made_at = await etag(), documents.made_at
    assert theirs != ours
    assert orjson.loads((await documents.get("v2"))["application/json"].content)["definitions"][name] == words[name]
    making = documents.get("v2")
    documents.adopt(dict(words))
    assert (await making)["application/json"].hash == await etag() == theirs
    assert documents.made_at == made_at
    documents.adopt({})
    assert await etag() == ours


async def test_documents_are_compressed_for_who_takes_it(client: aiohttp.ClientSession) -> None:
    plain = await read(client, "/openapi/v2")
    async with client.get("/openapi/v2", headers={"Accept-Encoding": "gzip"}, auto_decompress=False) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert response.headers.getall("Vary") == ["Accept", "Accept-Encoding"]
        assert orjson.loads(gzip.decompress(await response.read())) == plain


async def test_form_that_there_is_not_is_refused(client: aiohttp.ClientSession) -> None:
    accept = {"Accept": "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"}
    async with client.get("/openapi/v3/apis/example.dev/v1", headers=accept) as response:
        await assert_status(response, 406, "NotAcceptable")
    async with client.get("/openapi/v3/apis/nope.example/v1") as response:
        await assert_status(response, 404, "NotFound")
