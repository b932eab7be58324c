"""Certificates of every kind, also of those that nobody should make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)
SERVER = (ExtendedKeyUsageOID.SERVER_AUTH,)
_DAY = timedelta(days=1)
Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate with its key, which may sign others."""

    certificate: x509.Certificate
    key: Key = field(repr=False)

    def sign(
        self,
        name: str,
        *groups: str,
        authority: bool = False,
        purposes: Iterable[x509.ObjectIdentifier] | None = CLIENT,
        begin: timedelta = -_DAY,
        end: timedelta = _DAY,
        extensions: Iterable[x509.ExtensionType] = (),
        key: Key | None = None,
    ) -> Signed:
        """A certificate of this authority; `purposes` None: for any purpose."""
        return _make(name, groups, self, authority=authority, purposes=purposes, begin=begin, end=end, extensions=extensions, key=key)


def authority(name: str, *, extensions: Iterable[x509.ExtensionType] = (), key: Key | None = None) -> Signed:
    """One that signs itself."""
    return _make(name, (), None, authority=True, purposes=None, begin=-_DAY, end=_DAY, extensions=extensions, key=key)


def _make(
    name: str,
    groups: tuple[str, ...],
    issuer: Signed | None,
    *,
    authority: bool,
    purposes: Iterable[x509.ObjectIdentifier] | None,
    begin: timedelta,
    end: timedelta,
    extensions: Iterable[x509.ExtensionType],
    key: Key | None,
) -> Signed:
    key, now = key or ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, *([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])])
    builder = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    builder = builder.issuer_name(issuer.certificate.subject if issuer is not None else subject)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now + begin).not_valid_after(now + end)
    if authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if purposes is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    signing = issuer.key if issuer is not None else key
    return Signed(builder.sign(signing, None if isinstance(signing, ed25519.Ed25519PrivateKey) else hashes.SHA256()), key)
