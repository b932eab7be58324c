"""Whose a bearer token is: asked, remembered for a while, and never guessed."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from typing import Any

import pytest
from aiohttp import web

from apiserver.auth import Refusal
from apiserver.auth.bearer_token import BearerToken, TokenReviews, WebSocketToken
from apiserver.meta.errors import APIError
from apiserver.request import Call, User
from tests.apiserver.auth.calls import call_with
from tests.apiserver.cluster.fake_cluster import FakeCluster, fake_cluster

ROBOT = {"username": "system:serviceaccount:ns1:robot", "uid": "u-1", "groups": ["system:serviceaccounts"], "extra": {"pod": ["p-1"]}}


async def robot(spec: dict[str, Any]) -> dict[str, Any]:
    """Knows one token."""
    if spec["token"] == "good":
        return {"authenticated": True, "user": ROBOT, "audiences": spec.get("audiences", ["https://kubernetes.default.svc"])[:1]}
    return {"error": "[invalid bearer token]"} if spec["token"] == "bad" else {"authenticated": False}


def call_of(header: str) -> Call:
    return call_with(None, ("Authorization", header))


async def test_a_token_is_its_user_and_nothing_of_the_request_else_is_sent() -> None:
    cluster = FakeCluster(robot)
    async with fake_cluster(cluster) as client:
        user = await BearerToken(TokenReviews(client)).authenticate(call_of("Bearer good"))
    groups = ("system:serviceaccounts", "system:authenticated")
    assert user == User("system:serviceaccount:ns1:robot", "u-1", groups, {"pod": ("p-1",)})
    assert cluster.asked == [{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "good"}}]


@pytest.mark.parametrize("header", ["bearer good", "BEARER good ", "Bearer good more"])
async def test_the_header_is_read_as_upstream_reads_it(header: str) -> None:
    async with fake_cluster(FakeCluster(robot)) as client:
        assert isinstance(await BearerToken(TokenReviews(client)).authenticate(call_of(header)), User)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Bearergood"])
async def test_what_is_no_bearer_token_is_left_to_others(header: str) -> None:
    cluster = FakeCluster(robot)
    async with fake_cluster(cluster) as client:
        assert await BearerToken(TokenReviews(client)).authenticate(call_of(header)) is None
    assert not cluster.asked


async def test_a_space_too_many_is_told() -> None:
    async with fake_cluster(FakeCluster(robot)) as client:
        call = call_of("Bearer  good")
        assert await BearerToken(TokenReviews(client)).authenticate(call) is None
    assert call.warnings == ["the provided Authorization header contains extra space before the bearer token, and is ignored"]


async def test_a12_a_revoked_token_is_refused_when_its_answer_is_ten_seconds_old(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(robot)
    async with fake_cluster(cluster) as client:
        tokens = BearerToken(TokenReviews(client))
        assert isinstance(await tokens.authenticate(call_of("Bearer good")), User)
        cluster.answer = lambda _: asyncio.sleep(0, {"authenticated": False})
        assert isinstance(await tokens.authenticate(call_of("Bearer good")), User)
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 10)
        assert isinstance(await tokens.authenticate(call_of("Bearer good")), Refusal)
    assert len(cluster.asked) == 2


async def test_a_no_is_remembered_and_a_no_with_an_error_is_not() -> None:
    cluster = FakeCluster(robot)
    async with fake_cluster(cluster) as client:
        tokens = BearerToken(TokenReviews(client))
        for token, asked in (("unknown", 1), ("bad", 3)):
            for _ in range(2):
                assert isinstance(await tokens.authenticate(call_of(f"Bearer {token}")), Refusal)
            assert len(cluster.asked) == asked


@pytest.mark.parametrize(
    ("audiences", "known"), [pytest.param(["other", "ours"], True, id="ours too"), pytest.param(["other"], False, id="other"), ([], False)]
)
async def test_a12_a_token_for_another_audience_is_refused(audiences: list[str], known: bool) -> None:
    cluster = FakeCluster(lambda _: asyncio.sleep(0, {"authenticated": True, "user": ROBOT, "audiences": audiences}))
    async with fake_cluster(cluster) as client:
        user = await BearerToken(TokenReviews(client, audiences=("ours", "mine"))).authenticate(call_of("Bearer good"))
    assert isinstance(user, User) == known
    assert cluster.asked[0]["spec"]["audiences"] == ["ours", "mine"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(web.Response(status=403), id="forbidden"),
        pytest.param({"authenticated": True}, id="no user"),
        pytest.param({"authenticated": True, "user": {"username": ""}}, id="no name"),
        pytest.param(web.Response(status=302, headers={"Location": "/"}), id="redirect"),
        pytest.param(web.Response(), id="empty"),
    ],
)
async def test_t093_no_answer_is_no_identity(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with fake_cluster(FakeCluster(lambda _: asyncio.sleep(0, answer))) as client:
        with caplog.at_level(logging.DEBUG), pytest.raises(APIError) as raised:
            await BearerToken(TokenReviews(client)).authenticate(call_of("Bearer very-secret"))
    assert (raised.value.code, raised.value.reason) == (500, "InternalError")
    assert "very-secret" not in caplog.text


@pytest.mark.parametrize("answer", [{"authenticated": "true", "user": ROBOT}, {"authenticated": 1, "user": ROBOT}])
async def test_only_true_is_true(answer: Any) -> None:
    async with fake_cluster(FakeCluster(lambda _: asyncio.sleep(0, answer))) as client:
        assert isinstance(await BearerToken(TokenReviews(client)).authenticate(call_of("Bearer good")), Refusal)


@pytest.mark.parametrize("token", ["é", "t" * 200_000])
async def test_what_cannot_be_a_token_is_not_asked_about(token: str) -> None:
    cluster = FakeCluster(robot)
    async with fake_cluster(cluster) as client:
        assert isinstance(await BearerToken(TokenReviews(client)).authenticate(call_of(f"Bearer {token}")), Refusal)
    assert not cluster.asked


def hidden(token: str) -> str:
    return "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def upgrade(*protocols: str, to: str = "websocket") -> Call:
    return call_with(None, ("Upgrade", to), ("Connection", "Upgrade"), *(("Sec-WebSocket-Protocol", protocol) for protocol in protocols))


async def test_a_browser_hides_its_token_among_the_subprotocols() -> None:
    async with fake_cluster(FakeCluster(robot)) as client:
        tokens = WebSocketToken(TokenReviews(client))
        for call in (upgrade(f"{hidden('good')}, base64.binary.k8s.io"), upgrade("v1", hidden("good"))):
            assert isinstance(await tokens.authenticate(call), User)
        for call in (
            upgrade(hidden("good")),
            upgrade("v1", hidden("bad")),
            upgrade("v1", hidden("good"), hidden("good")),
            upgrade("v1, base64url.bearer.authorization.k8s.io.%%"),
            upgrade("v1, base64url.bearer.authorization.k8s.io.gICA"),
        ):
            assert isinstance(await tokens.authenticate(call), Refusal)
        for call in (
            upgrade(),
            upgrade("v1"),
            upgrade("v1", hidden("good"), to="h2c"),
            upgrade("v1, base64url.bearer.authorization.k8s.io."),
        ):
            assert await tokens.authenticate(call) is None
