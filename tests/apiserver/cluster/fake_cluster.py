"""What a kube-apiserver says of reviews, ConfigMaps and namespaces, as a test wants it: real HTTP, invented answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from apiserver.cluster.client import ClusterClient
from apiserver.cluster.kubeconfig import Kubeconfig

Review = Callable[[dict[str, Any]], Awaitable[web.StreamResponse | dict[str, Any]]]


async def no(_: dict[str, Any]) -> dict[str, Any]:
    """A status that allows nothing and knows nobody."""
    return {}


@dataclass(slots=True, eq=False)
class FakeCluster:
    """Answers reviews with what `answer` makes of their spec; lists and watches what is in `objects`, by path."""

    answer: Review = no
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The reviews that came, whole."""
    headers: list[dict[str, str]] = field(default_factory=list)
    objects: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    refusal: int = 0
    """Answers every list and watch with this code, while it is not 0."""
    refused: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released for each of these."""
    watching: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released for each watch that begins."""
    _version: int = 1
    _watches: dict[str, list[asyncio.Queue[dict[str, Any] | None]]] = field(default_factory=dict)

    def put(self, path: str, name: str, **content: Any) -> None:
        """Create or change an object, and tell those who watch."""
        known = self.objects.setdefault(path, {})
        kind = "MODIFIED" if name in known else "ADDED"
        known[name] = self._next({"metadata": {"name": name}, **content})
        self._tell(path, kind, known[name])

    def remove(self, path: str, name: str) -> None:
        """Delete an object, and tell those who watch."""
        self._tell(path, "DELETED", self._next(self.objects[path].pop(name)))

    def end_watches(self) -> None:
        """End them all, as a kube-apiserver does that stops."""
        for queues in self._watches.values():
            for queue in queues:
                queue.put_nowait(None)

    def tell_error(self, path: str) -> None:
        """Tell those who watch that they are too far behind."""
        self._tell(path, "ERROR", {"kind": "Status", "code": 410})

    def _next(self, value: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        return {**value, "metadata": {**value["metadata"], "resourceVersion": str(self._version)}}

    def _tell(self, path: str, kind: str, value: dict[str, Any]) -> None:
        for queue in self._watches.get(path, ()):
            queue.put_nowait({"type": kind, "object": value})

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        self.headers.append(dict(request.headers))
        if request.method == "POST":
            review = await request.json()
            self.asked.append(review)
            answer = await self.answer(review["spec"])
            return answer if isinstance(answer, web.StreamResponse) else web.json_response({**review, "status": answer}, status=201)
        if self.refusal:
            self.refused.release()
            return web.json_response({"kind": "Status", "message": "not now"}, status=self.refusal)
        if "watch" in request.query:
            return await self._watch(request)
        if request.path in self.objects:
            items = list(self.objects[request.path].values())
            return web.json_response({"kind": "List", "metadata": {"resourceVersion": str(self._version)}, "items": items})
        parent, _, name = request.path.rpartition("/")
        if name in self.objects.get(parent, {}):
            return web.json_response(self.objects[parent][name])
        return web.json_response({"kind": "Status", "message": "not found"}, status=404)

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        queues = self._watches.setdefault(request.path, [])
        queues.append(queue)
        self.watching.release()
        try:
            while (event := await queue.get()) is not None:
                await response.write(web.json_response(event).text.encode() + b"\n")  # type: ignore[union-attr]
        finally:
            queues.remove(queue)
        return response


@asynccontextmanager
async def fake_cluster(cluster: FakeCluster, **config: Any) -> AsyncIterator[ClusterClient]:
    """Serve it on a free port, and give a client of it; `config` goes into the Kubeconfig."""
    server = await asyncio.get_running_loop().create_server(web.Server(cluster.serve, access_log=None), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with running_client(Kubeconfig(server=f"http://127.0.0.1:{port}", **config)) as client:
        yield client
    cluster.end_watches()
    server.close()


@asynccontextmanager
async def running_client(config: Kubeconfig) -> AsyncIterator[ClusterClient]:
    """A client, closed at the end of the block."""
    client = ClusterClient(config)
    task = asyncio.create_task(client.run())
    # Its connections are closed by its task, which must have begun for that.
    await asyncio.sleep(0)
    try:
        yield client
    finally:
        task.cancel()
        await asyncio.wait([task])
