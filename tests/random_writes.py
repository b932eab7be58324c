"""Writes put together at random from what is right and what is odd, and what comes of each: the same for the same seed, in every build.

`python -m tests.random_writes SEED COUNT` prints one line for each write: the object as it is stored then, or the refusal.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

from apiserver.apply.ownership import Ownership
from apiserver.endpoints.applied_body import AppliedBody
from apiserver.endpoints.body import ObjectBody, check_type_meta
from apiserver.endpoints.patch_body import JSON_PATCH, MERGE_PATCH, PatchBody
from apiserver.kinds.worker_pool import WorkerPool
from apiserver.meta import errors
from apiserver.meta.errors import APIError
from apiserver.meta.resource import describe
from apiserver.registry.resource_store import ResourceStore
from apiserver.registry.write import Write
from openapi.json_values import copy
from openapi.normalize import MetadataTypeError
from storage.memory import MemoryStore

Path = tuple[str | int, ...]

NOW = "2026-01-01T00:00:00Z"
POOL: dict[str, Any] = {
    "apiVersion": "clrk.apoxy.dev/v1alpha1",
    "kind": "WorkerPool",
    "metadata": {"name": "a", "labels": {"app": "x"}, "annotations": {"n": "1"}, "finalizers": ["example.dev/f"]},
    "spec": {
        "replicas": 1,
        "template": {
            "image": "registry.example/w:1",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "nodeSelector": {"k": "v"},
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "extraVolumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        },
    },
}
OWNED: dict[str, Any] = {"f:spec": {".": {}, 'k:{"name":"A"}': {}, "v:1": {}, "i:0": {}, "f:replicas": {}}}
ENTRY = {"manager": "m", "operation": "Apply", "apiVersion": POOL["apiVersion"], "time": NOW, "fieldsType": "FieldsV1", "fieldsV1": OWNED}
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 0.5, 3.0, -0.0, 1e300, 2**53, 2.0**53, 2**63 - 1, -(2**63), 2.0**63, 5e-324),
    *("", "a", "A_", "a/b", "x" * 300, "\u00e9", "\u0000", "\U0001f600", "1", "null", NOW, "2026-13-01T00:00:00Z", "100Mi", "1e9"),
    *([], {}, [None], {"": None}, [[[]]], {"a": {"b": 1}}, [1, "a", None, {}], {"name": "a"}, [{"name": "a"}, {"name": "a"}], [True]),
    *([ENTRY], OWNED, [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}] * 2),
)
KEYS = ("name", "spec", "status", "unknown", "replicas", "template", "labels", "managedFields", "ownerReferences", "uid", "0", "a/b", "")


def _paths(value: Any, at: Path = ()) -> Iterator[Path]:
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from _paths(member, (*at, key))


class Writes:
    """One kind over a store in memory, with one object that is written again and again."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._store = ResourceStore(describe(WorkerPool), MemoryStore(), now=lambda: NOW)
        self._body = ObjectBody(self._store.kind, self._store.strategy.normalize)
        self._ownership: Ownership = self._store.ownership[""]

    async def outcomes(self, count: int) -> AsyncIterator[str]:
        """What comes of each of so many writes."""
        running = asyncio.create_task(self._store.run())
        await self._store.cache.wait_ready()
        ways = (self._create, self._update, self._merge, self._patch, self._apply, self._apply)
        for _ in range(count):
            write = Write(field_manager=self._random.choice("mn"))
            try:
                outcome: str = (await self._random.choice(ways)(write)).value.decode()
            except APIError as error:
                outcome = f"{error}\n"
            yield f"{write.warnings} {outcome}"
        running.cancel()

    def _spoiled(self, value: Any, places: int) -> Any:
        draw, value = self._random, copy(value)
        for _ in range(places):
            *outer, last = draw.choice([path for path in _paths(value) if path])
            container = value
            for step in outer:
                container = container[step]
            how = draw.random()
            if how < 0.6:
                container[last] = copy(draw.choice(ODD))
            elif how < 0.75 and len(value) > 1:
                del container[last]
            elif isinstance(container, list):
                container.append(copy(draw.choice(ODD)))
            else:
                container[draw.choice(KEYS)] = copy(draw.choice(ODD))
        return value

    def _written(self, value: Any) -> bytes:
        return json.dumps(self._spoiled(value, self._random.choice((0, 0, 1, 1, 2)))).encode()

    def _validation(self) -> str:
        return self._random.choice(("Strict", "Warn", "Ignore"))

    async def _create(self, write: Write) -> Any:
        return await self._store.create("default", await self._body.decode(self._written(POOL), "json", "Warn", write.warnings), write)

    async def _update(self, write: Write) -> Any:
        value = await self._body.decode(self._written(POOL), "json", self._validation(), write.warnings)

        def transform(old: dict[str, Any]) -> dict[str, Any]:
            new = copy(value)
            new.setdefault("metadata", {}).setdefault("resourceVersion", old["metadata"]["resourceVersion"])
            return self._identified(new, write.warnings)

        return await self._store.update("default", "a", transform, write)

    async def _merge(self, write: Write) -> Any:
        return await self._patched(PatchBody(self._written({"spec": POOL["spec"]}), MERGE_PATCH, self._validation()), write)

    async def _patch(self, write: Write) -> Any:
        draw = self._random
        pointers = ["/" + "/".join(map(str, path)) for path in _paths(POOL) if path]
        operations = [
            {
                "op": draw.choice(("add", "remove", "replace", "move", "copy", "test")),
                "path": draw.choice(pointers) + draw.choice(("", "", "/x", "/-", "/0")),
                "from": draw.choice(pointers),
                "value": draw.choice(ODD),
            }
            for _ in range(draw.randint(1, 3))
        ]
        return await self._patched(PatchBody(self._written({"": operations})[5:-1], JSON_PATCH, self._validation()), write)

    async def _patched(self, body: PatchBody, write: Write) -> Any:
        def transform(old: dict[str, Any]) -> dict[str, Any]:
            def read(value: dict[str, Any], report: list[str]) -> None:
                check_type_meta(value)
                self._store.strategy.normalize(value, old=old, report=report)

            value = body.apply(old, read, write.warnings)
            value["metadata"] = dict(value.get("metadata") or ())
            return self._identified(value, write.warnings)

        return await self._store.update("default", "a", transform, write)

    async def _apply(self, write: Write) -> Any:
        body = AppliedBody(self._written(POOL), self._validation())
        force = self._random.random() < 0.5

        def transform(live: dict[str, Any] | None) -> dict[str, Any]:
            value = self._ownership.apply(live, body.value(), write.field_manager or "", NOW, force=force)
            try:
                self._store.strategy.normalize(value, old=live)
            except MetadataTypeError as error:
                raise errors.bad_request(str(error)) from error
            value.setdefault("metadata", {})
            return self._identified(value, write.warnings)

        untracked = Write(warnings=write.warnings)
        return (await self._store.update_or_create("default", "a", transform, untracked, untracked))[0]

    def _identified(self, value: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
        self._store.strategy.check_identity(value, "default", "a")
        self._store.strategy.deduplicate_owners(value, warnings, after_admission=True)
        return value


async def _main(seed: int, count: int) -> None:
    uids = random.Random(seed)
    uuid.uuid4 = lambda: uuid.UUID(int=uids.getrandbits(128))
    async for outcome in Writes(seed).outcomes(count):
        sys.stdout.write(outcome)


if __name__ == "__main__":
    asyncio.run(_main(*map(int, sys.argv[1:])))
