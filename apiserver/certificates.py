"""The server's own certificates, when it stands alone: an authority, a serving certificate, and an administrator's with a kubeconfig.

Made on the first start and kept in the data directory with mode 0600; the leaves are made anew when they are close to their end, or when
the names they must carry have changed. The authority stays, so that kubeconfigs that were handed out stay good. ECDSA P-256 throughout.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.auth import SYSTEM_MASTERS

AUTHORITY_LIFE = timedelta(days=3650)
LEAF_LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
_CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, with the files (PEM) that hold them."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    certificate_file: Path
    key_file: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """All that a server of its own needs."""

    authority: KeyPair
    serving: KeyPair
    admin: KeyPair


def prepare_certificates(directory: Path, names: Sequence[str]) -> Certificates:
    """Load the certificates of a directory; make those that are missing, old, broken, or not for these names (DNS names or addresses).

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = _load(directory, "ca")
    if authority is None or not _is_fresh(authority.certificate):
        authority = _make_authority(directory)
    return renew_leaves(directory, authority, names)


def renew_leaves(directory: Path, authority: KeyPair, names: Sequence[str]) -> Certificates:
    """Do the same with the leaves alone: what a running server may do, whose authority clients know.

    Raises:
        OSError: the directory cannot be written.
    """
    serving = _load(directory, "serving")
    if serving is None or not _is_leaf_of(serving, authority) or _names_of(serving.certificate) != set(names):
        serving = _make_serving(directory, authority, names)
    admin = _load(directory, "admin")
    if admin is None or not _is_leaf_of(admin, authority):
        admin = make_client(directory, authority, "admin", (SYSTEM_MASTERS,))
    return Certificates(authority, serving, admin)


def make_client(directory: Path, authority: KeyPair, user: str, groups: Sequence[str] = ()) -> KeyPair:
    """Make a client certificate for a user in these groups; the files are called after the user."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return _make_leaf(directory, user, authority, x509.Name(subject), usage, None)


def write_kubeconfig(path: Path, *, server: str, authority_pem: bytes, client: KeyPair) -> None:
    """Write a kubeconfig that holds all it needs, mode 0600. A file that says the same already is left alone."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "clrk", "cluster": {"server": server, "certificate-authority-data": _base64(authority_pem)}}],
        "users": [
            {
                "name": "admin",
                "user": {
                    "client-certificate-data": _base64(client.certificate_file.read_bytes()),
                    "client-key-data": _base64(client.key_file.read_bytes()),
                },
            }
        ],
        "contexts": [{"name": "clrk", "context": {"cluster": "clrk", "user": "admin", "namespace": "default"}}],
        "current-context": "clrk",
    }
    content = yaml.safe_dump(config, sort_keys=False).encode()
    if not path.exists() or path.read_bytes() != content:
        _write_private(path, content)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _load(directory: Path, name: str) -> KeyPair | None:
    certificate_file, key_file = directory / f"{name}.crt", directory / f"{name}.key"
    try:
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    return KeyPair(certificate, key, certificate_file, key_file)


def _is_fresh(certificate: x509.Certificate) -> bool:
    return certificate.not_valid_before_utc <= datetime.now(UTC) < certificate.not_valid_after_utc - RENEW_BEFORE


def _is_leaf_of(leaf: KeyPair, authority: KeyPair) -> bool:
    try:
        leaf.certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return _is_fresh(leaf.certificate)


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}


def _make_authority(directory: Path) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    # A name of its own for each authority: clients that know two of them can tell which one signed.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"clrk-apiserver-ca@{secrets.token_hex(4)}")])
    builder = _builder(subject, subject, key, AUTHORITY_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(for_authority=True), critical=True)
    return _save(directory, "ca", builder.sign(key, hashes.SHA256()), key)


def _make_serving(directory: Path, authority: KeyPair, names: Sequence[str]) -> KeyPair:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "clrk-apiserver")])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return _make_leaf(directory, "serving", authority, subject, usage, x509.SubjectAlternativeName([_general_name(n) for n in names]))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _make_leaf(
    directory: Path,
    name: str,
    authority: KeyPair,
    subject: x509.Name,
    usage: x509.ExtendedKeyUsage,
    names: x509.SubjectAlternativeName | None,
) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(subject, authority.certificate.subject, key, LEAF_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(for_authority=False), critical=True)
    builder = builder.add_extension(usage, critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return _save(directory, name, builder.sign(authority.key, hashes.SHA256()), key)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _CLOCK_SKEW).not_valid_after(now + life)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _key_usage(*, for_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=for_authority,
        crl_sign=for_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _save(directory: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pair = KeyPair(certificate, key, directory / f"{name}.crt", directory / f"{name}.key")
    # "EC PRIVATE KEY", as Kubernetes writes them: clients in Java take a PKCS #8 key of a kubeconfig for an RSA one.
    sec1 = serialization.PrivateFormat.TraditionalOpenSSL
    _write_private(pair.key_file, key.private_bytes(serialization.Encoding.PEM, sec1, serialization.NoEncryption()))
    _write_private(pair.certificate_file, certificate.public_bytes(serialization.Encoding.PEM))
    return pair


def _write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader sees the old content or the new, and nobody but the owner sees either."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
