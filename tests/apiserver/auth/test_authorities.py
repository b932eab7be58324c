"""Which chains lead to an authority: judged as Go's x509.Verify does it."""

from __future__ import annotations

import random
import time
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from apiserver.auth.authorities import Authorities, Judgement
from apiserver.request import Peer
from tests.apiserver.auth.calls import call_with
from tests.apiserver.auth.signing import CLIENT, SERVER, Signed, authority

ROOT, OTHER = authority("root"), authority("other")
HOUR = timedelta(hours=1)
MAY_NOT_SIGN = x509.KeyUsage(True, False, False, False, False, False, False, False, False)


def judge(leaf: Signed, *sent_along: Signed, by: tuple[Signed, ...] = (ROOT,)) -> Judgement:
    peer = call_with(leaf.certificate, sent_along=tuple(link.certificate for link in sent_along)).peer
    return Authorities(tuple(one.certificate for one in by)).judge(peer, "test")


@pytest.mark.parametrize(
    "leaf",
    [
        pytest.param(ROOT.sign("alice"), id="client authentication"),
        pytest.param(ROOT.sign("alice", purposes=(*SERVER, *CLIENT)), id="both purposes"),
        pytest.param(ROOT.sign("alice", purposes=None), id="no purpose is any purpose"),
        pytest.param(ROOT.sign("alice", purposes=[ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE]), id="any purpose"),
        pytest.param(ROOT.sign("alice", extensions=[x509.SubjectAlternativeName([x509.DNSName("a.example")])]), id="with a DNS name"),
    ],
)
def test_a_chain_that_holds(leaf: Signed) -> None:
    assert judge(leaf).certificate == leaf.certificate


@pytest.mark.parametrize(
    "leaf",
    [
        pytest.param(OTHER.sign("alice"), id="another authority"),
        pytest.param(ROOT.sign("alice", purposes=SERVER), id="for servers only"),
        pytest.param(ROOT.sign("alice", end=-HOUR), id="expired"),
        pytest.param(ROOT.sign("alice", begin=HOUR), id="not valid yet"),
        pytest.param(authority("alice"), id="signed by itself"),
        pytest.param(ROOT.sign("evil").sign("alice"), id="signed by a leaf that was not sent"),
        pytest.param(ROOT.sign("alice", extensions=[x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0")]), id="unknown"),
    ],
)
def test_a4_a_chain_that_does_not_hold(leaf: Signed) -> None:
    judgement = judge(leaf)
    assert judgement.certificate is None
    assert judgement.problem


def test_intermediates_that_the_client_sends_are_used_when_they_may_sign() -> None:
    middle = ROOT.sign("middle", authority=True, purposes=None)
    leaf = middle.sign("alice")
    assert judge(leaf).certificate is None
    assert judge(leaf, OTHER, middle).certificate == leaf.certificate
    for wrong in (
        ROOT.sign("middle", purposes=None),
        ROOT.sign("middle", authority=True, purposes=SERVER),
        ROOT.sign("middle", authority=True, purposes=None, extensions=[MAY_NOT_SIGN]),
        ROOT.sign("middle", authority=True, purposes=None, end=-HOUR),
        ROOT.sign("middle", authority=True, extensions=[x509.NameConstraints([x509.DNSName("good.example")], None)], purposes=None),
    ):
        leaf = wrong.sign("alice", extensions=[x509.SubjectAlternativeName([x509.DNSName("bad.example")])])
        assert judge(leaf, wrong).certificate is None


def test_what_a_client_sends_is_never_an_authority() -> None:
    assert judge(OTHER.sign("admin"), OTHER).certificate is None


def test_t089_old_and_new_authority_of_one_name_both_count_while_both_are_listed() -> None:
    new = authority("root")
    for signer in (ROOT, new):
        leaf = signer.sign("front-proxy-client")
        assert judge(leaf, by=(ROOT, new)).certificate == leaf.certificate
    assert judge(ROOT.sign("front-proxy-client"), by=(new,)).certificate is None


def test_no_authorities_vouch_for_nobody() -> None:
    assert judge(ROOT.sign("alice"), by=()).certificate is None


def test_a_judgement_is_kept_until_a_certificate_of_the_chain_ends_or_the_authorities_change(monkeypatch: pytest.MonkeyPatch) -> None:
    middle = ROOT.sign("middle", authority=True, purposes=None, end=HOUR)
    peer = call_with(middle.sign("alice").certificate, sent_along=(middle.certificate,)).peer
    authorities = Authorities((ROOT.certificate,))
    first = authorities.judge(peer, "test")
    assert first.certificate is not None
    assert authorities.judge(peer, "test") is first
    assert Authorities((OTHER.certificate,)).judge(peer, "test").certificate is None
    assert authorities.judge(peer, "test").certificate is not None
    later = time.time() + 3601
    monkeypatch.setattr(time, "time", lambda: later)
    assert authorities.judge(peer, "test").certificate is None


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_certificates_that_nobody_could_have_signed_are_refused_and_harm_nobody() -> None:
    """Whoever holds a key may send any bytes with it that OpenSSL takes for a certificate."""
    middle = ROOT.sign("middle", authority=True, purposes=None)
    der = [link.certificate.public_bytes(Encoding.DER) for link in (middle.sign("alice"), middle)]
    authorities, chance = Authorities((ROOT.certificate,)), random.Random(1)
    for _ in range(3000):
        changed = [bytearray(link) for link in der]
        for _ in range(chance.choice((1, 2, 4))):
            link = chance.choice(changed)
            link[chance.randrange(len(link) - 1)] ^= 1 << chance.randrange(8)
        changed[0][-1] ^= 1  # the signature never holds
        judgement = authorities.judge(Peer(bytes(changed[0]), intermediates=(bytes(changed[1]),)), "test")
        assert judgement.certificate is None
    version = der[0].replace(b"\xa0\3\2\1\2", b"\xa0\3\2\1\6", 1)
    assert "version" in authorities.judge(Peer(version), "test").problem
