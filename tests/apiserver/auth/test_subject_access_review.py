"""What kube-apiserver is asked about a request, and what its answers mean."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web

from apiserver.auth.subject_access_review import SubjectAccessReviews, review_spec
from apiserver.cluster import client as client_module
from apiserver.cluster.client import ClusterClient
from apiserver.cluster.kubeconfig import Kubeconfig
from apiserver.meta.errors import APIError
from apiserver.request import ANONYMOUS, User, parse_request
from tests.apiserver.cluster.fake_cluster import FakeCluster, fake_cluster, running_client

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"
ALICE = User("alice", "u-1", ("dev", "system:authenticated"), {"scopes": ("a", "b")})


def spec_of(method: str, target: str) -> dict[str, Any]:
    spec = review_spec(ALICE, parse_request(method, target))
    assert (spec.pop("user"), spec.pop("uid"), spec.pop("groups")) == ("alice", "u-1", ["dev", "system:authenticated"])
    assert spec.pop("extra") == {"scopes": ["a", "b"]}
    return spec


@pytest.mark.parametrize(
    ("method", "below", "expected"),
    [
        ("GET", "", {"verb": "list"}),
        ("GET", "?watch=true", {"verb": "watch"}),
        ("GET", "/g1", {"verb": "get", "name": "g1"}),
        ("HEAD", "/g1", {"verb": "get", "name": "g1"}),
        ("POST", "", {"verb": "create"}),
        ("PUT", "/g1", {"verb": "update", "name": "g1"}),
        ("PATCH", "/g1", {"verb": "patch", "name": "g1"}),
        ("DELETE", "/g1", {"verb": "delete", "name": "g1"}),
        ("DELETE", "", {"verb": "deletecollection"}),
        ("PATCH", "/g1/status", {"verb": "patch", "name": "g1", "subresource": "status"}),
        ("GET", "/g1/scale", {"verb": "get", "name": "g1", "subresource": "scale"}),
    ],
)
def test_a14_each_verb_and_subresource_is_asked_about_by_itself(method: str, below: str, expected: dict[str, str]) -> None:
    attributes = {"group": "example.dev", "version": "v1", "resource": "gadgets", "namespace": "ns1", **expected}
    assert spec_of(method, GADGETS + below) == {"resourceAttributes": attributes}


def test_a_cluster_wide_list_names_no_namespace() -> None:
    attributes = {"group": "example.dev", "version": "v1", "resource": "gadgets", "verb": "list"}
    assert spec_of("GET", "/apis/example.dev/v1/gadgets") == {"resourceAttributes": attributes}


@pytest.mark.parametrize("path", ["/metrics", "/apis", "/openapi/v3", "/version", "/debug/pprof", "/"])
def test_a15_other_paths_are_asked_about_by_path_and_method(path: str) -> None:
    assert spec_of("GET", path) == {"nonResourceAttributes": {"path": path, "verb": "get"}}


def test_selectors_are_sent_as_requirements() -> None:
    selectors = "labelSelector=a%3Db,c!%3Dd,e+in+(y,x),f+notin+(z),g,!h,i%3E5&fieldSelector=metadata.name%3Dg1,spec.color!%3Dred"
    attributes = spec_of("GET", f"{GADGETS}?{selectors}")["resourceAttributes"]
    assert attributes["name"] == "g1"
    assert attributes["labelSelector"] == {
        "requirements": [
            {"key": "a", "operator": "In", "values": ["b"]},
            {"key": "c", "operator": "NotIn", "values": ["d"]},
            {"key": "e", "operator": "In", "values": ["x", "y"]},
            {"key": "f", "operator": "NotIn", "values": ["z"]},
            {"key": "g", "operator": "Exists"},
            {"key": "h", "operator": "DoesNotExist"},
        ]
    }
    assert attributes["fieldSelector"] == {
        "requirements": [
            {"key": "metadata.name", "operator": "In", "values": ["g1"]},
            {"key": "spec.color", "operator": "NotIn", "values": ["red"]},
        ]
    }


@pytest.mark.parametrize(
    ("method", "target"),
    [
        pytest.param("GET", f"{GADGETS}?labelSelector=a+b&fieldSelector=c", id="unreadable"),
        pytest.param("GET", "/apis/example.dev/v1/watch/namespaces/ns1/gadgets?labelSelector=a", id="the old form of watch"),
        pytest.param("POST", f"{GADGETS}?labelSelector=a", id="create"),
        pytest.param("GET", f"{GADGETS}/g1?labelSelector=a", id="get"),
        pytest.param("GET", f"{GADGETS}?labelSelector=", id="empty"),
    ],
)
def test_selectors_that_narrow_nothing_are_not_sent(method: str, target: str) -> None:
    attributes = spec_of(method, target)["resourceAttributes"]
    assert "labelSelector" not in attributes
    assert "fieldSelector" not in attributes


def test_nothing_is_said_of_what_a_user_does_not_have() -> None:
    assert review_spec(User("bob"), parse_request("GET", "/version")) == {
        "user": "bob",
        "nonResourceAttributes": {"path": "/version", "verb": "get"},
    }


async def allow(_: dict[str, Any]) -> dict[str, Any]:
    """Allow everything."""
    return {"allowed": True, "reason": "because"}


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ({"allowed": True}, "allow"),
        ({"allowed": False, "reason": "r"}, "no opinion"),
        ({"allowed": False, "denied": True, "reason": "r"}, "deny"),
        ({"allowed": True, "denied": True}, "deny"),
        ({"allowed": "true"}, "no opinion"),
        ({"allowed": 1}, "no opinion"),
        ({}, "no opinion"),
        ({"evaluationError": "x"}, "no opinion"),
    ],
)
async def test_what_an_answer_means(status: dict[str, Any], verdict: str) -> None:
    async with fake_cluster(FakeCluster(lambda _: asyncio.sleep(0, status))) as client:
        decision = await SubjectAccessReviews(client).authorize(ALICE, parse_request("GET", GADGETS))
    assert (decision.verdict, decision.reason) == (verdict, status.get("reason", ""))


async def test_a18_nobody_shares_the_answer_for_another_user_or_another_request() -> None:
    users = [
        ALICE,
        User("bob", ALICE.uid, ALICE.groups, ALICE.extra),
        User("alice", "u-2", ALICE.groups, ALICE.extra),
        User("alice", "u-1", ("dev",), ALICE.extra),
        User("alice", "u-1", ALICE.groups, {"scopes": ("a",)}),
        User("alice", "u-1", ALICE.groups, {"scope": ("a", "b")}),
        User("alice", "u-1", ALICE.groups),
    ]
    requests = [
        ("GET", GADGETS),
        ("GET", f"{GADGETS}?labelSelector=a"),
        ("GET", f"{GADGETS}?fieldSelector=a%3Db"),
        ("GET", f"{GADGETS}?watch=1"),
        ("GET", f"{GADGETS}/g1"),
        ("GET", f"{GADGETS}/g1/status"),
        ("GET", f"{GADGETS}?fieldSelector=metadata.name%3Dg1"),
        ("GET", "/apis/example.dev/v1/namespaces/ns2/gadgets"),
        ("GET", "/apis/example.dev/v2/namespaces/ns1/gadgets"),
        ("GET", "/apis/example.com/v1/namespaces/ns1/gadgets"),
        ("GET", "/apis/example.dev/v1/namespaces/ns1/things"),
        ("GET", "/apis/example.dev/v1/gadgets"),
        ("GET", "/apis/example.dev/v1"),
        ("POST", "/apis/example.dev/v1"),
    ]
    cluster = FakeCluster(allow)
    async with fake_cluster(cluster) as client:
        reviews = SubjectAccessReviews(client)
        for _ in range(2):
            for user in users:
                for method, target in requests:
                    await reviews.authorize(user, parse_request(method, target))
    assert len(cluster.asked) == len(users) * len(requests)
    specs = [review["spec"] for review in cluster.asked]
    assert all(spec not in specs[:index] for index, spec in enumerate(specs))


async def test_t093_a_permission_that_is_taken_away_ends_after_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster(allow)
    async with fake_cluster(cluster) as client:
        reviews, info = SubjectAccessReviews(client), parse_request("GET", GADGETS)
        assert (await reviews.authorize(ALICE, info)).verdict == "allow"
        cluster.answer = lambda _: asyncio.sleep(0, {"allowed": False})
        assert (await reviews.authorize(ALICE, info)).verdict == "allow"
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 10)
        assert (await reviews.authorize(ALICE, info)).verdict == "no opinion"


@pytest.mark.parametrize(("authorized", "unauthorized", "asked"), [(0.0, 10.0, 3), (10.0, 0.0, 3), (0.0, 0.0, 4), (10.0, 10.0, 2)])
async def test_yes_and_no_have_times_of_their_own(authorized: float, unauthorized: float, asked: int) -> None:
    cluster = FakeCluster(lambda spec: asyncio.sleep(0, {"allowed": spec["resourceAttributes"]["verb"] == "list"}))
    async with fake_cluster(cluster) as client:
        reviews = SubjectAccessReviews(client, authorized_seconds=authorized, unauthorized_seconds=unauthorized)
        for method in ("GET", "POST") * 2:
            await reviews.authorize(ALICE, parse_request(method, GADGETS))
    assert len(cluster.asked) == asked


async def test_what_a_client_makes_long_is_not_remembered() -> None:
    cluster = FakeCluster(allow)
    async with fake_cluster(cluster) as client:
        reviews = SubjectAccessReviews(client)
        for target in (f"{GADGETS}/{'g' * 10_000}", f"{GADGETS}?labelSelector={'a' * 60}{',' + 'b' * 60}" + ",c" * 5000):
            for _ in range(2):
                assert (await reviews.authorize(ALICE, parse_request("GET", target))).verdict == "allow"
    assert len(cluster.asked) == 4


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(web.Response(status=403), id="T093 not allowed to ask"),
        pytest.param(web.Response(status=302, headers={"Location": "/elsewhere"}), id="A13 redirect"),
        pytest.param(web.Response(), id="A13 empty"),
        pytest.param(web.Response(body=b'{"kind":"SubjectAccessReview","status":null}'), id="no status"),
        pytest.param(web.Response(body=b'{"status":{"allowed":true}}'), id="no kind"),
    ],
)
async def test_a13_no_answer_is_no_permission(answer: Any) -> None:
    cluster = FakeCluster(lambda _: asyncio.sleep(0, answer))
    async with fake_cluster(cluster) as client:
        with pytest.raises(APIError) as raised:
            await SubjectAccessReviews(client).authorize(ALICE, parse_request("GET", GADGETS))
    assert (raised.value.code, raised.value.reason, len(cluster.asked)) == (500, "InternalError", 1)


async def test_a13_a_server_that_does_not_answer_is_not_waited_for_longer_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    never = asyncio.Event()

    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        await never.wait()
        return {"allowed": True}

    post = ClusterClient.post
    monkeypatch.setattr(client_module.ClusterClient, "post", lambda self, path, value: post(self, path, value, timeout_seconds=0.05))
    async with fake_cluster(FakeCluster(answer)) as client:
        with pytest.raises(APIError) as raised:
            await SubjectAccessReviews(client).authorize(ALICE, parse_request("GET", GADGETS))
        never.set()
    assert raised.value.code == 500


async def test_t093_a_server_that_is_away_is_no_permission() -> None:
    async with running_client(Kubeconfig(server="http://127.0.0.1:1")) as client:
        with pytest.raises(APIError) as raised:
            await SubjectAccessReviews(client).authorize(ALICE, parse_request("GET", GADGETS))
    assert raised.value.code == 500


async def test_nobody_is_asked_about_those_whom_nobody_knows() -> None:
    cluster = FakeCluster(allow)
    async with fake_cluster(cluster) as client:
        decision = await SubjectAccessReviews(client).authorize(ANONYMOUS, parse_request("GET", "/version"))
    assert decision.verdict == "no opinion"
    assert not cluster.asked
