"""Client certificates: the common name is the user, the organizations are the groups.

The chain must lead to an authority that counts for clients at this moment, and be valid now, for every request: a connection may outlive
the certificate that opened it, or the trust in its authority.
Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from apiserver.auth import Refusal, with_authenticated
from apiserver.request import User

if TYPE_CHECKING:
    from apiserver.auth.authorities import Judgement
    from apiserver.auth.trust import Trust
    from apiserver.request import Call

_UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")


class ClientCertificate:
    """Authenticates by the certificate that the connection was opened with."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._of_user = object()

    async def authenticate(self, call: Call) -> User | Refusal | None:
        """Return the certificate's user while the certificate is valid; None without one, or when it names nobody."""
        peer = call.peer
        if peer.certificate is None:
            return None
        judgement = self._trust.clients.judge(peer, self)
        known: tuple[Judgement, User | Refusal | None] | None = peer.identities.get(self._of_user)
        if known is None or known[0] is not judgement:
            known = peer.identities[self._of_user] = (judgement, _identity(judgement))
        return known[1]


def _identity(judgement: Judgement) -> User | Refusal | None:
    certificate = judgement.certificate
    if certificate is None:
        return Refusal(f"the client's certificate does not hold: {judgement.problem}")
    name = common_name(certificate)
    if not name:
        return None
    uids = _values(certificate.subject, _UID)
    if len(uids) > 1 or uids == [""]:
        return Refusal(f"the certificate of {name} has more than one uid, or an empty one")
    groups = with_authenticated(name, tuple(_values(certificate.subject, NameOID.ORGANIZATION_NAME)))
    credential = f"X509SHA256={sha256(certificate.public_bytes(Encoding.DER)).hexdigest()}"
    return User(name, "".join(uids), groups, {"authentication.kubernetes.io/credential-id": (credential,)})


def common_name(certificate: x509.Certificate) -> str:
    """The common name of the subject (the last, as Go takes it), or nothing."""
    names = _values(certificate.subject, NameOID.COMMON_NAME)
    return names[-1] if names else ""


def _values(subject: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in subject.get_attributes_for_oid(oid)]
