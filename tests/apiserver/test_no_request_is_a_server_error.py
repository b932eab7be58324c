"""Whatever a client sends gets an answer below 500, and what is refused has changed nothing.

Requests are put together from parts that are right, odd or broken: each part alone is covered by the tests of its endpoint, here they meet.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yarl import URL

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates
from apiserver.config import Config
from storage.memory import MemoryStore
from tests.apiserver.running import Listening, listening

POOL: dict[str, Any] = {
    "apiVersion": "clrk.apoxy.dev/v1alpha1",
    "kind": "WorkerPool",
    "metadata": {"name": "a", "labels": {"app": "x"}, "annotations": {"n": "1"}, "finalizers": ["example.dev/f"]},
    "spec": {
        "replicas": 1,
        "template": {"image": "registry.example/w:1", "env": [{"name": "A", "value": "1"}], "nodeSelector": {"k": "v"}},
    },
    "status": {"readyReplicas": 1},
}
SCALE: dict[str, Any] = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 2}}
OPTIONS: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan", "preconditions": {"uid": "x"}}
JSON_PATCH = [{"op": "add", "path": "/spec/replicas", "value": 2}, {"op": "test", "path": "/metadata/name", "value": "a"}]

ODD_TEXTS = (
    "",
    "a",
    "A_",
    "a/b",
    "..",
    "%00",
    "\u00e9",
    "\u0000",
    "\U0001f600",
    "x" * 300,
    "-1",
    "1e9",
    "9" * 40,
    "null",
    "true",
    "{}",
    "\ud800",
)
"""Names, versions, selectors and numbers that are none, or nearly."""
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0.5,
    1e400,
    2**63,
    2**70,
    "",
    [],
    {},
    [None],
    {"": None},
    [[[]]],
    {"a": {"b": 1}},
    *ODD_TEXTS,
)
QUERIES = {
    **dict.fromkeys(("resourceVersion", "limit", "timeoutSeconds", "gracePeriodSeconds"), ("0", "1", "-1", "10")),
    **dict.fromkeys(("sendInitialEvents", "allowWatchBookmarks", "force", "pretty", "orphanDependents"), ("true", "false", "1")),
    "resourceVersionMatch": ("Exact", "NotOlderThan"),
    "continue": ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "AAAA", "e30"),
    "labelSelector": ("app=x", "a in (b,c)", "!x", "a=b=c", "a in (", "\u00e9"),
    "fieldSelector": ("metadata.name=a", "spec.x!=1", "=", "metadata.name=a\\,b"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "strict"),
    "fieldManager": ("m", "m\n", "x" * 129),
    "dryRun": ("All", "None"),
    "propagationPolicy": ("Foreground", "Orphan", "Background"),
}
CONTENT_TYPES = (
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "text/plain",
    "application/json; charset=utf-16",
    ";",
)
ACCEPTS = (
    "application/json",
    "application/yaml",
    "*/*",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=Bogus",
    "text/html;q=x",
    ",;=",
)

odd = st.sampled_from(ODD_VALUES)


def spoiled(value: Any) -> st.SearchStrategy[Any]:
    """`value` with something odd in one place."""
    if isinstance(value, dict) and value:
        put = st.sampled_from(sorted(value)).flatmap(lambda key: spoiled(value[key]).map(lambda inner: {**value, key: inner}))
        more = st.tuples(st.sampled_from(ODD_TEXTS), odd).map(lambda added: {**value, added[0]: added[1]})
        return st.one_of(put, put, put, more, odd)
    if isinstance(value, list) and value:
        put_at = st.integers(0, len(value) - 1).flatmap(
            lambda place: spoiled(value[place]).map(lambda inner: [*value[:place], inner, *value[place + 1 :]])
        )
        return st.one_of(put_at, put_at, odd)
    return odd


def encoded(value: Any) -> bytes:
    """With what orjson refuses to write: Infinity, large numbers and halves of a character."""
    return json.dumps(value).encode()


values = st.sampled_from((POOL, SCALE, OPTIONS, JSON_PATCH, {"spec": {"replicas": 2}}, {"metadata": {"finalizers": None}}))
documents = st.one_of(values, values.flatmap(spoiled), values.flatmap(spoiled).flatmap(spoiled)).map(encoded)
bodies = st.one_of(
    documents,
    documents,
    documents,
    st.tuples(documents, st.integers(0, 400)).map(lambda cut: cut[0][: cut[1]]),
    st.tuples(documents, st.integers(0, 400), st.binary(max_size=3)).map(lambda put: put[0][: put[1]] + put[2] + put[0][put[1] :]),
    st.binary(max_size=40),
    st.sampled_from(
        (
            *(
                b"",
                b"null",
                b"[" * 2000,
                b"{" * 300,
                b'{"a":' * 300,
                b"k8s\x00\n\x00",
                b"\xef\xbb\xbf{}",
                b"\xff\xfe{\x00}\x00",
                b"- 1\n- 2",
                b"a: *x",
            ),
            *(
                b"a: &x [*x]",
                b"? {a: 1}\n: 2",
                b"!!python/object:os.system {}",
                b"a: !!binary x",
                b"---\na: 1\n---\nb: 2",
                b"%YAML 9.9\n---\n",
                b"\t",
                b"a: 2026-99-99",
            ),
            *(b"a: .inf", b"1: 2", b"<<: {a: 1}", b"a: 0o9", b"=: 1", b"a: 1:99", b"{a: 'x"),
        )
    ),
)
segments = st.sampled_from(
    ("apis", "clrk.apoxy.dev", "v1alpha1", "namespaces", "n", "workerpools", "a", "status", "scale", "watch", "proxy", *ODD_TEXTS)
)
GROUP = "/apis/clrk.apoxy.dev/v1alpha1"
known_paths = st.sampled_from(
    (
        *(f"{GROUP}/namespaces/n/workerpools{rest}" for rest in ("", "", "/a", "/a", "/a", "/a", "/a/status", "/a/scale", "/b", "/")),
        *(
            f"{GROUP}/workerpools",
            f"{GROUP}/watch/workerpools",
            f"{GROUP}/watch/namespaces/n/workerpools/a",
            GROUP,
            "/apis",
            "/api",
            "/openapi/v2",
        ),
        *(
            "/openapi/v3/apis/clrk.apoxy.dev/v1alpha1",
            "/version",
            "/readyz/etcd",
            "/metrics",
            "/apis/clrk.apoxy.dev",
            "/livez",
            "/openapi/v3",
            "/",
        ),
    )
)
paths = st.one_of(
    known_paths,
    known_paths,
    known_paths,
    st.lists(segments, max_size=8).map(
        lambda parts: "/" + "/".join(quote(part.encode("utf-8", "surrogatepass"), safe="%./") for part in parts)
    ),
)
parameters = st.lists(
    st.sampled_from(sorted(QUERIES)).flatmap(
        lambda name: st.tuples(st.just(name), st.one_of(st.sampled_from(QUERIES[name]), st.sampled_from(ODD_TEXTS)))
    ),
    max_size=4,
)
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
POOLS = f"{GROUP}/namespaces/n/workerpools"
DEEDS: tuple[tuple[str, str, str, Any], ...] = (
    ("POST", POOLS, JSON, {**POOL, "metadata": {"generateName": "g-"}}),
    ("PUT", f"{POOLS}/a", JSON, POOL),
    ("PUT", f"{POOLS}/a/status", JSON, POOL),
    ("PUT", f"{POOLS}/a/scale", JSON, SCALE),
    ("PATCH", f"{POOLS}/a", MERGE, POOL),
    ("PATCH", f"{POOLS}/a", APPLY, POOL),
    ("PATCH", f"{POOLS}/a", "application/json-patch+json", JSON_PATCH),
    ("PATCH", f"{POOLS}/a/status", MERGE, POOL),
    ("PATCH", f"{POOLS}/a/scale", MERGE, SCALE),
    ("DELETE", f"{POOLS}/a", JSON, OPTIONS),
    ("DELETE", POOLS, JSON, OPTIONS),
)
"""What is right: method, address, kind of body and body."""


def requests_like(deed: tuple[str, str, str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """What is right, but for some parts of it."""
    method, path, content_type, value = deed
    own = st.one_of(spoiled(value), spoiled(value), spoiled(value).flatmap(spoiled)).map(encoded)
    return st.fixed_dictionaries(
        {
            "method": st.just(method),
            "path": st.just(path),
            "query": st.one_of(st.just([("fieldManager", "m"), ("force", "true")]), st.just([("fieldManager", "m")]), parameters),
            "content_type": st.just(content_type),
            "accept": st.one_of(st.just(JSON), st.sampled_from(ACCEPTS)),
            "encoding": st.none(),
            "body": st.one_of(own, own, own, bodies),
        }
    )


requests = st.one_of(
    st.sampled_from(DEEDS).flatmap(requests_like),
    st.sampled_from(DEEDS).flatmap(requests_like),
    st.fixed_dictionaries(
        {
            "method": st.sampled_from(("GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")),
            "path": paths,
            "query": parameters,
            "content_type": st.sampled_from(CONTENT_TYPES),
            "accept": st.sampled_from(ACCEPTS),
            "encoding": st.sampled_from((None, "gzip", "br", "identity;q=0", ";")),
            "body": bodies,
        }
    ),
)


def target(request: dict[str, Any]) -> str:
    """The address of the request."""
    pairs = [(name, quote(value.encode("utf-8", "surrogatepass"))) for name, value in request["query"]]
    return f"{request['path']}?" + "&".join(f"{name}={value}" for name, value in pairs)


class Answer(NamedTuple):
    """What came back. Only of a refusal is there a body, and known whether anything was written."""

    code: int
    body: bytes
    content_type: str
    written: bool


class Sender:
    """A server of our kinds over a store in memory, and a client of it, driven from outside of their loop."""

    def __init__(self, runner: asyncio.Runner, listening: Listening, client: aiohttp.ClientSession, store: MemoryStore) -> None:
        self.runner = runner
        self.listening = listening
        self.client = client
        self.store = store

    def send(self, request: dict[str, Any]) -> Answer:
        return self.runner.run(self._send(request))

    async def _have_one(self) -> None:
        """There is always something to read, change and delete; what waits for finalizers is let go."""
        path = f"{GROUP}/namespaces/n/workerpools"
        async with self.client.get(f"{path}/a") as found:
            value = await found.json()
        if "deletionTimestamp" in value["metadata"]:
            loosened = {"metadata": {"finalizers": None}}
            headers = {"Content-Type": "application/merge-patch+json"}
            async with self.client.patch(f"{path}/a", json=loosened, headers=headers) as response:
                assert response.status == 200
        elif found.status == 200:
            return
        async with self.client.post(path, json=POOL) as response:
            assert response.status == 201, await response.text()

    async def _send(self, request: dict[str, Any]) -> Answer:
        await self._have_one()
        before = await self.store.current_revision()
        headers = {"Content-Type": request["content_type"], "Accept": request["accept"]}
        if request["encoding"] is not None:
            headers["Accept-Encoding"] = request["encoding"]
        url = URL(self.listening.url + target(request), encoded=True)
        async with self.client.request(request["method"], url, data=request["body"], headers=headers, allow_redirects=False) as response:
            if response.status < 400:  # among them watches, which go on
                response.close()
                return Answer(response.status, b"", "", False)
            body = await response.read()
            return Answer(response.status, body, response.content_type, await self.store.current_revision() != before)


@pytest.fixture(scope="module")
def sender(pki: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    async def start(stack: AsyncExitStack, runner: asyncio.Runner) -> Sender:
        store = MemoryStore()
        stack.push_async_callback(store.close)
        config = Config(data_dir=tmp_path_factory.mktemp("data"), store_name="etcd", enable_garbage_collector=True)
        app = build_app(config, store, standalone([pki.authority.certificate]))
        await stack.enter_async_context(app.running())
        await app.wait_ready()
        running = await stack.enter_async_context(listening(pki, app.handle, app=app))
        client = await stack.enter_async_context(running.client(pki.admin))
        return Sender(runner, running, client, store)

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield runner.run(start(stack, runner))
        finally:
            runner.run(stack.aclose())


@settings(max_examples=1500, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request_=requests)
def test_no_request_is_a_server_error(sender: Sender, request_: dict[str, Any]) -> None:
    answer = sender.send(request_)
    assert answer.code < 500, answer
    assert not answer.written
    if answer.code >= 400 and request_["method"] != "HEAD" and request_["path"].startswith(GROUP + "/"):
        assert answer.content_type in ("application/json", "application/yaml")
        status = yaml.safe_load(answer.body)
        assert (status["kind"], status["code"]) == ("Status", answer.code)
