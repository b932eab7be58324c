"""Authorities that sign client certificates: does a chain lead to one of these, and nowhere else?

The handshake has not judged the certificate (`apiserver.tls`). Here a chain is built to one set of authorities alone, so that what one
authority may vouch for is never taken from another: dates, signatures, name and path constraints, and the purpose "client authentication"
of every certificate in the chain, as Go's `x509.Verify` does it for kube-apiserver. Sorts of certificates that the library's verifier
refuses (version 1, Ed25519, short RSA keys) are taken when an authority has signed them itself (`direct_issue`).
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/authentication/request/x509/x509.go
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, Policy, PolicyBuilder, Store, VerificationError

from apiserver.auth.direct_issue import issuer_of

if TYPE_CHECKING:
    from apiserver.request import Peer

_LOOK_AGAIN_SECONDS = 10.0
_UNUSABLE = (
    VerificationError,
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""All that the library raises for certificates that somebody made up."""
_PURPOSES = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came out for one certificate."""

    authorities: Authorities
    certificate: x509.Certificate | None
    """The certificate, when the chain holds; None when it does not."""
    problem: str
    """Why it does not hold: for the log."""
    not_before: float
    """From when (seconds since the epoch) the judgement holds."""
    not_after: float


@dataclass(frozen=True, eq=False)
class Authorities:
    """A set of authorities. Never changes: another set is another object."""

    certificates: tuple[x509.Certificate, ...] = ()
    _store: Store | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_store", Store(list(self.certificates)) if self.certificates else None)

    @classmethod
    def parse(cls, pem: bytes) -> Authorities:
        """The authorities of a PEM bundle.

        Raises:
            ValueError: there is none in it, or one that cannot be read.
        """
        return cls(tuple(x509.load_pem_x509_certificates(pem)))

    def judge(self, peer: Peer, owner: object) -> Judgement:
        """Judge the certificate of a peer (which has one). `owner` asks: the judgement is kept under its name, and made anew only when the
        authorities are others, or a certificate of the chain has come to its end.
        """
        known: Judgement | None = peer.identities.get(owner)
        now = time.time()
        if known is None or known.authorities is not self or not known.not_before <= now <= known.not_after:
            known = peer.identities[owner] = self._verify(peer, now)
        return known

    def _verify(self, peer: Peer, now: float) -> Judgement:
        assert peer.certificate is not None
        try:
            chain = self._chain(peer.certificate, peer.intermediates, now)
        except _UNUSABLE as error:
            return Judgement(self, None, str(error), now, now + _LOOK_AGAIN_SECONDS)
        not_before = max(certificate.not_valid_before_utc for certificate in chain).timestamp()
        not_after = min(certificate.not_valid_after_utc for certificate in chain).timestamp()
        return Judgement(self, chain[0], "", not_before, not_after)

    def _chain(self, certificate: bytes, intermediates: Sequence[bytes], now: float) -> list[x509.Certificate]:
        if self._store is None:
            raise VerificationError("there are no authorities")
        leaf = x509.load_der_x509_certificate(certificate)
        at = datetime.fromtimestamp(now, UTC)
        verifier = _policy().store(self._store).time(at.replace(tzinfo=None)).build_client_verifier()
        try:
            chain = verifier.verify(leaf, [x509.load_der_x509_certificate(other) for other in intermediates]).chain
        except _UNUSABLE:
            issuer = issuer_of(leaf, self.certificates, at)
            if issuer is None:
                raise
            chain = [leaf, issuer]
        for link in chain:
            _check_purpose(link)
        return chain


def _policy() -> PolicyBuilder:
    """What Go asks of a chain, where the library would ask what browsers do: certificates of Kubernetes carry no alternative names."""
    either = Criticality.AGNOSTIC
    authority = ExtensionPolicy.permit_all().require_present(x509.BasicConstraints, either, None)
    authority = authority.may_be_present(x509.KeyUsage, either, _check_may_sign)
    return PolicyBuilder().extension_policies(ca_policy=authority, ee_policy=ExtensionPolicy.permit_all())


def _check_may_sign(_policy: Policy, _certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise VerificationError("the key of an authority is not for signing certificates")


def _check_purpose(certificate: x509.Certificate) -> None:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return
    if not any(purpose in usage for purpose in _PURPOSES):
        raise VerificationError(f"{certificate.subject.rfc4514_string()} is not for client authentication")
