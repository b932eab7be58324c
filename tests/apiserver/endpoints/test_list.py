"""Lists over real HTTP: freshness, pages, selectors, forms, compression."""

from __future__ import annotations

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator

import aiohttp
import orjson
import pytest
import yaml

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates
from apiserver.config import Config
from storage.cache import CacheLimits
from storage.history import RingLimits
from storage.memory import MemoryStore
from tests.apiserver.reading import (
    ALL_GADGETS,
    GADGETS,
    METADATA,
    METADATA_LIST,
    TABLE,
    brief,
    change,
    create,
    gadgets_of,
    names,
    read,
    watching,
)
from tests.apiserver.running import Listening, listening
from tests.apiserver.status_assertions import assert_status


async def create_many(client: aiohttp.ClientSession, count: int, *, note: str | None = None) -> None:
    for start in range(0, count, 100):
        await asyncio.gather(*(create(client, f"g{number:04d}", note=note) for number in range(start, min(start + 100, count))))


@pytest.mark.parametrize("accept", ["application/json", TABLE, METADATA_LIST], ids=["whole", "table", "metadata"])
async def test_empty_list_has_a_version_to_watch_from(client: aiohttp.ClientSession, accept: str) -> None:
    """T055."""
    listed = await read(client, GADGETS, accept=accept)
    assert int(listed["metadata"]["resourceVersion"]) > 0
    assert listed["rows" if accept == TABLE else "items"] == []


async def test_list_holds_whole_objects(client: aiohttp.ClientSession) -> None:
    """T112, T055."""
    made = [await create(client, name, note="n") for name in ("a", "b", "c")]
    for number, value in enumerate(made):
        path = f"{GADGETS}/{value['metadata']['name']}/status"
        async with client.put(path, json=value | {"status": {"readyReplicas": number}}) as response:
            made[number] = await response.json()
    assert all(value["spec"] and value["status"] and len(value["metadata"]["managedFields"]) == 2 for value in made)
    async with watching(client) as events:
        assert [event["object"] for event in await events.take(3)] == made
    listed = await read(client, GADGETS)
    assert (listed["kind"], listed["apiVersion"]) == ("GadgetList", "example.dev/v1")
    assert listed["items"] == made
    assert [await read(client, f"{GADGETS}/{name}") for name in ("a", "b", "c")] == made
    assert int(listed["metadata"]["resourceVersion"]) >= int(made[-1]["metadata"]["resourceVersion"])


async def test_namespace_is_not_the_prefix_of_another(client: aiohttp.ClientSession) -> None:
    """T065."""
    for namespace in ("a", "a-b", "ab", "b"):
        await create(client, "x", namespace=namespace)
    assert [item["metadata"]["namespace"] for item in (await read(client, gadgets_of("a")))["items"]] == ["a"]
    assert len((await read(client, ALL_GADGETS))["items"]) == 4


async def test_pages_show_one_revision_and_tell_what_is_left(client: aiohttp.ClientSession) -> None:
    """T053: the same for whole objects, tables and metadata."""
    await create_many(client, 25)
    for accept, items in (("application/json", "items"), (TABLE, "rows"), (METADATA_LIST, "items")):
        seen = []
        page = await read(client, GADGETS, accept=accept, limit=10)
        version = page["metadata"]["resourceVersion"]
        assert page["metadata"]["remainingItemCount"] == 15
        while True:
            seen += [(item["object"] if accept == TABLE else item)["metadata"]["name"] for item in page[items]]
            assert page["metadata"]["resourceVersion"] == version
            token = page["metadata"].get("continue", "")
            if not token:
                break
            await change(client, "g0024", {"metadata": {"annotations": {"seen": str(len(seen))}}})
            page = await read(client, GADGETS, accept=accept, limit=10, continue_=token)
        assert "remainingItemCount" not in page["metadata"]
        assert seen == [f"g{number:04d}" for number in range(25)]


async def test_page_with_a_selector_does_not_count_what_is_left(client: aiohttp.ClientSession) -> None:
    for number in range(10):
        await create(client, f"g{number}", labels={"parity": "odd" if number % 2 else "even"})
    page = await read(client, GADGETS, limit=3, labelSelector="parity=odd")
    assert names(page) == ["g1", "g3", "g5"]
    assert "remainingItemCount" not in page["metadata"]
    rest = await read(client, GADGETS, limit=3, labelSelector="parity=odd", continue_=page["metadata"]["continue"])
    assert names(rest) == ["g7", "g9"]
    assert rest["metadata"]["continue"] == ""


async def test_continue_token_is_kubernetes_own(client: aiohttp.ClientSession) -> None:
    await create_many(client, 3)
    page = await read(client, GADGETS, limit=1)
    token = page["metadata"]["continue"]
    decoded = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert decoded == {"v": "meta.k8s.io/v1", "rv": int(page["metadata"]["resourceVersion"]), "start": "/g0000\0"}


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("%%%", "continue key is not valid"),
        ({"v": "meta.k8s.io/v2", "rv": 1, "start": "a"}, "server does not recognize this encoded version meta.k8s.io/v2"),
        ({"v": "meta.k8s.io/v1", "rv": 0, "start": "a"}, "incorrect encoded start resourceVersion"),
        ({"v": "meta.k8s.io/v1", "rv": 1, "start": ""}, "encoded start key empty"),
        ({"v": "meta.k8s.io/v1", "rv": 1, "start": "../ns2/a"}, "continue key is not valid: ../ns2/a"),
    ],
    ids=["no base64", "version", "revision", "empty", "outside"],
)
async def test_wrong_continue_token_is_refused(client: aiohttp.ClientSession, token: str | dict[str, object], problem: str) -> None:
    text = token if isinstance(token, str) else base64.urlsafe_b64encode(orjson.dumps(token)).rstrip(b"=").decode()
    async with client.get(GADGETS, params={"continue": text}) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"].startswith("invalid continue token: ")
    assert problem in status["message"]


async def test_continue_and_a_version_do_not_go_together(client: aiohttp.ClientSession) -> None:
    await create_many(client, 2)
    page = await read(client, GADGETS, limit=1)
    parameters = {"continue": page["metadata"]["continue"], "resourceVersion": page["metadata"]["resourceVersion"]}
    async with client.get(GADGETS, params=parameters) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"] == "specifying resource version is not allowed when using continue"


async def test_exact_version_shows_the_past(client: aiohttp.ClientSession) -> None:
    await create(client, "a")
    then = (await read(client, GADGETS))["metadata"]["resourceVersion"]
    await create(client, "b")
    await change(client, "a", {"spec": {"replicas": 7}})
    past = await read(client, GADGETS, resourceVersion=then, resourceVersionMatch="Exact")
    assert past["metadata"]["resourceVersion"] == then
    assert [item["spec"]["replicas"] for item in past["items"]] == [1]
    legacy = await read(client, GADGETS, resourceVersion=then, limit=5)
    assert names(legacy) == ["a"]
    assert names(await read(client, GADGETS, resourceVersion=then)) == ["a", "b"]
    assert names(await read(client, GADGETS, resourceVersion=then, resourceVersionMatch="NotOlderThan")) == ["a", "b"]
    await create(client, "c")
    one = await read(client, GADGETS, resourceVersion=then, limit=1, fieldSelector="metadata.name=a")
    assert (names(one), one["metadata"].get("continue", "")) == (["a"], "")
    # A limit means nothing when any version will do.
    assert names(await read(client, GADGETS, resourceVersion=0, limit=1)) == ["a", "b", "c"]


async def test_version_that_is_none_and_version_of_the_future(client: aiohttp.ClientSession) -> None:
    """T056, for lists."""
    async with client.get(GADGETS, params={"resourceVersion": "abc"}) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"] == (
        'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    )
    async with client.get(GADGETS, params={"resourceVersion": "100000000"}) as response:
        status = await assert_status(response, 504, "Timeout")
    assert status["message"].startswith("Timeout: Too large resource version: 100000000, current: ")


async def test_field_selectors(client: aiohttp.ClientSession) -> None:
    """T064."""
    for namespace, name in (("ns1", "x"), ("ns1", "y"), ("ns2", "x")):
        await create(client, name, namespace=namespace)

    async def found(path: str, selector: str) -> list[tuple[str, str]]:
        listed = await read(client, path, fieldSelector=selector)
        return [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in listed["items"]]

    assert await found(GADGETS, "metadata.name=x") == [("ns1", "x")]
    assert await found(GADGETS, "metadata.name!=x") == [("ns1", "y")]
    assert await found(ALL_GADGETS, "metadata.namespace=ns1") == [("ns1", "x"), ("ns1", "y")]
    assert await found(ALL_GADGETS, "metadata.name=x") == [("ns1", "x"), ("ns2", "x")]
    assert await found(GADGETS, "metadata.name=x,metadata.namespace=ns2") == []
    assert await found(ALL_GADGETS, "metadata.name=x,metadata.namespace=ns2") == [("ns2", "x")]
    for selector in ("spec.replicas=1", "metadata.uid=1"):
        async with client.get(GADGETS, params={"fieldSelector": selector}) as response:
            status = await assert_status(response, 400, "BadRequest")
        assert status["message"] == f"field label not supported: {selector.partition('=')[0]}"
    async with client.get(GADGETS, params={"fieldSelector": "metadata.name"}) as response:
        await assert_status(response, 400, "BadRequest")


async def test_metadata_only_clients_get_what_they_ask_for(client: aiohttp.ClientSession) -> None:
    """T066: the whole Accept list counts, and forms of lists and of objects are not mixed up."""
    made = await create(client, "a")
    accept = f"application/cbor;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{METADATA_LIST},application/json"
    listed = await read(client, GADGETS, accept=accept)
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert listed["items"] == [partial]
    assert await read(client, f"{GADGETS}/a", accept=METADATA) == partial
    for path, wrong in ((GADGETS, METADATA), (f"{GADGETS}/a", METADATA_LIST), (GADGETS, "application/cbor")):
        async with client.get(path, headers={"Accept": wrong}) as response:
            assert response.status == 406
            assert orjson.loads(await response.read())["reason"] == "NotAcceptable"


async def test_table_has_native_cells_and_the_object_that_was_asked_for(client: aiohttp.ClientSession) -> None:
    """T054."""
    made = await create(client, "a")
    table = await read(client, GADGETS, accept=TABLE)
    assert [(column["name"], column["type"]) for column in table["columnDefinitions"]] == [
        ("Name", "string"),
        ("Replicas", "integer"),
        ("Age", "date"),
    ]
    assert table["rows"][0]["cells"][:2] == ["a", 1]
    assert table["rows"][0]["object"]["metadata"] == made["metadata"]
    assert (await read(client, GADGETS, accept=TABLE, includeObject="Object"))["rows"][0]["object"] == made
    assert (await read(client, GADGETS, accept=TABLE, includeObject="None"))["rows"][0]["object"] is None
    async with client.get(GADGETS, params={"includeObject": "All"}, headers={"Accept": TABLE}) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"].endswith("must be 'Metadata', 'Object', 'None', or empty")
    single = await read(client, f"{GADGETS}/a", accept=TABLE)
    assert single["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert single["rows"][0]["cells"][0] == "a"


async def test_large_list_is_the_same_in_every_dress(client: aiohttp.ClientSession) -> None:
    """T117: streamed, compressed, indented, as YAML; and the same again from what has been kept."""
    await create_many(client, 600, note="x" * 500)
    plain = await read(client, GADGETS)
    assert len(plain["items"]) == 600
    for _ in range(2):
        async with client.get(GADGETS, headers={"Accept-Encoding": "gzip"}, auto_decompress=False) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            assert response.headers["Vary"] == "Accept-Encoding"
            body = await response.read()
        assert orjson.loads(gzip.decompress(body)) == plain
    async with client.get(GADGETS, headers={"Accept-Encoding": "gzip;q=1"}) as response:
        assert "Content-Encoding" not in response.headers
        assert orjson.loads(await response.read()) == plain
    async with client.get(GADGETS, params={"pretty": "1"}) as response:
        text = await response.read()
    assert orjson.loads(text) == plain
    assert text == orjson.dumps(plain, option=orjson.OPT_INDENT_2)
    async with client.get(GADGETS, params={"limit": "40"}, headers={"Accept": "application/yaml"}) as response:
        assert response.content_type == "application/yaml"
        page = yaml.safe_load(await response.read())
    assert page["items"] == plain["items"][:40]
    async with client.get(GADGETS, headers={"Accept-Encoding": "gzip", "Accept": TABLE}, auto_decompress=False) as response:
        rows = orjson.loads(gzip.decompress(await response.read()))["rows"]
    assert [row["cells"][0] for row in rows] == names(plain)
    for query in ({}, {"watch": "true"}):
        async with client.head(GADGETS, params=query) as response:
            assert response.status == 200
            assert await response.read() == b""
    await change(client, "g0300", {"spec": {"replicas": 9}})
    changed = await read(client, GADGETS)
    assert changed["items"][300]["spec"]["replicas"] == 9
    async with client.get(GADGETS, headers={"Accept-Encoding": "gzip"}, auto_decompress=False) as response:
        assert orjson.loads(gzip.decompress(await response.read())) == changed


async def test_small_list_is_not_compressed(client: aiohttp.ClientSession) -> None:
    await create(client, "a")
    async with client.get(GADGETS, headers={"Accept-Encoding": "gzip"}) as response:
        assert "Content-Encoding" not in response.headers
        assert int(response.headers["Content-Length"]) == len(await response.read())


@pytest.fixture
async def forgetful(pki: Certificates, store: MemoryStore, config: Config) -> AsyncIterator[Listening]:
    """A server whose cache remembers no more than four changes."""
    limits = CacheLimits(history=RingLimits(changes=4, snapshots=0))
    config = Config(data_dir=config.data_dir, kinds=config.kinds, store_name="etcd", cache=limits)
    app = build_app(config, store, standalone([pki.authority.certificate]))
    async with app.running():
        await app.wait_ready()
        async with listening(pki, app.handle, app=app) as running:
            yield running


async def test_page_that_comes_too_late_gets_a_token_to_go_on(forgetful: Listening, store: MemoryStore) -> None:
    """T061. Also: what the cache has forgotten comes from the store, as long as that remembers it."""
    async with forgetful.client(forgetful.pki.admin) as client:
        await create_many(client, 30)
        page = await read(client, GADGETS, limit=10)
        for number in range(20):
            await change(client, f"g{number:04d}", {"spec": {"replicas": 3}})
        token = page["metadata"]["continue"]
        second = await read(client, GADGETS, limit=10, continue_=token)
        assert [item["spec"]["replicas"] for item in second["items"]] == [1] * 10
        assert second["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]
        assert second["metadata"]["remainingItemCount"] == 10
        await store.compact(await store.current_revision())
        async with client.get(GADGETS, params={"limit": "10", "continue": token}) as response:
            assert response.status == 410
            status = orjson.loads(await response.read())
        assert status["reason"] == "Expired"
        assert status["message"].startswith("The provided continue parameter is too old to display a consistent list result.")
        rest = await read(client, GADGETS, limit=15, continue_=status["metadata"]["continue"])
        assert names(rest) == [f"g{number:04d}" for number in range(10, 25)]
        last = await read(client, GADGETS, continue_=rest["metadata"]["continue"])
        assert names(last) == [f"g{number:04d}" for number in range(25, 30)]
        async with client.get(
            GADGETS, params={"resourceVersion": page["metadata"]["resourceVersion"], "resourceVersionMatch": "Exact"}
        ) as response:
            status = await assert_status(response, 410, "Expired")
        assert status["message"] == "The resourceVersion for the provided list is too old."


async def test_watch_of_what_is_forgotten_is_an_error_event(forgetful: Listening) -> None:
    """T056, T057: 200, chunked, one line, 410, and a clean end."""
    async with forgetful.client(forgetful.pki.admin) as client:
        first = await create(client, "first")
        await create_many(client, 10)
        parameters = {"watch": "true", "resourceVersion": first["metadata"]["resourceVersion"]}
        async with client.get(GADGETS, params=parameters) as response:
            assert response.status == 200
            assert response.headers["Transfer-Encoding"] == "chunked"
            lines = (await response.read()).splitlines(keepends=True)
    assert len(lines) == 1
    assert lines[0].endswith(b"}\n")
    event = orjson.loads(lines[0])
    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: ")


async def test_what_the_store_has_compacted_is_not_listed_but_watched_while_it_is_remembered(
    client: aiohttp.ClientSession, server: Listening
) -> None:
    """T056 (a), T061: whoever compacted it. As in kube-apiserver, whose watches are served from its cache."""
    assert server.app is not None
    await create_many(client, 20)
    page = await read(client, GADGETS, limit=5)
    version = page["metadata"]["resourceVersion"]
    await change(client, "g0001", {"spec": {"replicas": 3}})
    async with watching(client, resourceVersion=version) as begun:
        assert brief(await begun.next()) == ("MODIFIED", "g0001")
        for resource in server.app.resources:
            await resource.cache.compact(await resource.cache.current_revision())
            await resource.cache.check_compaction()
        exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        for query in (exact, {"limit": "5", "continue": page["metadata"]["continue"]}):
            async with client.get(GADGETS, params=query) as response:
                assert (response.status, (await response.json())["reason"]) == (410, "Expired")
        async with watching(client, resourceVersion=version) as late:
            assert brief(await late.next()) == ("MODIFIED", "g0001")
        await change(client, "g0002", {"spec": {"replicas": 3}})
        assert brief(await begun.next()) == ("MODIFIED", "g0002")
