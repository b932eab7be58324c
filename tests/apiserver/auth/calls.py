"""Calls as authenticators and authorizers see them."""

from __future__ import annotations

from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from multidict import CIMultiDict, CIMultiDictProxy

from apiserver.request import ANONYMOUS, UNKNOWN_REQUEST, Call, Peer


class _Http:
    def __init__(self, headers: list[tuple[str, str]]) -> None:
        self.headers = CIMultiDictProxy(CIMultiDict(headers))


def call_with(
    certificate: x509.Certificate | None = None, *headers: tuple[str, str], sent_along: tuple[x509.Certificate, ...] = ()
) -> Call:
    """A request on a connection that was opened with this certificate."""
    http: Any = _Http(list(headers))
    der = certificate.public_bytes(Encoding.DER) if certificate is not None else None
    peer = Peer(der, intermediates=tuple(link.public_bytes(Encoding.DER) for link in sent_along))
    return Call(http, UNKNOWN_REQUEST, ANONYMOUS, [], "", peer)
