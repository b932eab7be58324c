"""Answers that are kept, questions that are shared, and tries that are worth it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web

from apiserver.auth import reviews
from apiserver.auth.reviews import ReviewCache, review
from apiserver.cluster.client import ClusterError
from tests.apiserver.cluster.fake_cluster import FakeCluster, fake_cluster

VALUE = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {}}


class Question:
    """One whose answer waits for the test."""

    def __init__(self, *, seconds: float = 10.0) -> None:
        self.seconds = seconds
        self.begun = asyncio.Semaphore(0)
        self.answers: asyncio.Queue[str | ClusterError] = asyncio.Queue()
        self.count = 0

    async def __call__(self) -> tuple[str, float]:
        self.count += 1
        self.begun.release()
        answer = await self.answers.get()
        if isinstance(answer, ClusterError):
            raise answer
        return answer, self.seconds


async def waiting(cache: ReviewCache[str, str], ask: Question, count: int) -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(cache.find("key", ask)) for _ in range(count)]
    await ask.begun.acquire()
    return tasks


async def test_t093_a_thousand_who_ask_at_once_ask_one_question() -> None:
    cache, ask = ReviewCache[str, str](10), Question()
    tasks = await waiting(cache, ask, 1000)
    ask.answers.put_nowait("yes")
    assert set(await asyncio.gather(*tasks)) == {"yes"}
    assert await cache.find("key", ask) == "yes"
    assert ask.count == 1


async def test_an_answer_counts_for_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, ask = ReviewCache[str, str](10), Question()
    ask.answers.put_nowait("yes")
    await cache.find("key", ask)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 9.9)
    assert cache.peek("key") == "yes"
    monkeypatch.setattr(time, "monotonic", lambda: now + 10.1)
    assert cache.peek("key") is None


async def test_an_answer_without_time_is_for_those_who_wait() -> None:
    cache, ask = ReviewCache[str, str](10), Question(seconds=0)
    tasks = await waiting(cache, ask, 3)
    ask.answers.put_nowait("once")
    assert await asyncio.gather(*tasks) == ["once"] * 3
    assert cache.peek("key") is None


async def test_a_failure_is_told_to_all_who_wait_and_is_not_kept() -> None:
    cache, ask = ReviewCache[str, str](10), Question()
    tasks = await waiting(cache, ask, 3)
    ask.answers.put_nowait(ClusterError("no", code=503))
    assert all(isinstance(result, ClusterError) for result in await asyncio.gather(*tasks, return_exceptions=True))
    ask.answers.put_nowait("yes")
    assert await cache.find("key", ask) == "yes"


async def test_when_the_one_that_asks_goes_away_another_asks() -> None:
    cache, ask = ReviewCache[str, str](10), Question()
    first, *others = await waiting(cache, ask, 3)
    first.cancel()
    await ask.begun.acquire()
    ask.answers.put_nowait("yes")
    assert await asyncio.gather(*others) == ["yes", "yes"]
    assert ask.count == 2


async def test_no_more_is_kept_than_there_is_room_for() -> None:
    cache = ReviewCache[str, str](2)
    for key in ("a", "b", "c"):
        ask = Question()
        ask.answers.put_nowait(key)
        await cache.find(key, ask)
    assert [cache.peek(key) for key in ("a", "b", "c")] == [None, "b", "c"]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "_FIRST_PAUSE_SECONDS", 0.0)


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("code", [429, 500, 504])
async def test_what_may_pass_is_tried_five_times(code: int) -> None:
    async def answer(_: dict[str, Any]) -> web.StreamResponse | dict[str, Any]:
        return web.Response(status=code) if len(cluster.asked) < 5 else {"authenticated": True}

    cluster, recorded = FakeCluster(answer), list[str]()
    async with fake_cluster(cluster) as client:
        assert await review(client, "/review", VALUE, record=lambda labels, _: recorded.extend(labels)) == {"authenticated": True}
        assert recorded == [*[str(code)] * 4, "201"]
        cluster.asked.clear()
        cluster.answer = lambda _: asyncio.sleep(0, web.Response(status=code))
        with pytest.raises(ClusterError) as raised:
            await review(client, "/review", VALUE)
        assert (raised.value.code, len(cluster.asked)) == (code, 5)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 503])
async def test_what_will_not_pass_is_not_tried_again(code: int) -> None:
    cluster = FakeCluster(lambda _: asyncio.sleep(0, web.Response(status=code)))
    async with fake_cluster(cluster) as client:
        with pytest.raises(ClusterError):
            await review(client, "/review", VALUE)
    assert len(cluster.asked) == 1


@pytest.mark.usefixtures("no_pauses")
async def test_a_server_that_says_when_to_come_back_is_asked_again() -> None:
    cluster = FakeCluster(lambda _: asyncio.sleep(0, web.Response(status=503, headers={"Retry-After": "1"})))
    async with fake_cluster(cluster) as client:
        with pytest.raises(ClusterError):
            await review(client, "/review", VALUE)
    assert len(cluster.asked) == 5


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no kind"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"kind":"TokenReview"}', id="no status"),
        pytest.param(b'{"kind":"Status","status":{"authenticated":true}}', id="another kind"),
        pytest.param(b"<html>", id="no JSON"),
    ],
)
async def test_a13_what_is_no_answer_is_a_failure(body: bytes) -> None:
    cluster = FakeCluster(lambda _: asyncio.sleep(0, web.Response(body=body)))
    async with fake_cluster(cluster) as client:
        with pytest.raises(ClusterError):
            await review(client, "/review", VALUE)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a13_a_redirect_is_never_followed(code: int) -> None:
    async def answer(_: dict[str, Any]) -> web.Response:
        return web.Response(status=code, headers={"Location": "/elsewhere"})

    cluster = FakeCluster(answer)
    async with fake_cluster(cluster) as client:
        with pytest.raises(ClusterError):
            await review(client, "/review", VALUE)
    assert len(cluster.headers) == 1


async def test_an_idle_connection_that_was_closed_is_replaced_at_once() -> None:
    async def cut(_: dict[str, Any]) -> dict[str, Any]:
        if len(cluster.asked) == 1:
            raise ConnectionAbortedError
        return {"authenticated": True}

    class Cutting(FakeCluster):
        async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
            try:
                return await FakeCluster.serve(self, request)
            except ConnectionAbortedError:
                assert request.transport is not None
                request.transport.abort()
                raise

    cluster, recorded = Cutting(cut), list[str]()
    async with fake_cluster(cluster) as client:
        assert await review(client, "/review", VALUE, record=lambda labels, _: recorded.extend(labels)) == {"authenticated": True}
    assert len(cluster.asked) == 2
    assert recorded == ["<error>", "201"]
