"""What every Python client does here, whichever library it is made of: conflict, apply, list, watch, resume.

It tells what it sees in lines of JSON, of which the test makes up its mind. It ends when it has seen an object called `last`.
"""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from collections.abc import AsyncIterator
from typing import Any, Protocol

Value = dict[str, Any]
API_VERSION, KIND, PLURAL = "worker.saved.sh/v1alpha1", "LocalWorker", "localworkers"
GROUP, VERSION = API_VERSION.split("/")
_RETRY_SECONDS = 0.2


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code} {reason}")
        self.code, self.reason = code, reason


class Client(Protocol):
    """A library, seen from here. All raise `Refused` for an answer that is no success."""

    @property
    def broken(self) -> tuple[type[Exception], ...]:
        """What it raises when a connection breaks, or cannot be made."""

    @property
    def resumes(self) -> bool:
        """Whether it can go on with a watch where one broke off, and says so when it cannot any more."""

    async def create(self, value: Value) -> Value: ...

    async def read(self, name: str) -> Value: ...

    async def replace(self, value: Value) -> Value: ...

    async def apply(self, value: Value, manager: str, force: bool) -> Value: ...

    async def list(self) -> Value: ...

    def watch(self, resource_version: str) -> AsyncIterator[tuple[str, Value]]: ...


def tell(step: str, **fields: Any) -> None:
    """Write a line for the test."""
    sys.stdout.write(json.dumps({"step": step, **fields}) + "\n")
    sys.stdout.flush()


def worker(name: str, image: str) -> Value:
    """A LocalWorker."""
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": {"image": image}}


async def converse(client: Client) -> None:
    """All of it."""
    await _conflict(client)
    await _apply(client)
    await _follow(client)


async def _conflict(client: Client) -> None:
    stale = await client.create(worker("written", "one"))
    fresh = copy.deepcopy(stale)
    fresh["spec"]["image"] = "two"
    await client.replace(fresh)
    stale["spec"]["image"] = "three"
    try:
        await client.replace(stale)
    except Refused as refused:
        tell("conflict", code=refused.code, reason=refused.reason)
    fresh = await client.read("written")
    fresh["spec"]["image"] = "three"
    tell("written", object=await client.replace(fresh))


async def _apply(client: Client) -> None:
    await client.apply(worker("applied", "one"), "first", False)
    try:
        await client.apply(worker("applied", "two"), "second", False)
    except Refused as refused:
        tell("refused", code=refused.code, reason=refused.reason)
    tell("applied", object=await client.apply(worker("applied", "two"), "second", True))


async def _follow(client: Client) -> None:
    objects: dict[str, Value] = {}
    version = ""
    while "last" not in objects:
        try:
            if not version:
                objects, version = await _list(client)
            async for kind, value in client.watch(version):
                version = value["metadata"]["resourceVersion"]
                tell("event", type=kind, object=value)
                _take(objects, kind, value)
                if "last" in objects:
                    break
        except Refused as refused:
            if refused.code != 410:
                raise
            tell("expired")
            version = ""
        except client.broken as error:
            tell("broken", error=repr(error))
            version = version if client.resumes else ""
            await asyncio.sleep(_RETRY_SECONDS)
    tell("end", objects=objects)


async def _list(client: Client) -> tuple[dict[str, Value], str]:
    listed = await client.list()
    objects = {value["metadata"]["name"]: value for value in listed["items"]}
    version = listed["metadata"]["resourceVersion"]
    tell("listed", objects=objects, resourceVersion=version)
    return objects, version


def _take(objects: dict[str, Value], kind: str, value: Value) -> None:
    name = value["metadata"].get("name", "")
    if kind == "DELETED":
        del objects[name]
    elif kind in ("ADDED", "MODIFIED"):
        objects[name] = value
