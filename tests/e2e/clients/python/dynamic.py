"""The client of `kubernetes` that finds resources by discovery."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import urllib3
from kubernetes import config, dynamic
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import DynamicApiError

from tests.e2e.clients.python.conversation import API_VERSION, KIND, Refused, Value, converse


class Dynamic:
    """It blocks, which is nobody's concern in a program that does one thing."""

    broken = (urllib3.exceptions.HTTPError, OSError)
    resumes = True

    def __init__(self, namespace: str) -> None:
        self._resource = dynamic.DynamicClient(ApiClient()).resources.get(api_version=API_VERSION, kind=KIND)
        self._namespace = namespace

    async def create(self, value: Value) -> Value:
        return self._ask(self._resource.create, body=value)

    async def read(self, name: str) -> Value:
        return self._ask(self._resource.get, name=name)

    async def replace(self, value: Value) -> Value:
        return self._ask(self._resource.replace, body=value)

    async def apply(self, value: Value, manager: str, force: bool) -> Value:
        return self._ask(self._resource.server_side_apply, body=value, field_manager=manager, force_conflicts=force)

    async def list(self) -> Value:
        return self._ask(self._resource.get)

    async def watch(self, resource_version: str) -> AsyncIterator[tuple[str, Value]]:
        try:
            for event in self._resource.watch(namespace=self._namespace, resource_version=resource_version, allow_watch_bookmarks=True):
                yield event["type"], event["raw_object"]
        except (ApiException, DynamicApiError) as error:
            raise Refused(error.status, error.reason) from error

    def _ask(self, method: Any, **arguments: Any) -> Value:
        try:
            return dict(method(namespace=self._namespace, **arguments).to_dict())
        except DynamicApiError as error:
            raise Refused(error.status, json.loads(error.body or "{}")["reason"]) from error


if __name__ == "__main__":
    config.load_kube_config()
    asyncio.run(converse(Dynamic(*sys.argv[1:])))
