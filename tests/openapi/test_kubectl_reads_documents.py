"""The real kubectl finds our descriptions in the documents, in the three ways in which it reads them.

The server here is as little as kubectl needs: discovery and documents.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest
from aiohttp import web

from apiserver.core import Affinity, Toleration
from apiserver.meta.resource import Int32, Model, Resource, describe
from openapi import v2, v2_protobuf, v3
from tests import tools

pytestmark = pytest.mark.kubectl


class PoolSpec(Model):
    """What is wanted of a pool."""

    replicas: Int32 = 1
    """How many there are."""
    affinity: Affinity | None = None
    """Where they run."""
    toleration: Toleration | None = None


class Pool(Resource):
    """A set of equal things."""

    group: ClassVar[str] = "pools.example.com"
    version: ClassVar[str] = "v1"
    plural: ClassVar[str] = "pools"

    spec: PoolSpec
    """What is wanted of the pool."""


@pytest.fixture
async def address() -> AsyncIterator[str]:
    """The address of a server that publishes Pool."""
    published = [describe(Pool).published]
    swagger = v2.document(published, title="t", version="v1")
    documents = v3.documents(published, title="t", version="v1")
    version = {"groupVersion": "pools.example.com/v1", "version": "v1"}
    group = {"name": "pools.example.com", "versions": [version], "preferredVersion": version}
    resource = {"name": "pools", "singularName": "pool", "namespaced": True, "kind": "Pool", "verbs": ["get", "list"]}

    async def answer(request: web.Request) -> web.Response:
        path = request.path.strip("/")
        if path == "apis":
            return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]})
        if path == "apis/pools.example.com/v1":
            found = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "pools.example.com/v1", "resources": [resource]}
            return web.json_response(found)
        if path == "openapi/v2" and request.headers["Accept"].startswith(v2_protobuf.ACCEPTED):
            return web.Response(body=v2_protobuf.encoded(swagger).content, content_type=v2_protobuf.MEDIA_TYPE)
        if path == "openapi/v3":
            return web.Response(body=v3.index(documents).content, content_type="application/json")
        name = path.removeprefix("openapi/v3/")
        if name in documents and request.query["hash"] == documents[name].etag:
            return web.Response(body=documents[name].content, content_type="application/json")
        return web.json_response({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}, status=404)

    runner = web.ServerRunner(web.Server(answer))  # type: ignore[arg-type]
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


@pytest.mark.parametrize("program", ["kubectl-1.32", "kubectl"])
@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (
            ["explain", "pools"],
            ["GROUP:      pools.example.com", "KIND:       Pool", "A set of equal things.", "What is wanted of the pool."],
        ),
        (["explain", "pool.spec.affinity", "--recursive"], ["Where they run.", "podAntiAffinity", "labelSelector", "matchExpressions"]),
        (
            ["explain", "pool.spec.toleration.effect"],
            ["ENUM: NoExecute NoSchedule PreferNoSchedule", "Effect of the taint that is tolerated"],
        ),
        (["explain", "pool.spec.replicas", "--output=plaintext-openapiv2"], ["FIELD:    replicas <integer>", "How many there are."]),
        (
            ["explain", "pool.spec", "--output=plaintext-openapiv2", "--recursive"],
            ["What is wanted of the pool.", "podAffinityTerm", "<[]Object>"],
        ),
    ],
    ids=["kind", "recursive", "enum", "v2", "v2_recursive"],
)
async def test_explain_prints_our_descriptions(address: str, tmp_path: Path, program: str, arguments: list[str], texts: list[str]) -> None:
    """T012: both forms of the document lead from a kind to its schema."""
    kubectl = await asyncio.to_thread(tools.path, program)
    process = await asyncio.create_subprocess_exec(
        kubectl,
        *(f"--server={address}", f"--cache-dir={tmp_path}", "--kubeconfig=/dev/null"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    printed = " ".join(output.decode().split())
    for text in texts:
        assert " ".join(text.split()) in printed
