"""Authorities and certificates are replaced while clients are at work, behind a real kube-apiserver and directly, and no request fails."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from pathlib import Path

import aiohttp
import pytest

from apiserver.certificates import Certificates, KeyPair, make_client, prepare_certificates
from tests.connector import Connector
from tests.e2e.aggregated import until
from tests.e2e.installed import OURS
from tests.e2e.replicated import SERVICE_NAME, Replica, Replicated, put, without
from tests.e2e.traffic import NOTHING

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

POOLS = "/apis/clrk.apoxy.dev/v1alpha1/workerpools"
AS_ADMIN = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
CONFIG_MAP = ("configmap", "extension-apiserver-authentication", "-n", "kube-system")


def append(file: Path, added: Certificates) -> None:
    file.write_bytes(file.read_bytes() + added.authority.certificate_file.read_bytes())


async def codes(service: Replicated, identity: KeyPair, headers: dict[str, str] | None = None) -> set[int]:
    """What the replicas answer to whoever has this certificate."""

    async def code(replica: Replica) -> int:
        async with aiohttp.ClientSession(replica.url, connector=Connector(ssl=service.tls(identity))) as session:
            return (await session.get(POOLS, params={"limit": "1"}, headers=headers)).status

    return set(await asyncio.gather(*(code(replica) for replica in service.replicas)))


async def published_anew(service: Replicated) -> None:
    """Have kube-apiserver forget what it had published: it adds to it otherwise, and takes nothing away."""
    await asyncio.to_thread(service.cluster.kubectl, "delete", *CONFIG_MAP)
    await asyncio.to_thread(service.cluster.kubectl, "wait", "--for=create", "--timeout=60s", *CONFIG_MAP)


def times_read(service: Replicated) -> int:
    """How often kube-apiserver has read its proxy's certificate."""
    lines = (service.plane.folder / "kube-apiserver.log").read_text().splitlines()
    return sum("Loaded a new cert/key pair" in line and "aggregator-proxy-cert" in line for line in lines)


async def test_t089_the_authority_of_front_proxies_is_replaced(service: Replicated, tmp_path: Path) -> None:
    new = prepare_certificates(tmp_path, ["localhost"])
    before, after = service.plane.proxy_client, make_client(tmp_path, new.authority, "front-proxy-client")
    file = service.files.front_proxy_authorities
    async with service.clients("proxies", NOTHING).running(writers=4, watchers=20) as clients:
        await clients.writes(20)
        assert (await codes(service, before, AS_ADMIN), await codes(service, after, AS_ADMIN)) == ({200}, {401})

        append(file, new)
        await until(lambda: is_now(service, after, {200}))
        assert await codes(service, before, AS_ADMIN) == {200}

        read = times_read(service)
        put(after, service.files.proxy_certificate, service.files.proxy_key)
        async with asyncio.timeout(90):
            while times_read(service) == read:
                await clients.writes(10)
        await clients.writes(50)

        file.write_bytes(new.authority.certificate_file.read_bytes())
        await published_anew(service)
        await until(lambda: is_now(service, before, {401}))
        assert await codes(service, after, AS_ADMIN) == {200}
        await clients.writes(50)


async def is_now(service: Replicated, identity: KeyPair, wanted: set[int]) -> bool:
    return await codes(service, identity, AS_ADMIN) == wanted


async def test_t089_the_authority_of_clients_is_replaced(service: Replicated, tmp_path: Path) -> None:
    """Also while kube-apiserver is away: its own clients have to wait for it then, those of a replica do not notice."""
    other = prepare_certificates(tmp_path, ["localhost"])
    user = make_client(tmp_path, other.authority, "from-elsewhere", ("system:masters",))
    file, own = service.files.client_authorities, service.files.client_authorities.read_bytes()
    direct = service.direct_clients("direct", service.replicas[0], NOTHING)
    async with direct.running(writers=2, watchers=10), aiohttp.ClientSession(service.replicas[0].url, connector=Connector()) as session:
        kept_open = service.tls(user)
        async with service.clients("clients", NOTHING).running(writers=2, watchers=10) as through:
            await through.writes(10)
            assert await codes(service, user) == {401}
            append(file, other)
            await until(lambda: is_now(service, user, {200}))
            assert (await session.get(POOLS, ssl=kept_open)).status == 200
            await through.writes(10)

            file.write_bytes(own)
            await published_anew(service)
            await until(lambda: is_now(service, user, {401}))
            assert (await session.get(POOLS, ssl=kept_open)).status == 401
            await through.writes(10)

        async with without(service.plane.away()):
            append(file, other)
            await direct.writes(50)
        await until(lambda: is_now(service, user, {200}))
        file.write_bytes(own)
        await published_anew(service)
        await until(lambda: is_now(service, user, {401}))
        await direct.writes(10)


def presented(service: Replicated) -> set[bytes]:
    """The certificates that the replicas show to new connections."""
    return {ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", replica.port))) for replica in service.replicas}


def trust(service: Replicated, *authorities: Certificates) -> None:
    """Have kube-apiserver trust what these have signed, and no others."""
    bundle = b"".join(authority.authority.certificate_file.read_bytes() for authority in authorities)
    patch = json.dumps({"spec": {"caBundle": base64.b64encode(bundle).decode()}})
    for name in service.cluster.kubectl("get", *OURS, "-o", "name").split():
        service.cluster.kubectl("patch", name, "--type=merge", "-p", patch)


async def test_t090_the_serving_certificate_is_replaced_and_so_is_its_authority(service: Replicated, tmp_path: Path) -> None:
    renewed = prepare_certificates(tmp_path / "renewed", [SERVICE_NAME, "localhost"])
    files = service.files
    clients, direct = service.clients("served", NOTHING), service.direct_clients("served-directly", service.replicas[1], NOTHING)
    before = presented(service)
    try:
        async with clients.running(writers=4, watchers=20), direct.running(writers=0, watchers=10):
            await asyncio.to_thread(trust, service, service.pki, renewed)
            await clients.writes(10)
            put(renewed.serving, files.serving_certificate, files.serving_key)
            async with asyncio.timeout(60):
                while before & await asyncio.to_thread(presented, service):
                    await clients.writes(10)
            assert len(presented(service)) == 1
            await asyncio.to_thread(trust, service, renewed)
            await clients.writes(50)
            # They are those that were opened at the beginning.
            assert direct.counts["WATCH 200"] == 10

            await asyncio.to_thread(trust, service, service.pki, renewed)
            put(service.pki.serving, files.serving_certificate, files.serving_key)
            async with asyncio.timeout(60):
                while await asyncio.to_thread(presented, service) != before:
                    await clients.writes(10)
    finally:
        await asyncio.to_thread(trust, service, service.pki)
