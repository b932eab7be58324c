"""The ConfigMap that names authorities and front proxies: followed, and never forgotten."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from apiserver.auth.authorities import Authorities
from apiserver.auth.extension_authentication import ExtensionAuthentication
from apiserver.auth.trust import Trust
from tests.apiserver.auth.signing import Signed, authority
from tests.apiserver.cluster.fake_cluster import FakeCluster, fake_cluster

PATH, NAME = "/api/v1/namespaces/kube-system/configmaps", "extension-apiserver-authentication"
OWN, CLIENTS, PROXIES, NEW = authority("own"), authority("clients"), authority("proxies"), authority("proxies")


def pem(*authorities: Signed) -> str:
    return "".join(one.certificate.public_bytes(Encoding.PEM).decode() for one in authorities)


def said(**changes: str | None) -> dict[str, str]:
    """What kube-apiserver writes, changed; underscores stand for dashes."""
    data: dict[str, str | None] = {
        "client-ca-file": pem(CLIENTS),
        "requestheader-client-ca-file": pem(PROXIES),
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        **{key.replace("_", "-"): value for key, value in changes.items()},
    }
    return {key: value for key, value in data.items() if value is not None}


@dataclass(slots=True)
class Following:
    cluster: FakeCluster
    trust: Trust
    lookup: ExtensionAuthentication
    changes: asyncio.Semaphore

    async def say(self, **changes: str | None) -> None:
        """Change the ConfigMap, and wait until it counts."""
        self.cluster.put(PATH, NAME, data=said(**changes))
        await self.changes.acquire()


@asynccontextmanager
async def following(cluster: FakeCluster | None = None, *, clients: bool = True, proxies: bool = True) -> AsyncIterator[Following]:
    cluster = cluster or FakeCluster()
    cluster.objects.setdefault(PATH, {})
    own = Authorities((OWN.certificate,))
    trust, changes = Trust(own), asyncio.Semaphore(0)
    trust.on_change(changes.release)
    async with fake_cluster(cluster) as client:
        lookup = ExtensionAuthentication(client, trust, own_authorities=own, follow_clients=clients, follow_proxies=proxies)
        task = asyncio.create_task(lookup.run())
        try:
            yield Following(cluster, trust, lookup, changes)
        finally:
            task.cancel()
            await asyncio.wait([task])


def signers(authorities: Authorities | None) -> list[object]:
    return list(authorities.certificates) if authorities is not None else []


async def test_what_it_says_counts_and_our_own_authority_still_does() -> None:
    async with following() as follow:
        with pytest.raises(RuntimeError, match="not read yet"):
            await follow.lookup.check()
        await follow.cluster.watching.acquire()
        await follow.say(requestheader_uid_headers='["X-Remote-Uid"]')
        proxies = follow.trust.front_proxies
        assert signers(follow.trust.clients) == [OWN.certificate, CLIENTS.certificate]
        assert proxies is not None
        assert signers(proxies.authorities) == [PROXIES.certificate]
        assert (proxies.allowed_names, proxies.username_headers) == (("front-proxy-client",), ("X-Remote-User",))
        assert (proxies.group_headers, proxies.extra_prefixes) == (("X-Remote-Group",), ("X-Remote-Extra-",))
        assert proxies.uid_headers == ("X-Remote-Uid",)
        assert follow.trust.certificates == [OWN.certificate, CLIENTS.certificate, PROXIES.certificate]
        await follow.lookup.check()


async def test_t092_without_the_key_no_header_names_a_uid() -> None:
    async with following() as follow:
        await follow.cluster.watching.acquire()
        await follow.say()
        assert follow.trust.front_proxies is not None
        assert follow.trust.front_proxies.uid_headers == ()


@pytest.mark.parametrize(("names", "allowed"), [("[]", ()), (None, ()), ('["a","b"]', ("a", "b")), ("null", ()), ("", ())])
async def test_t088_names_that_may_be_empty_or_missing(names: str | None, allowed: tuple[str, ...]) -> None:
    async with following() as follow:
        await follow.cluster.watching.acquire()
        await follow.say(requestheader_allowed_names=names)
        assert follow.trust.front_proxies is not None
        assert follow.trust.front_proxies.allowed_names == allowed


async def test_t088_without_its_keys_nobody_is_a_front_proxy_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with following() as follow:
        await follow.cluster.watching.acquire()
        await follow.say(requestheader_client_ca_file=None)
        assert follow.trust.front_proxies is None
    assert "names no front proxies" in caplog.text


async def test_t088_one_authority_for_both_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with following() as follow:
        await follow.cluster.watching.acquire()
        await follow.say(client_ca_file=pem(PROXIES))
    assert "the same authority" in caplog.text


async def test_t089_rotation_and_everything_that_may_happen_to_the_configmap(caplog: pytest.LogCaptureFixture) -> None:
    async with following() as follow:
        cluster = follow.cluster
        await cluster.watching.acquire()
        await follow.say()
        await follow.say(requestheader_client_ca_file=pem(PROXIES, NEW))
        assert follow.trust.front_proxies is not None
        assert signers(follow.trust.front_proxies.authorities) == [PROXIES.certificate, NEW.certificate]
        await follow.say(requestheader_client_ca_file=pem(NEW), requestheader_allowed_names='["other"]')
        last = follow.trust.front_proxies
        assert (signers(last.authorities), last.allowed_names) == ([NEW.certificate], ("other",))
        # What makes no sense, or is not there any more, changes nothing.
        await follow.say(requestheader_client_ca_file="no PEM", client_ca_file="no PEM", requestheader_allowed_names='["third"]')
        proxies = follow.trust.front_proxies
        assert (signers(proxies.authorities), proxies.allowed_names) == ([NEW.certificate], ("third",))
        assert signers(follow.trust.clients) == [OWN.certificate, CLIENTS.certificate]
        await follow.say(requestheader_allowed_names="{")
        assert follow.trust.front_proxies is proxies
        await follow.say(requestheader_username_headers='[" "]')
        assert follow.trust.front_proxies is proxies
        cluster.remove(PATH, NAME)
        cluster.end_watches()
        await cluster.watching.acquire()
        assert follow.trust.front_proxies is proxies
        await follow.say()
        assert follow.trust.front_proxies.allowed_names == ("front-proxy-client",)
    assert "holds no certificates" in caplog.text


@pytest.mark.parametrize("end", ["end_watches", "tell_error"])
async def test_t089_what_changes_while_nobody_watches_is_seen_by_the_next_list(end: str) -> None:
    async with following() as follow:
        await follow.cluster.watching.acquire()
        await follow.say()
        follow.cluster.objects[PATH][NAME] = {
            "metadata": {"name": NAME, "resourceVersion": "99"},
            "data": said(requestheader_allowed_names='["new"]'),
        }
        if end == "end_watches":
            follow.cluster.end_watches()
        else:
            follow.cluster.tell_error(PATH)
        await follow.changes.acquire()
        assert follow.trust.front_proxies is not None
        assert follow.trust.front_proxies.allowed_names == ("new",)


async def test_a_server_that_refuses_is_asked_again_and_the_check_says_why(caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster(refusal=403)
    with caplog.at_level(logging.WARNING):
        async with following(cluster) as follow:
            for _ in range(2):
                await cluster.refused.acquire()
            with pytest.raises(RuntimeError, match="403 not now"):
                await follow.lookup.check()
            cluster.refusal = 0
            cluster.put(PATH, NAME, data=said())
            await follow.changes.acquire()
            await follow.lookup.check()
    assert caplog.text.count("cannot follow") == 1


async def test_what_is_given_in_files_is_not_taken_from_it() -> None:
    async with following(clients=False, proxies=False) as follow:
        await follow.cluster.watching.acquire()
        await follow.say()
        assert signers(follow.trust.clients) == [OWN.certificate]
        assert follow.trust.front_proxies is None
