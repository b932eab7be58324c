"""Whom a client certificate names, and for how long."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from apiserver.auth import Refusal
from apiserver.auth.authorities import Authorities
from apiserver.auth.client_certificate import ClientCertificate
from apiserver.auth.trust import Trust
from apiserver.certificates import Certificates, KeyPair, make_client
from apiserver.request import ANONYMOUS, UNKNOWN_REQUEST, Call, Peer, User


def authenticator_of(pki: Certificates) -> ClientCertificate:
    return ClientCertificate(Trust(Authorities((pki.authority.certificate,))))


def call_of(pair: KeyPair | None) -> Call:
    http: Any = None
    peer = Peer(pair.certificate.public_bytes(Encoding.DER) if pair is not None else None)
    return Call(http, UNKNOWN_REQUEST, ANONYMOUS, [], "", peer)


async def test_the_common_name_is_the_user_and_the_organizations_are_the_groups(pki: Certificates, tmp_path: Path) -> None:
    pair = make_client(tmp_path, pki.authority, "bob", ("dev", "ops", "system:authenticated"))
    user = await authenticator_of(pki).authenticate(call_of(pair))
    assert isinstance(user, User)
    assert (user.name, user.groups) == ("bob", ("dev", "ops", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


async def test_no_certificate_is_nobody(pki: Certificates) -> None:
    assert await authenticator_of(pki).authenticate(call_of(None)) is None


async def test_a_connection_does_not_outlive_its_certificate(pki: Certificates, user: KeyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its dates are looked at for every request."""
    authenticator, call = authenticator_of(pki), call_of(user)
    found = await authenticator.authenticate(call)
    assert isinstance(found, User)
    assert await authenticator.authenticate(call) is found
    end = user.certificate.not_valid_after_utc.timestamp()
    monkeypatch.setattr(time, "time", lambda: end + 1)
    assert isinstance(await authenticator.authenticate(call), Refusal)
