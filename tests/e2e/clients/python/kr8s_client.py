"""kr8s. It has no update with the whole object, and no apply: what it has for its own use does both."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import kr8s.asyncio
import kr8s.asyncio.objects

from tests.e2e.clients.python.conversation import API_VERSION, KIND, PLURAL, Refused, Value, converse


class Kr8s:
    """A watch asks for the same version for ever when that has expired, so a broken one is not resumed: the client lists again."""

    broken = (httpx.HTTPError, kr8s.APITimeoutError, kr8s.ConnectionClosedError, OSError)
    resumes = False

    def __init__(self, api: Any, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._kind = kr8s.asyncio.objects.new_class(kind=KIND, version=API_VERSION, plural=PLURAL)

    async def create(self, value: Value) -> Value:
        created = await self._kind({**value, "metadata": {**value["metadata"], "namespace": self._namespace}}, api=self._api)
        await created.create()
        return _plain(created)

    async def read(self, name: str) -> Value:
        return _plain(await self._kind.get(name, namespace=self._namespace, api=self._api))

    async def replace(self, value: Value) -> Value:
        return await self._ask("PUT", f"/{value['metadata']['name']}", value)

    async def apply(self, value: Value, manager: str, force: bool) -> Value:
        query = {"fieldManager": manager, "force": str(force).lower()}
        return await self._ask("PATCH", f"/{value['metadata']['name']}", value, query, {"Content-Type": "application/apply-patch+yaml"})

    async def list(self) -> Value:
        return await self._ask("GET")

    async def watch(self, resource_version: str) -> AsyncIterator[tuple[str, Value]]:
        async for kind, value in self._api.watch(f"{PLURAL}.{API_VERSION}", namespace=self._namespace, since=resource_version):
            yield kind, _plain(value)

    async def _ask(self, method: str, below: str = "", value: Any = None, query: Any = None, headers: Any = None) -> Value:
        request = {"version": API_VERSION, "namespace": self._namespace, "url": f"{PLURAL}{below}", "params": query, "headers": headers}
        try:
            async with self._api.call_api(method, content=value and json.dumps(value), **request) as response:
                return dict(response.json())
        except kr8s.ServerError as error:
            raise Refused(error.response.status_code, error.status["reason"]) from error


def _plain(value: Any) -> Value:
    return dict(value.raw.to_dict())


async def _main(namespace: str) -> None:
    await converse(Kr8s(await kr8s.asyncio.api(), namespace))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
