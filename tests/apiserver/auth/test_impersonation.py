"""Which questions are asked about somebody who would act as somebody else, in which order, and what comes of the answers."""

from __future__ import annotations

import pytest

from apiserver.auth import ALLOW, NO_OPINION, Decision
from apiserver.auth.authorization import Authorization
from apiserver.auth.impersonation import Impersonated, Impersonation
from apiserver.meta import errors
from apiserver.meta.errors import APIError
from apiserver.metrics.attempts import AccessMetrics
from apiserver.request import ANONYMOUS, RequestInfo, User, parse_request

ALICE = User("alice", groups=("dev",))
ROBOT = User("system:serviceaccount:shop:robot", extra={"authentication.kubernetes.io/node-name": ("n1",), "other": ("x",)})
LIST = parse_request("GET", "/apis/example.dev/v1/namespaces/ns1/gadgets")
AUTHENTICATION = "authentication.k8s.io"


class Rules:
    """Allows some questions, and remembers all: `verb resource.group/subresource namespace/name`."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[str] = []
        self.users: list[User] = []

    async def authorize(self, user: User, info: RequestInfo) -> Decision:
        subresource = f"/{info.subresource}" if info.subresource else ""
        question = f"{info.verb} {info.resource}.{info.group}{subresource} {info.namespace}/{info.name}"
        self.asked.append(question)
        self.users.append(user)
        return ALLOW if question in self.allowed or "everything" in self.allowed else NO_OPINION


class Acting:
    """Somebody tries, under these rules."""

    def __init__(self, *allowed: str) -> None:
        self.rules = Rules(*allowed)
        self.metrics = AccessMetrics()
        record, record_check = self.metrics.impersonation.record, self.metrics.impersonation_checks.record
        self.impersonation = Impersonation(Authorization((self.rules,)), record=record, record_check=record_check)

    async def act_as(self, wanted: User, asking: User = ALICE, info: RequestInfo = LIST) -> Impersonated:
        self.rules.asked.clear()
        self.rules.users.clear()
        return await self.impersonation.act_as(wanted, asking, info)

    async def fails(self, wanted: User, asking: User = ALICE) -> str:
        with pytest.raises(APIError) as caught:
            await self.act_as(wanted, asking)
        assert caught.value.code == 403
        return caught.value.message

    def attempts(self) -> dict[tuple[str, str], float]:
        samples = [sample for family in self.metrics.impersonation.collect() for sample in family.samples]
        total = "apiserver_impersonation_attempts_total"
        return {(found.labels["mode"], found.labels["decision"]): found.value for found in samples if found.name == total}


ON_USER_INFO = "impersonate-on:user-info:list gadgets.example.dev ns1/"
BOB = f"impersonate:user-info users.{AUTHENTICATION} /bob"


async def test_each_part_of_an_identity_is_asked_for() -> None:
    acting = Acting("everything")
    wanted = User("bob", "u1", ("g1", "g2"), {"acme.io/a": ("1", "2"), "acme.io/b": ("3",)})
    assert await acting.act_as(wanted) == Impersonated(
        User("bob", "u1", ("g1", "g2", "system:authenticated"), wanted.extra), "impersonate:user-info"
    )
    verb = "impersonate:user-info"
    assert acting.rules.asked == [
        ON_USER_INFO,
        BOB,
        f"{verb} uids.{AUTHENTICATION} /u1",
        *(f"{verb} groups.{AUTHENTICATION} /{group}" for group in wanted.groups),
        *(f"{verb} userextras.{AUTHENTICATION}/acme.io/{key} /{value}" for key, value in ("a1", "a2", "b3")),
    ]
    assert acting.attempts() == {("user-info", "allowed"): 1}


async def test_what_is_allowed_for_one_request_is_not_for_another() -> None:
    acting = Acting(ON_USER_INFO, BOB)
    assert (await acting.act_as(User("bob"))).user == User("bob", groups=("system:authenticated",))
    with pytest.raises(APIError, match=r'cannot impersonate-on:user-info:get resource "gadgets" in API group "example.dev"'):
        await acting.act_as(User("bob"), info=parse_request("GET", "/apis/example.dev/v1/namespaces/ns1/gadgets/x"))
    assert acting.attempts() == {("user-info", "allowed"): 1, ("", "denied"): 1}


async def test_the_oldest_mode_is_tried_last_then_first_for_whom_it_was_good() -> None:
    acting = Acting("impersonate users. /bob", "impersonate groups. /system:masters")
    wanted = User("bob", groups=("system:masters",))
    for _ in range(2):
        assert await acting.act_as(wanted) == Impersonated(User("bob", groups=("system:masters", "system:authenticated")), "")
    assert acting.rules.asked == ["impersonate users. /bob", "impersonate groups. /system:masters"]
    # What is told is what the mode lacks that was good before.
    assert await acting.fails(
        User("eve")
    ) == 'users "eve" is forbidden: User "alice" cannot impersonate resource "users" in API group "" ' + ("at the cluster scope")
    await acting.act_as(wanted, User("carol"))
    assert acting.rules.asked[0] == ON_USER_INFO


async def test_who_may_nothing_reads_what_the_finest_mode_lacks() -> None:
    message = await Acting().fails(User("bob"))
    assert message == (
        'gadgets.example.dev is forbidden: User "alice" cannot impersonate-on:user-info:list resource "gadgets" in API group "example.dev" '
        'in the namespace "ns1"'
    )


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (User("bob", groups=("",)), "groups.{} is forbidden: …: impersonating the empty string group is not allowed"),
        (
            User("bob", groups=("a", "system:masters")),
            'groups.{} "system:masters" is forbidden: …: impersonating the system:masters group is not allowed',
        ),
        (User("bob", extra={"": ("1",)}), "userextras.{} is forbidden: …: impersonating the empty string key in extra is not allowed"),
        (
            User("bob", extra={"a": ("1",)}),
            "userextras.{} is forbidden: …: impersonating an invalid key in extra is not allowed: "
            'extra.key: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")',
        ),
        (
            User("bob", extra={"acme.io/A": ("1",)}),
            'userextras.{} is forbidden: …: impersonating a non-lowercase key in extra is not allowed: "acme.io/A"',
        ),
        (
            User("bob", extra={"acme.io/a": ("",)}),
            "userextras.{} is forbidden: …: impersonating the empty string value in extra is not allowed",
        ),
    ],
    ids=["empty group", "masters", "empty key", "key without domain", "capitals", "empty value"],
)
async def test_some_identities_are_for_the_oldest_mode_alone(wanted: User, problem: str) -> None:
    groups = [f"impersonate:user-info groups.{AUTHENTICATION} /{group}" for group in wanted.groups]
    message = await Acting(ON_USER_INFO, BOB, *groups).fails(wanted)
    said, _, reason = problem.format(AUTHENTICATION).partition("…")
    assert message.startswith(said)
    assert message.endswith(reason)
    assert (await Acting("everything").act_as(wanted)).constraint == ""


async def test_many_groups_and_values_are_asked_for_at_once() -> None:
    every = f"impersonate:user-info groups.{AUTHENTICATION} /*", f"impersonate:user-info userextras.{AUTHENTICATION}/* /*"
    acting, wanted = Acting(ON_USER_INFO, BOB, *every), User("bob", "", tuple("abcd"), {"acme.io/a": tuple("1234")})
    await acting.act_as(wanted)
    assert acting.rules.asked == [ON_USER_INFO, BOB, *every]
    each = [f"impersonate:user-info groups.{AUTHENTICATION} /{group}" for group in "abcd"]
    acting = Acting(ON_USER_INFO, BOB, *each, every[1])
    await acting.act_as(wanted)
    assert acting.rules.asked == [ON_USER_INFO, BOB, every[0], *each, every[1]]
    acting = Acting("impersonate users. /bob", *(f"impersonate groups. /{group}" for group in "abcd"))
    await acting.act_as(User("bob", groups=tuple("abcd")))
    assert not any(question.endswith("*") for question in acting.rules.asked)


async def test_service_accounts_and_nodes_have_modes_of_their_own_and_their_groups() -> None:
    account = ("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated")
    acting = Acting("everything")
    assert await acting.act_as(User(ROBOT.name)) == Impersonated(User(ROBOT.name, groups=account), "impersonate:serviceaccount")
    assert acting.rules.asked[1] == f"impersonate:serviceaccount serviceaccounts.{AUTHENTICATION} shop/robot"
    # With more than the name, only the oldest mode will do.
    assert await acting.act_as(User(ROBOT.name, "u1")) == Impersonated(User(ROBOT.name, "u1", account), "")
    assert (await acting.act_as(User(ROBOT.name, groups=("g",)))).user.groups == ("g", "system:authenticated")

    node, groups = User("system:node:n1"), ("system:nodes", "system:authenticated")
    acting = Acting("everything")
    assert await acting.act_as(node) == Impersonated(User(node.name, groups=groups), "impersonate:arbitrary-node")
    assert acting.rules.asked == [
        "impersonate-on:arbitrary-node:list gadgets.example.dev ns1/",
        f"impersonate:arbitrary-node nodes.{AUTHENTICATION} /n1",
    ]
    assert (await Acting("impersonate users. /system:node:n1").act_as(node)).user.groups == ("system:authenticated",)


async def test_an_account_may_act_as_the_node_it_is_on() -> None:
    acting, node = Acting("everything"), User("system:node:n1")
    assert (await acting.act_as(node, ROBOT)).constraint == "impersonate:associated-node"
    assert acting.rules.asked == [
        "impersonate-on:associated-node:list gadgets.example.dev ns1/",
        f"impersonate:associated-node nodes.{AUTHENTICATION} /*",
    ]
    keys = ("authentication.kubernetes.io/node-name", "other")
    assert [user.extra for user in acting.rules.users] == [{"authentication.kubernetes.io/associated-node-keys": keys}] * 2
    for wanted, asking in ((User("system:node:n2"), ROBOT), (node, User("robot", extra=ROBOT.extra)), (node, User(ROBOT.name))):
        assert (await Acting("everything").act_as(wanted, asking)).constraint == "impersonate:arbitrary-node"


@pytest.mark.parametrize(
    "name", ["system:node:", "system:node:A", "system:serviceaccount:shop", "system:serviceaccount:a.b:c", "x" * 10**6]
)
async def test_what_only_looks_like_a_node_or_an_account_is_a_user(name: str) -> None:
    assert (await Acting("everything").act_as(User(name))).constraint == "impersonate:user-info"


async def test_without_an_answer_nothing_else_is_tried() -> None:
    class Away:
        asked = 0

        async def authorize(self, user: User, info: RequestInfo) -> Decision:
            self.asked += 1
            raise errors.internal_error("nobody is there")

    away, metrics = Away(), AccessMetrics()
    impersonation = Impersonation(
        Authorization((away,)), record=metrics.impersonation.record, record_check=metrics.impersonation_checks.record
    )
    with pytest.raises(APIError) as caught:
        await impersonation.act_as(User("bob"), ALICE, LIST)
    assert (caught.value.code, away.asked) == (500, 1)
    with pytest.raises(APIError) as caught:
        await Acting().act_as(User("bob"), ANONYMOUS)
    assert caught.value.code == 401
