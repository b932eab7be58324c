"""Certificates that the library's verifier refuses and Go's takes: held against an authority that has signed them itself."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from apiserver.auth.authorities import Authorities, Judgement
from apiserver.certificates import Certificates
from tests.apiserver.auth.calls import call_with
from tests.apiserver.auth.signing import CLIENT, SERVER, Signed, authority
from tests.apiserver.shell import shell

HOUR = timedelta(hours=1)
MAY_NOT_SIGN = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
ROOT = authority("root")


def ed() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def judge(certificate: x509.Certificate, *sent_along: Signed, by: Signed = ROOT) -> Judgement:
    peer = call_with(certificate, sent_along=tuple(link.certificate for link in sent_along)).peer
    return Authorities((by.certificate,)).judge(peer, "test")


def test_ed25519_and_short_rsa_keys_are_taken_of_clients_and_of_authorities() -> None:
    short = rsa.generate_private_key(65537, 1024)
    for key in (ed(), short):
        leaf = ROOT.sign("alice", key=key)
        assert judge(leaf.certificate).certificate == leaf.certificate
        root = authority("unusual", key=key)
        leaf = root.sign("alice")
        assert judge(leaf.certificate, by=root).certificate == leaf.certificate


def test_they_are_held_to_all_that_others_are_held_to() -> None:
    root, other = authority("root", key=ed()), authority("root", key=ed())
    middle = root.sign("middle", authority=True, purposes=None)
    constrained = authority("constrained", key=ed(), extensions=[x509.NameConstraints([x509.DNSName("good.example")], None)])
    may_not_sign = authority("may not sign", key=ed(), extensions=[MAY_NOT_SIGN])
    no_authority = other.sign("leaf", purposes=None, key=ed())
    unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0")
    assert judge(root.sign("alice").certificate, by=root).certificate is not None
    for leaf, by in (
        (other.sign("alice"), root),
        (middle.sign("alice"), root),
        (constrained.sign("alice"), constrained),
        (may_not_sign.sign("alice"), may_not_sign),
        (no_authority.sign("alice"), no_authority),
        (root.sign("alice", purposes=SERVER), root),
        (root.sign("alice", end=-HOUR), root),
        (root.sign("alice", begin=HOUR), root),
        (root.sign("alice", extensions=[unknown]), root),
    ):
        assert judge(leaf.certificate, middle, by=by).certificate is None


def test_a_judgement_ends_with_the_certificate() -> None:
    root = authority("root", key=ed())
    leaf = root.sign("alice", purposes=CLIENT)
    assert judge(leaf.certificate, by=root).not_after == leaf.certificate.not_valid_after_utc.timestamp()


@pytest.mark.parametrize("algorithm", ["ec -pkeyopt ec_paramgen_curve:P-256", "ed25519", "rsa:1024", "rsa:2048"])
async def test_a_certificate_of_version_1_is_taken_whatever_its_key(pki: Certificates, tmp_path: Path, algorithm: str) -> None:
    """As `openssl x509 -req` makes it, without any extension; through the handshake too."""
    issuer = pki.authority
    for command in (
        f"openssl req -newkey {algorithm} -nodes -keyout key -out request -subj /O=system:masters/CN=alice",
        f"openssl x509 -req -in request -CA {issuer.certificate_file} -CAkey {issuer.key_file} -set_serial 7 -out crt -days 2",
    ):
        await asyncio.to_thread(subprocess.run, command.split(), cwd=tmp_path, check=True, capture_output=True)
    async with shell(pki) as listening:
        context = ssl.create_default_context(cafile=str(issuer.certificate_file))
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port, ssl=context, server_hostname="localhost")
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert b'"user": "alice"' in answer
    assert b"system:masters" in answer
