"""Takes both sides through the same steps and stops at the first difference that nobody has explained.

After a listed difference by which the two hold something else, both begin anew with what this server holds, so that the rest is compared.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from tests.differential.differences import LISTED
from tests.differential.exchange import ALL_POOLS, POOLS, WORKERS, Request, Step, Watch, body_of, filled, send
from tests.differential.memory import Memory
from tests.differential.of_ours import of_ours
from tests.differential.side import Answer, Side, Stream

_KEPT_METADATA = ("name", "labels", "annotations", "finalizers", "ownerReferences", "managedFields")
_REVISION = re.compile(r'(?<="resourceVersion":")\d+(?=")')
_SETTLE_SECONDS = 0.03
_SILENCE_SECONDS = 0.2
"""A watch that says nothing at all may only be slow to begin."""
_PATIENCE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Difference:
    """Two answers to one step that are not the same."""

    step: Step
    sent: str
    real: Answer
    ours: Answer

    def __str__(self) -> str:
        return f"{self.sent}\n--- kube-apiserver\n{_shown(self.real)}\n--- this server\n{_shown(self.ours)}\n"


@dataclass(slots=True)
class Tally:
    """What ran, over all namespaces."""

    exchanges: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    """How often each listed difference was met, by its id."""
    different: list[Difference] = field(default_factory=list)


class Lockstep:
    """Two servers that are asked the same, in one namespace."""

    def __init__(self, real: Side, ours: Side, namespace: str, tally: Tally, collections: tuple[str, ...] = (POOLS, WORKERS)) -> None:
        """`collections` are where objects are left."""
        self.sides = (real, ours)
        self.namespace = namespace
        self.memories = (Memory(namespace), Memory(namespace))
        self.tally = tally
        self._collections = collections
        self._parted = False

    async def prepare(self) -> None:
        """Have the namespaces where they are objects of their own."""
        for name in (self.memories[0].value("ns", "", 0), self.memories[0].value("other", "", 0)):
            body = f'{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}'.encode()
            answer = await self.sides[0].ask("POST", "/api/v1/namespaces", body, {"Content-Type": "application/json"}, "admin")
            assert answer.status in (201, 409), answer.text

    async def run(self, steps: Iterable[Step]) -> Difference | None:
        """Take the steps until one differs, and return that difference."""
        for step in steps:
            difference = await (self._watch(step) if isinstance(step, Watch) else self._exchange(step))
            if difference is None and self._parted:
                difference = await self._rejoin()
            if difference is not None:
                self.tally.different.append(difference)
                return difference
        return None

    async def clean(self) -> None:
        """Leave nothing behind that lists of all namespaces would show."""
        for side in self.sides:
            for path in self._paths():
                objects = await _objects(side, path)
                for value in objects:
                    if "finalizers" in value["metadata"]:
                        release = b'{"metadata":{"finalizers":null}}'
                        name = value["metadata"]["name"]
                        await side.ask("PATCH", f"{path}/{name}", release, {"Content-Type": "application/merge-patch+json"}, "admin")
                if objects:
                    await side.ask("DELETE", path, None, {}, "admin")

    async def _rejoin(self) -> Difference | None:
        """Have both hold what this server holds, as objects that nobody has seen before, and forget what both have said."""
        held = [(path, value) for path in self._paths() for value in await _objects(self.sides[1], path)]
        await self.clean()
        self.memories = (Memory(self.namespace), Memory(self.namespace))
        self._parted = False
        for path, value in held:
            metadata = value["metadata"]
            value["metadata"] = {name: metadata[name] for name in _KEPT_METADATA if name in metadata}
            if difference := await self._exchange(send("rejoin", "POST", path, value)):
                return difference
        return None

    def _paths(self) -> list[str]:
        places = [self.memories[0].value(place, "", 0) for place in ("ns", "other")]
        return [path.replace("{{ns}}", place) for place in places for path in self._collections]

    async def _exchange(self, request: Request) -> Difference | None:
        if request.from_cache:
            await self._catch_up()
        sent = self._sent(request)
        raw = [await self._ask(side, memory, request) for side, memory in zip(self.sides, self.memories, strict=True)]
        for answer, memory in zip(raw, self.memories, strict=True):
            memory.learn(answer.text)
        self.tally.exchanges[request.kind] += 1
        real, ours = (_normal(of_ours(answer), memory) for answer, memory in zip(raw, self.memories, strict=True))
        return self._judged(request, sent, real, ours)

    async def _ask(self, side: Side, memory: Memory, request: Request) -> Answer:
        headers = {name: filled(value, memory) for name, value in request.headers.items()}
        return await side.ask(request.method, filled(request.path, memory), body_of(request, memory), headers, request.identity)

    async def _catch_up(self) -> None:
        """A consistent list: the cache has seen all that was written when it is answered."""
        for side in self.sides:
            for path in (ALL_POOLS, "/apis/worker.saved.sh/v1alpha1/localworkers"):
                await side.ask("GET", f"{path}?limit=1", None, {}, "admin")

    async def _watch(self, watch: Watch) -> Difference | None:
        await self._catch_up()
        sent = self._sent(watch)
        async with AsyncExitStack() as stack:
            streams = []
            for side, memory in zip(self.sides, self.memories, strict=True):
                opened = side.watch_web_socket if watch.web_socket else side.watch
                streams.append(await stack.enter_async_context(opened(filled(watch.path, memory), watch.headers)))
            for request in watch.meanwhile:
                difference = await self._exchange(request)
                if difference is not None or self._parted:
                    return difference
            await self._settle(watch, streams)
        self.tally.exchanges[watch.kind] += 1
        return self._judged(watch, sent, *self._told(watch, streams))

    async def _settle(self, watch: Watch, streams: list[Stream]) -> None:
        """Wait until both sides have said the same and are quiet; at the most until patience ends."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (70 if watch.until_closed else _PATIENCE_SECONDS)
        while loop.time() < deadline:
            if watch.until_closed:
                if all(stream.ended for stream in streams):
                    return
                pending = next(stream for stream in streams if not stream.ended)
            else:
                if not await self._quiet(streams):
                    continue
                if LISTED.explanation(watch, *self._told(watch, streams)) is not None:
                    return
                pending = streams[0] if len(streams[0].lines) <= len(streams[1].lines) else streams[1]
            pending.changed.clear()
            try:
                await asyncio.wait_for(pending.changed.wait(), max(0.0, min(0.5, deadline - loop.time())))
            except TimeoutError:
                continue

    async def _quiet(self, streams: list[Stream]) -> bool:
        before = [len(stream.lines) for stream in streams]
        await asyncio.sleep(_SETTLE_SECONDS if any(before) else _SILENCE_SECONDS)
        return before == [len(stream.lines) for stream in streams]

    def _told(self, watch: Watch, streams: list[Stream]) -> tuple[Answer, Answer]:
        bookmarks = [_bookmarks(stream)[:1] for stream in streams]
        if not watch.bookmarks or not all(bookmarks):
            bookmarks = [[] for _ in streams]
        texts = [
            "\n".join([*_events(stream), *bookmark, *(["(end)"] if stream.ended else [])])
            for stream, bookmark in zip(streams, bookmarks, strict=True)
        ]
        for text, memory in zip(texts, self.memories, strict=True):
            memory.learn(text)
        answers = [
            _normal(Answer(stream.status, stream.headers, text), memory)
            for stream, text, memory in zip(streams, texts, self.memories, strict=True)
        ]
        return answers[0], answers[1]

    def _judged(self, step: Step, sent: str, real: Answer, ours: Answer) -> Difference | None:
        if real == ours:
            return None
        known = LISTED.explanation(step, real, ours)
        if known is not None:
            self.tally.explained.update(listed.id for listed in known)
            self._parted |= any(listed.parts_ways for listed in known)
            return None
        return Difference(step, sent, real, ours)

    def _sent(self, step: Step) -> str:
        memory = self.memories[0]
        if isinstance(step, Watch):
            return f"[{step.kind}] watch {filled(step.path, memory)} {dict(step.headers)}"
        body = body_of(step, memory)
        shown = body.decode("utf-8", "backslashreplace")[:2000] if body else ""
        return f"[{step.kind}] {step.method} {filled(step.path, memory)} {dict(step.headers)} {step.identity}\n{shown}"


async def _objects(side: Side, path: str) -> list[dict[str, Any]]:
    answer = await side.ask("GET", path, None, {}, "admin")
    assert answer.status == 200, f"{side.name}: {answer}"
    items: list[dict[str, Any]] = json.loads(answer.text)["items"]
    return items


def _normal(answer: Answer, memory: Memory) -> Answer:
    return Answer(answer.status, tuple(memory.normal(header) for header in answer.headers), memory.normal(answer.text))


def _events(stream: Stream) -> list[str]:
    """What is told: a bookmark may come whenever the server likes, but for the one that ends initial events.

    That one may be newer than what it ends: others write into kube-apiserver's etcd, too.
    """
    told: list[str] = []
    newest = 0
    for line in stream.lines:
        if _is_bookmark(line):
            continue
        revisions = [int(found) for found in _REVISION.findall(line)]
        if "initial-events-end" in line and min(revisions, default=0) >= newest:
            line = _REVISION.sub("<not older>", line)
        newest = max(newest, *revisions, 0)
        told.append(line)
    return told


def _bookmarks(stream: Stream) -> list[str]:
    return [_REVISION.sub("<any>", line) for line in stream.lines if _is_bookmark(line)]


def _is_bookmark(line: str) -> bool:
    return '"type":"BOOKMARK"' in line and "initial-events-end" not in line


def _shown(answer: Answer) -> str:
    return "\n".join([f"{answer.status}", *answer.headers, answer.text])
