"""Acting as somebody else: who may, who they become, and what is refused."""

from __future__ import annotations

import pytest

from apiserver.certificates import Certificates, KeyPair
from tests.apiserver.shell import shell
from tests.apiserver.status_assertions import assert_status

ACCOUNT = "system:serviceaccount:shop:robot"
MASTERS = ("Impersonate-Group", "system:masters")


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        pytest.param([("Impersonate-User", "bob"), MASTERS], ["system:masters", "system:authenticated"], id="user"),
        pytest.param(
            [("impersonate-user", "bob"), ("IMPERSONATE-GROUP", "dev"), ("IMPERSONATE-GROUP", "system:masters")],
            ["dev", "system:masters", "system:authenticated"],
            id="in any case",
        ),
        pytest.param([("Impersonate-User", ACCOUNT), MASTERS], ["system:masters", "system:authenticated"], id="groups are named"),
        pytest.param([("Impersonate-User", "system:anonymous"), MASTERS], ["system:masters", "system:unauthenticated"], id="anonymous"),
    ],
)
async def test_whoever_may_do_everything_may_be_anybody(pki: Certificates, headers: list[tuple[str, str]], groups: list[str]) -> None:
    async with shell(pki) as listener, listener.client(pki.admin) as client, client.get("/x", headers=headers) as response:
        seen = await response.json()
        assert (seen["user"], seen["groups"]) == (headers[0][1], groups)


async def test_they_may_no_more_than_the_other_one(pki: Certificates) -> None:
    async with shell(pki) as listener, listener.client(pki.admin) as client:
        async with client.get("/x", headers={"Impersonate-User": ACCOUNT}) as response:
            status = await assert_status(response, 403, "Forbidden")
            assert status["message"] == f'forbidden: User "{ACCOUNT}" cannot get path "/x"'
        async with client.get("/livez", headers={"Impersonate-User": ACCOUNT}) as response:
            assert (await response.json())["groups"] == ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]


@pytest.mark.parametrize(
    ("headers", "mode", "resource", "scope"),
    [
        pytest.param({"Impersonate-User": "bob"}, "user-info", "users", "at the cluster scope", id="user"),
        pytest.param({"Impersonate-User": ACCOUNT}, "serviceaccount", "serviceaccounts", 'in the namespace "shop"', id="service account"),
        pytest.param(dict([("Impersonate-User", "alice"), MASTERS]), "user-info", "users", "at the cluster scope", id="oneself"),
    ],
)
async def test_whoever_may_not_is_told_so(
    pki: Certificates, user: KeyPair, headers: dict[str, str], mode: str, resource: str, scope: str
) -> None:
    async with shell(pki) as listener, listener.client(user) as client, client.get("/livez", headers=headers) as response:
        status = await assert_status(response, 403, "Forbidden")
        problem = f'User "alice" cannot impersonate:{mode} resource "{resource}" in API group "authentication.k8s.io" {scope}'
        assert status["message"] == f'{resource}.authentication.k8s.io "{status["details"]["name"]}" is forbidden: {problem}'


async def test_somebody_whom_nobody_knows_is_nobody_else(pki: Certificates) -> None:
    headers = {"Impersonate-User": "bob"}
    async with shell(pki) as listener, listener.client(None) as client, client.get("/livez", headers=headers) as response:
        await assert_status(response, 401, "Unauthorized")


@pytest.mark.parametrize("headers", [{"Impersonate-Group": "dev"}, {"Impersonate-Uid": "1"}, {"Impersonate-Extra-a": "b"}])
async def test_part_of_an_identity_is_none(pki: Certificates, headers: dict[str, str]) -> None:
    async with shell(pki) as listener, listener.client(pki.admin) as client, client.get("/x", headers=headers) as response:
        await assert_status(response, 400, "BadRequest")
