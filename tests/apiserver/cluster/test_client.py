"""The client of kube-apiserver: its credentials stay fresh, and nothing that an answer does can harm."""

from __future__ import annotations

import asyncio
import ssl
import stat
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from apiserver.certificates import Certificates, make_client, write_kubeconfig
from apiserver.cluster import client as client_module
from apiserver.cluster.client import ClusterError
from apiserver.cluster.kubeconfig import ExecPlugin, Kubeconfig, KubeconfigError, Material, read_kubeconfig
from apiserver.tls import make_context
from tests.apiserver.cluster.fake_cluster import FakeCluster, fake_cluster, running_client
from tests.apiserver.shell import shell

VERSION = "client.authentication.k8s.io/v1"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let a minute pass."""
    offset = [0.0]
    monotonic = time.monotonic

    def pass_by() -> None:
        offset[0] += 61
        monkeypatch.setattr(time, "monotonic", lambda: monotonic() + offset[0])

    return pass_by


async def test_a_token_is_read_again_after_a_minute_and_when_it_is_not_believed(tmp_path: Path, later: Any) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    cluster = FakeCluster()
    async with fake_cluster(cluster, token=Material(file=file)) as client:
        await client.post("/", {"spec": {}})
        file.write_text("two\n")
        await client.post("/", {"spec": {}})
        later()
        await client.post("/", {"spec": {}})
        file.write_text("three\n")
        cluster.answer = lambda _: asyncio.sleep(0, web.Response(status=401))
        with pytest.raises(ClusterError):
            await client.post("/", {"spec": {}})
        with pytest.raises(ClusterError):
            await client.post("/", {"spec": {}})
        file.unlink()
        with pytest.raises(ClusterError, match="cannot read our credentials"):
            await client.post("/", {"spec": {}})
    assert [headers["Authorization"] for headers in cluster.headers] == [
        f"Bearer {token}" for token in ("one", "one", "two", "two", "three")
    ]


async def test_nothing_but_what_is_needed_is_sent() -> None:
    cluster = FakeCluster()
    async with fake_cluster(cluster, basic="a:b", impersonation=(("Impersonate-Group", "x"), ("Impersonate-Group", "y"))) as client:
        cluster.answer = lambda _: asyncio.sleep(0, web.json_response({}, headers={"Set-Cookie": "a=b"}))
        await client.post("/", {"spec": {}})
        await client.post("/", {"spec": {}})
    sent = {name.lower(): value for name, value in cluster.headers[1].items()}
    assert (sent["authorization"], sent["accept-encoding"]) == ("Basic YTpi", "identity")
    assert "cookie" not in sent


@pytest.fixture
async def secure(pki: Certificates) -> AsyncIterator[Kubeconfig]:
    """A server that demands a client certificate, and says whose it saw."""

    async def who(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        subject = request.transport.get_extra_info("ssl_object").getpeercert()["subject"]
        return web.json_response({"user": dict(part[0] for part in subject)["commonName"]})

    context = make_context(pki.serving.certificate_file, pki.serving.key_file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(pki.authority.certificate_file)
    server = await asyncio.get_running_loop().create_server(web.Server(who, access_log=None), "127.0.0.1", 0, ssl=context)
    yield Kubeconfig(
        server=f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", authorities=Material(file=pki.authority.certificate_file)
    )
    server.close()


async def test_a_certificate_that_is_renewed_is_used_from_then_on(
    pki: Certificates, secure: Kubeconfig, tmp_path: Path, later: Any
) -> None:
    certificate, key = tmp_path / "crt", tmp_path / "key"
    config = replace(secure, client_certificate=Material(file=certificate), client_key=Material(file=key))
    async with running_client(config) as client:
        for name in ("alice", "bob"):
            pair = make_client(tmp_path, pki.authority, name)
            certificate.write_bytes(pair.certificate_file.read_bytes())
            key.write_bytes(pair.key_file.read_bytes())
            later()
            assert await client.get("/") == {"user": name}
        certificate.write_bytes(b"no certificate")
        later()
        with pytest.raises(ClusterError, match="cannot be used"):
            await client.get("/")


async def test_the_servers_name_and_authority_are_checked(pki: Certificates, secure: Kubeconfig, tmp_path: Path) -> None:
    pair = make_client(tmp_path, pki.authority, "alice")
    known = replace(secure, client_certificate=Material(file=pair.certificate_file), client_key=Material(file=pair.key_file))
    for config, works in (
        (replace(known, server_name="localhost"), True),
        (replace(known, server_name="elsewhere"), False),
        (replace(known, authorities=Material()), False),
        (replace(known, authorities=Material(), insecure=True), True),
    ):
        async with running_client(config) as client:
            if works:
                assert await client.get("/") == {"user": "alice"}
            else:
                with pytest.raises(ClusterError):
                    await client.get("/")


def plugin(folder: Path, answer: Any, *, code: int = 0, **changes: Any) -> Kubeconfig:
    """A command that counts its runs, writes down what it is told, and answers."""
    script = folder / "plugin"
    text = answer if isinstance(answer, str) else orjson.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": answer}).decode()
    (folder / "answer").write_text(text)
    script.write_text(f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" >> {folder}/runs\ncat {folder}/answer\nexit {code}\n')
    script.chmod(stat.S_IRWXU)
    return Kubeconfig(server="http://unused", plugin=ExecPlugin(str(script), (), {}, VERSION, {"server": "s"}, ""), **changes)


async def test_a_plugin_is_run_when_its_answer_ends_or_is_not_believed(tmp_path: Path) -> None:
    cluster = FakeCluster()
    settings = plugin(tmp_path, {"token": "one", "expirationTimestamp": "2999-01-01T00:00:00Z"})
    async with fake_cluster(cluster, plugin=settings.plugin) as client:
        await asyncio.gather(*(client.post("/", {"spec": {}}) for _ in range(5)))
        cluster.answer = lambda _: asyncio.sleep(0, web.Response(status=401))
        plugin(tmp_path, {"token": "two", "expirationTimestamp": "2001-01-01T00:00:00Z"})
        for _ in range(2):
            with pytest.raises(ClusterError):
                await client.post("/", {"spec": {}})
    assert [headers["Authorization"] for headers in cluster.headers] == ["Bearer one"] * 6 + ["Bearer two"]
    runs = [orjson.loads(line) for line in (tmp_path / "runs").read_text().splitlines()]
    assert runs == [{"apiVersion": VERSION, "kind": "ExecCredential", "spec": {"interactive": False, "cluster": {"server": "s"}}}] * 2


async def test_a_plugin_may_answer_with_a_certificate(pki: Certificates, secure: Kubeconfig, tmp_path: Path) -> None:
    pair = make_client(tmp_path, pki.authority, "alice")
    status = {"clientCertificateData": pair.certificate_file.read_text(), "clientKeyData": pair.key_file.read_text()}
    async with running_client(replace(secure, plugin=plugin(tmp_path, status).plugin)) as client:
        assert await client.get("/") == {"user": "alice"}


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        ({"token": "t"}, 3, "exit code 3"),
        ({}, 0, "neither a token nor a certificate"),
        ({"clientCertificateData": "x"}, 0, "neither a token nor a certificate"),
        ("", 0, "does not answer with an ExecCredential"),
        ('{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v9","status":{}}', 0, "another version"),
    ],
)
async def test_a_plugin_that_fails_is_told(tmp_path: Path, answer: Any, code: int, reason: str) -> None:
    async with running_client(plugin(tmp_path, answer, code=code)) as client:
        with pytest.raises(ClusterError, match=reason):
            await client.get("/")


async def test_a_plugin_that_is_not_there_is_told_with_its_hint(tmp_path: Path) -> None:
    settings = ExecPlugin(str(tmp_path / "none"), (), {}, VERSION, None, "get it\nsomewhere")
    async with running_client(Kubeconfig(server="http://unused", plugin=settings)) as client:
        with pytest.raises(ClusterError, match=r"cannot run .*none: No such file or directory \(get it somewhere\)"):
            await client.get("/")


async def test_an_answer_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_BODY_BYTES", 100_000)
    cluster = FakeCluster(lambda _: asyncio.sleep(0, web.Response(body=b" " * 200_000)))
    cluster.objects["/things"] = {}
    async with fake_cluster(cluster) as client:
        with pytest.raises(ClusterError, match="too large"):
            await client.post("/", {"spec": {}})
        watching = asyncio.ensure_future(anext(client.watch("/things?watch=1")))
        await cluster.watching.acquire()
        cluster.put("/things", "t", text="x" * 200_000)
        with pytest.raises(ClusterError, match="too large"):
            await watching


async def test_a_real_kubeconfig_of_ours_reaches_a_real_server_of_ours(pki: Certificates, tmp_path: Path) -> None:
    async with shell(pki) as listening:
        file = tmp_path / "kubeconfig"
        write_kubeconfig(file, server=listening.url, authority_pem=pki.authority.certificate_file.read_bytes(), client=pki.admin)
        async with running_client(read_kubeconfig(file)) as client:
            assert (await client.get("/version"))["user"] == "admin"
    with pytest.raises(KubeconfigError):
        read_kubeconfig(tmp_path)
