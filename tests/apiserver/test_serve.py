"""The command, as a process: its one line, its errors of one line, its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
import yaml
from click.testing import CliRunner

from apiserver.__main__ import main
from apiserver.certificates import make_client, prepare_certificates
from tests.apiserver.status_assertions import assert_status
from tests.connector import Connector

Start = Callable[..., Awaitable[Process]]
POOLS = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/default/workerpools"
COMMAND = (sys.executable, "-m", "apiserver")


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start the command; what still runs at the end is killed."""
    processes: list[Process] = []

    async def start(*arguments: str | Path) -> Process:
        process = await asyncio.create_subprocess_exec(*COMMAND, *map(str, arguments), stdout=PIPE, stderr=PIPE)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def serving(data_dir: Path) -> tuple[str | Path, ...]:
    return ("serve", "--data-dir", data_dir, "--secure-port", "0")


async def ready_line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode()


def admin(data_dir: Path) -> aiohttp.ClientSession:
    """A client made of nothing but the kubeconfig."""
    config = yaml.safe_load((data_dir / "kubeconfig").read_text())
    context = ssl.create_default_context(cafile=str(data_dir / "pki" / "ca.crt"))
    context.load_cert_chain(data_dir / "pki" / "admin.crt", data_dir / "pki" / "admin.key")
    return aiohttp.ClientSession(config["clusters"][0]["cluster"]["server"], connector=Connector(ssl=context))


async def test_it_says_when_it_is_ready_serves_and_ends_cleanly(tmp_path: Path, start: Start) -> None:
    pool = {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": "a"}, "spec": {"template": {"image": "x"}}}
    server = await start(*serving(tmp_path))
    line = await ready_line(server)
    assert line.startswith("Serving on https://127.0.0.1:")
    assert line.endswith(f"KUBECONFIG={tmp_path}/kubeconfig\n")
    assert tmp_path.joinpath("kubeconfig").stat().st_mode & 0o777 == 0o600
    async with admin(tmp_path) as client:
        async with client.post(POOLS, json=pool) as response:
            assert response.status == 201
            created = await response.json()
        async with client.get(f"{POOLS}?watch=1") as watch:
            assert json.loads(await watch.content.readline())["object"] == created
            server.send_signal(signal.SIGTERM)
            assert await watch.read() == b""
    assert await server.communicate() == (b"", b"")
    assert server.returncode == 0

    again = await start(*serving(tmp_path))
    await ready_line(again)
    async with admin(tmp_path) as client, client.get(f"{POOLS}/a") as response:
        assert await response.json() == created
    again.send_signal(signal.SIGINT)
    await again.wait()
    assert again.returncode == 0


async def test_a_second_signal_does_not_wait(tmp_path: Path, start: Start) -> None:
    server = await start(*serving(tmp_path), "--shutdown-delay-duration", "10m")
    await ready_line(server)
    async with admin(tmp_path) as client:
        async with client.get("/readyz") as response:
            assert response.status == 200
        server.send_signal(signal.SIGTERM)
        while True:
            async with client.get("/readyz") as response:
                if response.status == 500:
                    assert "[-]shutdown failed" in await response.text()
                    break
        async with client.get("/livez") as response:
            assert response.status == 200
        server.send_signal(signal.SIGTERM)
        await server.wait()
    assert server.returncode == 0


async def test_the_audit_log_goes_to_standard_output_and_the_log_is_json(tmp_path: Path, start: Start) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, resource: x, rules: [{level: Metadata, omitStages: [RequestReceived]}]}")
    flags = ("--audit-policy-file", policy, "--audit-log-path", "-", "--logging-format", "json")
    server = await start(*serving(tmp_path / "data"), *flags)
    await ready_line(server)
    async with admin(tmp_path / "data") as client, client.get(POOLS, headers={"Audit-ID": "mine"}) as response:
        assert response.status == 200
    server.send_signal(signal.SIGTERM)
    out, err = await server.communicate()
    assert [json.loads(line)["auditID"] for line in out.splitlines()] == ["mine"]
    assert [json.loads(line)["msg"] for line in err.splitlines()] == [f'{policy}: unknown field "resource" is ignored']
    assert server.returncode == 0


async def test_kinds_of_a_package_outside_of_the_repository_are_served(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("my_kinds.py").write_text(
        "from typing import ClassVar\n"
        "from apiserver.meta.resource import Model, Resource\n"
        "class ThingSpec(Model):\n    text: str\n"
        "class Thing(Resource):\n"
        '    group: ClassVar[str] = "things.example"\n    version: ClassVar[str] = "v1"\n    plural: ClassVar[str] = "things"\n'
        "    spec: ThingSpec\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = await start(*serving(tmp_path / "data"), "--kinds", "my_kinds")
    await ready_line(server)
    thing = {"apiVersion": "things.example/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"text": "hello"}}
    async with admin(tmp_path / "data") as client:
        async with client.post("/apis/things.example/v1/namespaces/default/things", json=thing) as response:
            assert response.status == 201
        async with client.get(POOLS) as response:
            assert response.status == 404


async def test_who_is_not_its_admin_may_do_nothing(tmp_path: Path, start: Start) -> None:
    """The admin is of `system:masters`; another certificate of the same authority is a user without rights; nobody is nobody."""
    server = await start(*serving(tmp_path))
    url = (await ready_line(server)).split()[2].rstrip(";")
    authority = prepare_certificates(tmp_path / "pki", ["localhost"]).authority
    user = make_client(tmp_path, authority, "jane", ("dev",))
    for identity, code, reason in ((user, 403, "Forbidden"), (None, 401, "Unauthorized")):
        context = ssl.create_default_context(cafile=str(authority.certificate_file))
        if identity is not None:
            context.load_cert_chain(identity.certificate_file, identity.key_file)
        async with aiohttp.ClientSession(url, connector=Connector(ssl=context)) as client:
            for path in ("/apis", POOLS, "/openapi/v3", "/version"):
                async with client.get(path) as response:
                    await assert_status(response, code, reason)
            async with client.post(POOLS, json={}) as response:
                await assert_status(response, code, reason)
            async with client.get("/readyz") as response:
                assert response.status == 200
    async with admin(tmp_path) as client, client.get(POOLS) as response:
        assert response.status == 200


async def accepting(client: aiohttp.ClientSession) -> None:
    """Return when the server takes connections, which it does not say while it cannot be used."""
    async with asyncio.timeout(10):
        while True:
            with suppress(aiohttp.ClientConnectorError):
                async with client.get("/livez"):
                    return
            await asyncio.sleep(0.01)


async def test_an_etcd_that_cannot_be_reached_is_waited_for(tmp_path: Path, start: Start) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        etcd = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        server = await start(*serving(tmp_path), "--etcd-servers", etcd)
        assert server.stderr is not None
        said = (await server.stderr.readline()).decode()
        assert said.partition(" WARNING ")[2].startswith(f"storage.etcd.connection: etcd cannot be reached: {etcd}: ")
        assert said.endswith("; trying until it can\n")
        assert b"lost the watch at revision 0" in await server.stderr.readline()
        async with admin(tmp_path) as client:
            await accepting(client)
            async with client.get("/apis/clrk.apoxy.dev/v1alpha1") as response:
                assert len((await response.json())["resources"]) == 3
            async with client.get("/readyz") as response:
                assert response.status == 500
                assert "[-]etcd failed: reason withheld\n" in await response.text()
            async with client.get("/livez") as response:
                assert response.status == 200
    server.send_signal(signal.SIGTERM)
    out, err = await server.communicate()
    assert (server.returncode, out) == (0, b"")
    # However often it was tried: each of the two caches says once that it waits.
    assert err.count(b"lost the watch at revision 0") <= 1


def failure(*arguments: str | Path) -> str:
    """Run the command inside of this process, and return the one line that it fails with."""
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("clrk-apiserver: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("clrk-apiserver: ").rstrip("\n")


@pytest.fixture
def nonsense(tmp_path: Path) -> Path:
    """A file that is no certificate, no key and no database."""
    file = tmp_path / "nonsense"
    file.write_text("nonsense")
    return file


def test_a_taken_port_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        text = failure(*serving(tmp_path), "--secure-port", str(port))
        assert text == f"cannot listen on 127.0.0.1 port {port}: Address already in use"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["--data-dir", "FILE/below"], "cannot write to FILE/below/pki: Not a directory", id="folder"),
        pytest.param(["--bind-address", "192.0.2.1"], "cannot listen on 192.0.2.1 port 0: Cannot assign requested address", id="address"),
        pytest.param(
            ["--tls-cert-file", "FILE", "--tls-private-key-file", "FILE"],
            "FILE and FILE are not a certificate and its key in PEM",
            id="pair",
        ),
        pytest.param(["--tls-cert-file", "FILE"], "--tls-cert-file and --tls-private-key-file belong together", id="no key"),
        pytest.param(["--client-ca-file", "FILE"], "FILE holds no certificate of an authority", id="authority"),
        pytest.param(["--client-ca-file", "FILE.none"], "cannot read FILE.none: No such file or directory", id="no file"),
        pytest.param(
            ["--kinds", "nowhere"], "package nowhere cannot be imported: ModuleNotFoundError: No module named 'nowhere'", id="no package"
        ),
        pytest.param(
            ["--etcd-servers", "ftp://x"], "etcd endpoint 'ftp://x' is not of the form http://HOST:PORT or https://HOST:PORT", id="no URL"
        ),
        pytest.param(
            ["--etcd-servers", "x", "--etcd-cafile", "FILE.none"],
            "cannot read FILE.none: No such file or directory",
            id="no authority of etcd",
        ),
        pytest.param(["--etcd-servers", "x", "--etcd-cafile", "FILE"], "FILE holds no certificate or key in PEM", id="authority of etcd"),
        pytest.param(["--etcd-servers", "x", "--etcd-user", "u"], "etcd user and password belong together", id="no password"),
        pytest.param(
            ["--etcd-servers", "x", "--etcd-user", "u", "--etcd-password-file", "FILE.none"],
            "cannot read FILE.none: No such file or directory",
            id="no password file",
        ),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(tmp_path: Path, nonsense: Path, arguments: list[str], text: str) -> None:
    given = [argument.replace("FILE", str(nonsense)) for argument in arguments]
    assert failure(*serving(tmp_path / "data"), *given) == text.replace("FILE", str(nonsense))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["serve", "--nope"], "No such option '--nope'; see `main serve --help`", id="flag"),
        pytest.param(["--nope"], "No such option '--nope'; see `main --help`", id="flag before the command"),
        pytest.param(["nope"], "No such command 'nope'; see `main --help`", id="command"),
        pytest.param(["store", "nope"], "No such command 'nope'; see `main store --help`", id="command of a group"),
        pytest.param(["serve", "more"], "Got unexpected extra argument (more); see `main serve --help`", id="argument"),
        pytest.param(
            ["serve", "--request-timeout=1x"],
            "Invalid value for '--request-timeout': time: invalid duration \"1x\"; see `main serve --help`",
            id="duration",
        ),
        # click writes this one in several lines.
        pytest.param(
            ["store", "migrate"], "Missing option '--to'. Choose from: etcd, sqlite; see `main store migrate --help`", id="missing choice"
        ),
    ],
)
def test_wrong_usage_is_told_in_one_line(arguments: list[str], text: str) -> None:
    assert failure(*arguments) == text


async def test_a_store_that_cannot_be_opened_is_told_in_one_line(tmp_path: Path, start: Start, nonsense: Path) -> None:
    folder, damaged = tmp_path / "folder", tmp_path / "damaged"
    (folder / "store.db").mkdir(parents=True)
    assert await failure_last(await start(*serving(folder))) == f"{folder}/store.db cannot be opened: Is a directory"
    damaged.mkdir()
    os.rename(nonsense, damaged / "store.db")
    assert await failure_last(await start(*serving(damaged))) == "the store's file is damaged: file is not a database"


async def test_a_store_that_is_served_already_is_told_in_one_line(tmp_path: Path, start: Start) -> None:
    first = await start(*serving(tmp_path))
    await ready_line(first)
    kubeconfig = (tmp_path / "kubeconfig").read_bytes()
    text = await failure_last(await start(*serving(tmp_path)))
    assert text == f"{tmp_path}/store.db is served by another process (pid {first.pid}); stop it first"
    assert (tmp_path / "kubeconfig").read_bytes() == kubeconfig


async def failure_last(process: Process) -> str:
    out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert err.count(b"\n") == 1, err
    return err.decode().rstrip("\n").removeprefix("clrk-apiserver: ")


async def test_the_openapi_document_is_printed_without_a_server(start: Start) -> None:
    v2, v3 = await start("openapi"), await start("openapi", "--format", "v3")
    (document, _), (documents, _) = await asyncio.gather(v2.communicate(), v3.communicate())
    assert json.loads(document)["swagger"] == "2.0"
    assert "apis/clrk.apoxy.dev/v1alpha1" in json.loads(documents)
    assert os.linesep.encode() == document[-1:]
