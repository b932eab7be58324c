"""Proving to etcd who we are: certificates, and names with tokens that do not last."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from storage.errors import Unavailable
from tests.storage.etcd.conftest import OpenStore
from tests.storage.following import PODS, following
from tests.tools import path
from tests.tools.etcd import Etcd

pytestmark = pytest.mark.etcd


class Authority:
    """Makes certificates as PEM files in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._builder(self._name, self._key).add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.file = folder / f"{name}.crt"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a certificate for 127.0.0.1, server and client, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key).add_extension(usage, critical=False).add_extension(names, critical=False)
        cert_file, key_file = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        cert_file.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return cert_file, key_file

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )


async def test_tls_with_a_client_certificate(make_etcd: Callable[..., Etcd], open_store: OpenStore, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    server_cert, server_key = authority.issue("server")
    client_cert, client_key = authority.issue("client")
    flags = (f"--cert-file={server_cert}", f"--key-file={server_key}", f"--trusted-ca-file={authority.file}", "--client-cert-auth")
    etcd = make_etcd(scheme="https", flags=flags)
    etcd.start()
    store = open_store(etcd, ca_file=authority.file, cert_file=client_cert, key_file=client_key)
    async with following(store, after_revision=await store.current_revision()) as watch:
        created = await store.create(PODS + "a", b"x")
        assert [event.revision for event in await watch.until_events(1)] == [created.revision]
    with pytest.raises(Unavailable):
        await open_store(etcd, ca_file=authority.file).current_revision()
    with pytest.raises(Unavailable):
        await open_store(etcd, ca_file=Authority(tmp_path, "other").file, cert_file=client_cert, key_file=client_key).current_revision()
    with pytest.raises(Unavailable, match=r"missing\.crt"):
        await open_store(etcd, ca_file=tmp_path / "missing.crt").current_revision()


def enable_auth(etcd: Etcd) -> None:
    """Turn etcd's authentication on, with root, and a user that may use what a server needs."""
    for words in (
        "user add root:root",
        "user grant-role root root",
        "role add clrk",
        "role grant-permission clrk readwrite --prefix=true /registry/",
        "role grant-permission clrk readwrite clrk-apiserver/revisions",
        "role grant-permission clrk readwrite compact_rev_key",
        "user add clrk:secret",
        "user grant-role clrk clrk",
        "auth enable",
    ):
        subprocess.run([path("etcdctl"), f"--endpoints={etcd.url}", *words.split()], check=True, capture_output=True)


async def test_a_token_that_etcd_has_forgotten_is_replaced_unnoticed(etcd: Etcd, open_store: OpenStore) -> None:
    enable_auth(etcd)
    store = open_store(etcd, user="clrk", password="secret")
    async with following(store, after_revision=await store.current_revision()) as watch:
        await store.create(PODS + "a", b"x")
        await watch.until_events(1)
        etcd.stop()
        etcd.start()
        # The first call finds the connection lost, and the token that it then gets is the only one it needs.
        assert (await store.get(PODS + "a")).value == b"x"
        await store.create(PODS + "b", b"x")
        assert [event.key for event in await watch.until_events(2)] == [PODS + "a", PODS + "b"]


async def test_an_idle_store_outlives_its_token(make_etcd: Callable[..., Etcd], open_store: OpenStore) -> None:
    etcd = make_etcd(flags=("--auth-token-ttl=1",))
    etcd.start()
    enable_auth(etcd)
    idle, other = (open_store(etcd, user="clrk", password="secret", progress_seconds=60.0) for _ in range(2))
    async with following(idle, after_revision=await idle.current_revision()) as watch:
        reading = asyncio.create_task(watch.until_events(1))
        # Only the clock makes a token expire, and asking whether it has would keep it alive.
        await asyncio.sleep(3)
        created = await other.create(PODS + "a", b"x")
        assert [event.revision for event in await reading] == [created.revision]
        updated = await idle.update(PODS + "a", b"y", expected_revision=created.revision)
        assert (await idle.get(PODS + "a")).revision == updated.revision
    async with following(idle, after_revision=created.revision) as late:
        assert [event.revision for event in await late.until_events(1)] == [updated.revision]


async def test_a_wrong_password_and_a_missing_permission_are_told(etcd: Etcd, open_store: OpenStore) -> None:
    enable_auth(etcd)
    with pytest.raises(Unavailable, match="invalid user ID or password"):
        await open_store(etcd, user="clrk", password="wrong").current_revision()
    store = open_store(etcd, user="clrk", password="secret")
    await store.current_revision()
    with pytest.raises(Unavailable, match="permission denied"):
        await store.create("/elsewhere/a", b"x")
    async with following(store, "/elsewhere/", after_revision=0) as watch:
        with pytest.raises(Unavailable, match="permission"):
            await watch.batch()
