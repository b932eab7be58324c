"""The server's own certificates: what is in them, when they are made anew, and the kubeconfig."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver import certificates
from apiserver.certificates import KeyPair, prepare_certificates, write_kubeconfig

NAMES = ["localhost", "127.0.0.1", "::1", "myhost"]


def usages(pair: KeyPair) -> list[x509.ObjectIdentifier]:
    return list(pair.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_the_certificates_are_what_clients_expect(tmp_path: Path) -> None:
    made = prepare_certificates(tmp_path / "pki", NAMES)
    for pair in (made.authority, made.serving, made.admin):
        assert isinstance(pair.certificate.public_key(), ec.EllipticCurvePublicKey)
        assert isinstance(pair.key.curve, ec.SECP256R1)
        assert pair.certificate.not_valid_before_utc < datetime.now(UTC)
        for file in (pair.certificate_file, pair.key_file):
            assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700
    assert made.authority.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = made.serving.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "myhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert (usages(made.serving), usages(made.admin)) == ([ExtendedKeyUsageOID.SERVER_AUTH], [ExtendedKeyUsageOID.CLIENT_AUTH])
    subject = made.admin.certificate.subject
    assert [attribute.value for attribute in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["admin"]
    assert [attribute.value for attribute in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["system:masters"]


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    first, second = prepare_certificates(tmp_path, NAMES), prepare_certificates(tmp_path, NAMES[::-1])
    assert [pair.certificate for pair in (second.authority, second.serving, second.admin)] == [
        pair.certificate for pair in (first.authority, first.serving, first.admin)
    ]


def test_other_names_make_a_new_serving_certificate_only(tmp_path: Path) -> None:
    first, second = prepare_certificates(tmp_path, NAMES), prepare_certificates(tmp_path, [*NAMES, "other"])
    assert second.serving.certificate != first.serving.certificate
    assert (second.authority.certificate, second.admin.certificate) == (first.authority.certificate, first.admin.certificate)


def test_certificates_close_to_their_end_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as short:
        short.setattr(certificates, "LEAF_LIFE", timedelta(days=29))
        first = prepare_certificates(tmp_path, NAMES)
    second = prepare_certificates(tmp_path, NAMES)
    assert second.authority.certificate == first.authority.certificate
    assert second.serving.certificate != first.serving.certificate
    assert second.admin.certificate != first.admin.certificate
    second.admin.certificate.verify_directly_issued_by(second.authority.certificate)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
@pytest.mark.parametrize("name", ["serving.crt", "serving.key", "ca.crt"])
def test_broken_files_are_made_anew(tmp_path: Path, name: str, content: bytes) -> None:
    prepare_certificates(tmp_path, NAMES)
    (tmp_path / name).write_bytes(content)
    made = prepare_certificates(tmp_path, NAMES)
    for leaf in (made.serving, made.admin):
        leaf.certificate.verify_directly_issued_by(made.authority.certificate)


def test_keys_are_written_as_kubernetes_writes_them(tmp_path: Path) -> None:
    """fabric8's client knows the algorithm by these words, and takes every other key of a kubeconfig for an RSA one."""
    made = prepare_certificates(tmp_path, NAMES)
    for pair in (made.authority, made.serving, made.admin):
        assert pair.key_file.read_bytes().startswith(b"-----BEGIN EC PRIVATE KEY-----\n")


def test_the_kubeconfig_holds_all_it_needs(tmp_path: Path) -> None:
    made = prepare_certificates(tmp_path, NAMES)
    path = tmp_path / "kubeconfig"
    authority_pem = made.authority.certificate_file.read_bytes()
    write_kubeconfig(path, server="https://127.0.0.1:6443", authority_pem=authority_pem, client=made.admin)
    assert path.stat().st_mode & 0o777 == 0o600
    config = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == authority_pem
    assert base64.b64decode(user["client-certificate-data"]) == made.admin.certificate_file.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == made.admin.key_file.read_bytes()
    assert config["current-context"] == config["contexts"][0]["name"]
    assert not list(tmp_path.glob(".*"))
