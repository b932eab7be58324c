"""Client certificates: the common name is the user, the organizations are the groups.

The TLS handshake has verified the chain, the purpose (client authentication) and the dates. The dates are looked at again for every
request, since a connection may outlive the certificate that opened it.
Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.x509.oid import NameOID

from apiserver.auth import SYSTEM_AUTHENTICATED
from apiserver.request import User

if TYPE_CHECKING:
    from apiserver.request import Call, Peer


@dataclass(frozen=True, slots=True)
class _Identity:
    user: User
    not_before: float
    not_after: float


class ClientCertificate:
    """Authenticates by the certificate that the connection was opened with."""

    async def authenticate(self, call: Call) -> User | None:
        """Return the certificate's user while the certificate is valid; None without one, or when it names nobody."""
        peer = call.peer
        if peer.certificate is None:
            return None
        try:
            identity: _Identity | None = peer.identities[self]
        except KeyError:
            identity = peer.identities[self] = _identity_of(peer)
        if identity is None or not identity.not_before <= time.time() <= identity.not_after:
            return None
        return identity.user


def _identity_of(peer: Peer) -> _Identity | None:
    assert peer.certificate is not None
    certificate = x509.load_der_x509_certificate(peer.certificate)
    names = _values(certificate.subject, NameOID.COMMON_NAME)
    if not names or not names[-1]:
        return None
    groups = dict.fromkeys((*_values(certificate.subject, NameOID.ORGANIZATION_NAME), SYSTEM_AUTHENTICATED))
    credential = f"X509SHA256={sha256(peer.certificate).hexdigest()}"
    extra = {"authentication.kubernetes.io/credential-id": (credential,)}
    user = User(names[-1], groups=tuple(groups), extra=extra)
    return _Identity(user, certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp())


def _values(subject: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in subject.get_attributes_for_oid(oid)]
