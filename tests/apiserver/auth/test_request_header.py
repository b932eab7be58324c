"""Whom a front proxy names, and who may name somebody."""

from __future__ import annotations

import pytest

from apiserver.auth import Refusal
from apiserver.auth.authorities import Authorities
from apiserver.auth.request_header import RequestHeader
from apiserver.auth.trust import FrontProxies, Trust
from apiserver.request import User
from tests.apiserver.auth.calls import call_with
from tests.apiserver.auth.signing import SERVER, authority

PROXIES, CLIENTS = authority("proxies"), authority("clients")
PROXY = PROXIES.sign("front-proxy-client").certificate
ADMIN = ("X-Remote-User", "admin")
MASTERS = ("X-Remote-Group", "system:masters")


def front_proxies(*names: str, uid_headers: tuple[str, ...] = ()) -> FrontProxies:
    return FrontProxies(Authorities((PROXIES.certificate,)), names, uid_headers=uid_headers)


def authenticator(proxies: FrontProxies | None) -> RequestHeader:
    return RequestHeader(Trust(Authorities((CLIENTS.certificate,)), proxies))


async def user_of(*headers: tuple[str, str], proxies: FrontProxies | None = None) -> User:
    user = await authenticator(proxies or front_proxies()).authenticate(call_with(PROXY, *headers))
    assert isinstance(user, User)
    return user


async def test_user_groups_and_extra_are_what_the_headers_say() -> None:
    user = await user_of(
        ADMIN,
        ("X-Remote-Group", "dev"),
        ("x-remote-group", ""),
        ("X-REMOTE-GROUP", "a, b"),
        ("X-Remote-Extra-Scopes", "one"),
        ("x-remote-extra-scopes", "two"),
    )
    assert user == User("admin", "", ("dev", "a, b", "system:authenticated"), {"scopes": ("one", "two")})


async def test_t007_a_user_without_groups_is_authenticated() -> None:
    assert (await user_of(("X-Remote-User", "system:aggregator"))).groups == ("system:authenticated",)


@pytest.mark.parametrize("group", ["system:authenticated", "system:unauthenticated"])
async def test_a_group_that_says_so_already_is_enough(group: str) -> None:
    assert (await user_of(ADMIN, ("X-Remote-Group", group))).groups == (group,)


async def test_a1_without_a_certificate_headers_are_not_looked_at() -> None:
    assert await authenticator(front_proxies()).authenticate(call_with(None, ADMIN, MASTERS)) is None


@pytest.mark.parametrize(
    "certificate",
    [
        pytest.param(CLIENTS.sign("front-proxy-client"), id="A2 the clients' authority"),
        pytest.param(PROXIES.sign("somebody"), id="A3 another name"),
        pytest.param(PROXIES.sign("front-proxy-client", purposes=SERVER), id="A4 for servers"),
        pytest.param(authority("front-proxy-client"), id="A4 signed by itself"),
        pytest.param(PROXIES.sign(""), id="no name"),
    ],
)
async def test_t087_nobody_else_may_name_a_user(certificate: object) -> None:
    found = await authenticator(front_proxies("front-proxy-client")).authenticate(call_with(certificate.certificate, ADMIN, MASTERS))  # type: ignore[attr-defined]
    assert isinstance(found, Refusal)


async def test_t088_without_names_any_certificate_of_the_authority_counts() -> None:
    for name in ("front-proxy-client", "somebody"):
        user = await authenticator(front_proxies()).authenticate(call_with(PROXIES.sign(name).certificate, ADMIN))
        assert isinstance(user, User)


async def test_t088_without_an_authority_nobody_counts() -> None:
    assert await authenticator(None).authenticate(call_with(PROXY, ADMIN, MASTERS)) is None


async def test_a5_a_proxy_that_names_nobody_is_not_believed_about_groups() -> None:
    assert await authenticator(front_proxies()).authenticate(call_with(PROXY, MASTERS)) is None


async def test_a6_the_first_header_of_a_name_counts_and_values_are_never_joined() -> None:
    assert (await user_of(ADMIN, ("x-remote-user", "other"))).name == "admin"
    empty_first = call_with(PROXY, ("X-Remote-User", ""), ADMIN)
    assert await authenticator(front_proxies()).authenticate(empty_first) is None
    two_names = FrontProxies(Authorities((PROXIES.certificate,)), username_headers=("X-User", "X-Remote-User"))
    assert (await user_of(("X-User", ""), ADMIN, proxies=two_names)).name == "admin"


async def test_a7_keys_of_extra_are_lower_case_and_unescaped_unless_malformed() -> None:
    user = await user_of(
        ADMIN,
        ("X-Remote-Extra-Scopes%2Fa", "1"),
        ("x-remote-EXTRA-Example.Org%2fB%2Fc", "2"),
        ("X-Remote-Extra-%zz", "3"),
        ("X-Remote-Extra-50%", "4"),
        ("X-Remote-Extra-a+b", ""),
    )
    assert user.extra == {"scopes/a": ("1",), "example.org/b/c": ("2",), "%zz": ("3",), "50%": ("4",), "a+b": ("",)}


async def test_a8_many_groups_and_extra_values_are_all_there() -> None:
    groups = [("X-Remote-Group", f"group-{number}") for number in range(500)]
    extra = [(f"X-Remote-Extra-Key-{number}", "v" * 300) for number in range(200)]
    user = await user_of(ADMIN, *groups, *extra)
    assert (len(user.groups), len(user.extra)) == (501, 200)


@pytest.mark.parametrize("name", ["X_Remote_User", "X-Remote-User-", "Remote-User", "X-Remote--User"])
async def test_a10_no_other_name_stands_for_a_header(name: str) -> None:
    assert (
        await authenticator(front_proxies()).authenticate(call_with(PROXY, (name, "admin"), ("X_Remote_Group", "system:masters"))) is None
    )


async def test_text_that_is_no_utf8_names_nobody() -> None:
    assert isinstance(await authenticator(front_proxies()).authenticate(call_with(PROXY, ("X-Remote-User", "a\udcff"))), Refusal)
    assert (await user_of(("X-Remote-User", "søren"))).name == "søren"


async def test_t092_a_uid_counts_only_under_a_header_that_is_listed() -> None:
    uid = ("X-Remote-Uid", "u-1")
    assert (await user_of(ADMIN, uid)).uid == ""
    listed = front_proxies(uid_headers=("X-Remote-Uid",))
    assert (await user_of(ADMIN, uid, proxies=listed)).uid == "u-1"
    assert (await user_of(ADMIN, proxies=listed)).uid == ""


async def test_a11_what_is_trusted_changes_for_open_connections_too() -> None:
    trust = Trust(Authorities(), front_proxies())
    asking, call = RequestHeader(trust), call_with(PROXY, ADMIN)
    assert isinstance(await asking.authenticate(call), User)
    trust.replace(front_proxies=front_proxies("another-name"))
    assert isinstance(await asking.authenticate(call), Refusal)
    trust.replace(front_proxies=FrontProxies(Authorities((CLIENTS.certificate,))))
    assert isinstance(await asking.authenticate(call), Refusal)
    trust.replace(front_proxies=front_proxies())
    assert isinstance(await asking.authenticate(call), User)


async def test_users_who_come_again_are_the_same_object_and_not_mixed_up() -> None:
    asking = authenticator(front_proxies())
    first = await asking.authenticate(call_with(PROXY, ADMIN, ("X-Remote-Extra-A", "1")))
    assert await asking.authenticate(call_with(PROXY, ADMIN, ("X-Remote-Extra-A", "1"))) is first
    for headers in ([ADMIN], [ADMIN, MASTERS], [ADMIN, ("X-Remote-Extra-A", "2")], [ADMIN, ("X-Remote-Extra-B", "1")]):
        assert await asking.authenticate(call_with(PROXY, *headers)) != first


async def test_the_users_that_are_remembered_are_bounded_and_the_oldest_goes_first() -> None:
    asking = authenticator(front_proxies())

    async def named(number: int) -> object:
        return await asking.authenticate(call_with(PROXY, ("X-Remote-User", f"user-{number}")))

    first, last = await named(0), await named(1023)
    assert await named(0) is first
    for number in range(1, 1025):
        await named(number)
    assert await named(1023) is last
    again = await named(0)
    assert again == first
    assert again is not first
