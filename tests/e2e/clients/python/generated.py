"""The generated clients, which have one interface: `kubernetes`, its `kubernetes.aio`, and `kubernetes_asyncio`."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import urllib3

from tests.e2e.clients.python.conversation import GROUP, PLURAL, VERSION, Refused, Value, converse


class Generated:
    """The interface for custom objects of one of them, blocking or not."""

    broken = (aiohttp.ClientError, urllib3.exceptions.HTTPError, OSError)
    resumes = True

    def __init__(self, library: str, namespace: str) -> None:
        client, self._watch = importlib.import_module(f"{library}.client"), importlib.import_module(f"{library}.watch")
        self._refused = importlib.import_module(f"{library}.client.exceptions").ApiException
        self._api = client.CustomObjectsApi()
        self._place = (GROUP, VERSION, namespace, PLURAL)

    async def create(self, value: Value) -> Value:
        return await self._ask(self._api.create_namespaced_custom_object, value)

    async def read(self, name: str) -> Value:
        return await self._ask(self._api.get_namespaced_custom_object, name)

    async def replace(self, value: Value) -> Value:
        return await self._ask(self._api.replace_namespaced_custom_object, value["metadata"]["name"], value)

    async def apply(self, value: Value, manager: str, force: bool) -> Value:
        return await self._ask(
            self._api.patch_namespaced_custom_object,
            value["metadata"]["name"],
            value,
            field_manager=manager,
            force=force,
            _content_type="application/apply-patch+yaml",
        )

    async def list(self) -> Value:
        return await self._ask(self._api.list_namespaced_custom_object)

    async def watch(self, resource_version: str) -> AsyncIterator[tuple[str, Value]]:
        watch = self._watch.Watch()
        method = self._api.list_namespaced_custom_object
        stream = watch.stream(method, *self._place, resource_version=resource_version, allow_watch_bookmarks=True)
        try:
            if hasattr(stream, "__aiter__"):
                async for event in stream:
                    yield event["type"], event["raw_object"]
            else:
                for event in stream:
                    yield event["type"], event["raw_object"]
        except self._refused as error:
            raise Refused(error.status, error.reason) from error

    async def _ask(self, method: Any, *arguments: Any, **options: Any) -> Value:
        try:
            answer = method(*self._place, *arguments, **options)
            # Of an apply that creates they return nothing: the 201 is none of the answers that their document has for a patch.
            return dict((await answer if inspect.isawaitable(answer) else answer) or {})
        except self._refused as error:
            raise Refused(error.status, json.loads(error.body)["reason"]) from error


async def _main(library: str, namespace: str) -> None:
    loaded = importlib.import_module(f"{library}.config").load_kube_config()
    if inspect.isawaitable(loaded):
        await loaded
    await converse(Generated(library, namespace))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
