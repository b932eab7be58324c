"""T090: the serving certificate is replaced on disk while the server runs."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from apiserver import certificates, serving_certificate
from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates, prepare_certificates, renew_leaves
from apiserver.config import Config, ListenConfig
from apiserver.server import Server
from apiserver.serving_certificate import ServingCertificate
from apiserver.tls import make_context
from storage.memory import MemoryStore
from tests.apiserver.running import Listening

NAMES = ["localhost", "127.0.0.1"]
GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"


class Volume:
    """A folder whose content is swapped in one step, as the kubelet does it with the files of a Secret."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._generation = 0
        self.certificate_file, self.key_file = folder / "tls.crt", folder / "tls.key"
        for file in (self.certificate_file, self.key_file):
            file.symlink_to(Path("..data") / file.name)

    def swap(self, certificate_file: Path, key_file: Path) -> None:
        self._generation += 1
        new = self._folder / f"..{self._generation}"
        new.mkdir()
        shutil.copy(certificate_file, new / "tls.crt")
        shutil.copy(key_file, new / "tls.key")
        link = self._folder / "..data_tmp"
        link.symlink_to(new.name)
        link.replace(self._folder / "..data")


@pytest.fixture
def volume(tmp_path: Path, pki: Certificates) -> Volume:
    tmp_path.joinpath("volume").mkdir()
    volume = Volume(tmp_path / "volume")
    volume.swap(pki.serving.certificate_file, pki.serving.key_file)
    return volume


@pytest.fixture
def other(tmp_path: Path, pki: Certificates) -> Certificates:
    """Leaves of the same authority that are new."""
    folder = tmp_path / "other"
    folder.mkdir()
    return renew_leaves(folder, pki.authority, NAMES)


@pytest.fixture
async def serving(volume: Volume, pki: Certificates, config: Config) -> AsyncIterator[tuple[Listening, ServingCertificate]]:
    context = make_context(volume.certificate_file, volume.key_file, client_authorities=[pki.authority.certificate])
    followed = ServingCertificate(context, volume.certificate_file, volume.key_file)
    store = MemoryStore()
    app = build_app(config, store, standalone([pki.authority.certificate]))
    async with app.running():
        await app.wait_ready()
        server = Server(ListenConfig(secure_port=0), context)
        port = server.bind()
        await server.start(app.handle)
        yield Listening(f"https://127.0.0.1:{port}", port, pki, server, app), followed
        app.end_watches()
        await server.stop(timeout_seconds=5)
    await store.close()


async def presented(listener: Listening) -> x509.Certificate:
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=listener.tls(None))
    tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
    der = tls.getpeercert(binary_form=True)
    writer.close()
    assert der is not None
    return x509.load_der_x509_certificate(der)


async def test_t090_a_swapped_pair_is_presented_and_open_watches_go_on(
    serving: tuple[Listening, ServingCertificate], volume: Volume, pki: Certificates, other: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    listener, followed = serving
    assert await presented(listener) == pki.serving.certificate
    async with listener.client(pki.admin) as client, client.get(f"{GADGETS}?watch=1") as watch:
        volume.swap(other.serving.certificate_file, other.serving.key_file)
        await followed.look()
        assert await presented(listener) == other.serving.certificate
        assert followed.not_after == other.serving.certificate.not_valid_after_utc.timestamp()
        assert "presenting a new serving certificate" in caplog.text
        gadget = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {}}
        async with client.post(GADGETS, json=gadget) as response:
            assert response.status == 201
        assert b'"name":"a"' in await watch.content.readline()


async def test_t090_the_key_may_come_before_the_certificate(
    serving: tuple[Listening, ServingCertificate], volume: Volume, pki: Certificates, other: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    listener, followed = serving
    volume.swap(pki.serving.certificate_file, other.serving.key_file)
    await followed.look()
    await followed.look()
    assert await presented(listener) == pki.serving.certificate
    assert caplog.text.count("the serving certificate before is kept") == 1
    volume.swap(other.serving.certificate_file, other.serving.key_file)
    await followed.look()
    assert await presented(listener) == other.serving.certificate


@pytest.mark.parametrize("content", [b"", b"half of a file", None], ids=["empty", "nonsense", "missing"])
async def test_t090_a_broken_file_changes_nothing(
    serving: tuple[Listening, ServingCertificate], volume: Volume, pki: Certificates, content: bytes | None
) -> None:
    listener, followed = serving
    for file in (volume.certificate_file, volume.key_file):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
    await followed.look()
    assert await presented(listener) == pki.serving.certificate


async def test_t090_a_running_server_looks_by_itself(
    serving: tuple[Listening, ServingCertificate], volume: Volume, other: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serving_certificate.LOOK_EVERY_SECONDS < 60
    monkeypatch.setattr(serving_certificate, "LOOK_EVERY_SECONDS", 0.01)
    listener, followed = serving
    volume.swap(other.serving.certificate_file, other.serving.key_file)
    looking = asyncio.create_task(followed.run())
    while await presented(listener) != other.serving.certificate:
        assert not looking.done()
    looking.cancel()


async def test_the_servers_own_certificate_is_renewed_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(certificates, "LEAF_LIFE", certificates.RENEW_BEFORE + timedelta(seconds=-1))
        own = prepare_certificates(tmp_path, NAMES)
    context = make_context(own.serving.certificate_file, own.serving.key_file)

    def renew() -> None:
        renew_leaves(tmp_path, own.authority, NAMES)

    followed = ServingCertificate(context, own.serving.certificate_file, own.serving.key_file, renew=renew)
    await followed.look()
    assert datetime.fromtimestamp(followed.not_after, UTC) > datetime.now(UTC) + certificates.RENEW_BEFORE
    before = followed.not_after
    await followed.look()
    assert followed.not_after == before
