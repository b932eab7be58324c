"""Certificates that an authority has signed itself, of sorts that `cryptography`'s verifier refuses and Go's takes.

These are certificates of X.509 version 1 (what `openssl x509 -req` makes when no extension is named), and those of authorities with Ed25519
keys, or RSA keys from 1,024 bits on; older versions of the library refuse such keys of clients too. No chains are built here: one
signature, by an authority that counts, and nothing in either certificate that would have to be understood and is not.
Source: https://github.com/golang/go/blob/go1.25.0/src/crypto/x509/verify.go
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512

_USUAL_RSA_BITS = 2048
_LEAST_RSA_BITS = 1024
_HASHES = (SHA256, SHA384, SHA512)
_UNDERSTOOD = (x509.BasicConstraints, x509.KeyUsage, x509.ExtendedKeyUsage, x509.SubjectAlternativeName)
"""What may be critical. Who checks the chain looks at purposes; the others do not concern who signs nothing."""


def issuer_of(leaf: x509.Certificate, authorities: Iterable[x509.Certificate], now: datetime) -> x509.Certificate | None:
    """The authority that has signed this certificate, when both are valid now and one of them is of such a sort; None otherwise."""
    if not _is_valid(leaf, now):
        return None
    for authority in authorities:
        if (
            (_is_unusual(leaf) or _is_unusual(authority))
            and _is_valid(authority, now)
            and _may_sign(authority)
            and _has_signed(authority, leaf)
        ):
            return authority
    return None


def _is_unusual(certificate: x509.Certificate) -> bool:
    key = certificate.public_key()
    small = isinstance(key, rsa.RSAPublicKey) and key.key_size < _USUAL_RSA_BITS
    return small or isinstance(key, ed25519.Ed25519PublicKey) or certificate.version is x509.Version.v1


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < _LEAST_RSA_BITS:
        return False
    understood = all(isinstance(extension.value, _UNDERSTOOD) for extension in certificate.extensions if extension.critical)
    return understood and certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _may_sign(authority: x509.Certificate) -> bool:
    extensions = {type(extension.value): extension.value for extension in authority.extensions}
    constraints, usage = extensions.get(x509.BasicConstraints), extensions.get(x509.KeyUsage)
    if x509.NameConstraints in extensions or not isinstance(constraints, x509.BasicConstraints) or not constraints.ca:
        return False
    return not isinstance(usage, x509.KeyUsage) or usage.key_cert_sign


def _has_signed(authority: x509.Certificate, leaf: x509.Certificate) -> bool:
    # Ed25519 has its hash built in.
    if leaf.signature_hash_algorithm is not None and not isinstance(leaf.signature_hash_algorithm, _HASHES):
        return False
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
