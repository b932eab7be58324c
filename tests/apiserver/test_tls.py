"""Where OpenSSL's functions cannot be reached, the handshake verifies: less comfortable, as safe."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp
import pytest

from apiserver import tls
from apiserver.certificates import Certificates, make_client, prepare_certificates
from tests.apiserver.shell import shell
from tests.apiserver.status_assertions import assert_status


async def test_without_openssls_functions_unknown_authorities_fail_in_the_handshake(
    pki: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls._OpenSSL, "find", lambda _: None)
    other = prepare_certificates(tmp_path, ["localhost"])
    async with shell(pki) as listening:
        async with listening.client(pki.admin) as client, client.get("/version") as response:
            assert response.status == 200
        async with listening.client(None) as client, client.get("/version") as response:
            await assert_status(response, 401, "Unauthorized")
        async with listening.client(other.admin) as client:
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await client.get("/version")


def test_authorities_that_the_handshake_verifies_with_are_added_once(pki: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    files = pki.serving.certificate_file, pki.serving.key_file
    monkeypatch.setattr(tls._OpenSSL, "find", lambda _: None)
    context = tls.make_context(*files, client_authorities=[pki.authority.certificate])
    before = context.cert_store_stats()["x509_ca"]
    context.ask_for_client_certificates([pki.authority.certificate])
    assert context.cert_store_stats()["x509_ca"] == before


async def test_an_authority_that_is_no_certificate_is_told(tmp_path: Path, pki: Certificates) -> None:
    pair = make_client(tmp_path, pki.authority, "x")
    with pytest.raises(tls.CertificateError, match="holds no certificate"):
        tls.load_authorities(pair.key_file)
    with pytest.raises(tls.CertificateError, match="cannot read"):
        tls.load_authorities(tmp_path / "nothing")
