"""The certificate that the listener presents follows its files, so that nothing has to be restarted when it is renewed.

Files are read again every few seconds rather than watched: a volume of Kubernetes swaps symbolic links, a certificate manager may write key
and certificate one after the other, and both look the same from here. A pair that does not fit is told of once and left alone; the one
before is presented until the next look finds a good one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from cryptography import x509

from apiserver.tls import CertificateError, ListenerContext

_log = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 10.0


class ServingCertificate:
    """What a context presents."""

    def __init__(
        self, context: ListenerContext, certificate_file: Path, key_file: Path, *, renew: Callable[[], None] | None = None
    ) -> None:
        """Present what the files hold. `renew` is called before each later look, in a thread: it may write them anew.

        Raises:
            CertificateError: they hold no certificate with its key.
        """
        self._context = context
        self._files = (certificate_file, key_file)
        self._renew = renew
        self._loaded = self._seen = context.present(certificate_file, key_file)
        self.not_after = _end_of(self._loaded[0])
        """When the certificate that is presented ends, in seconds since the epoch."""

    async def run(self) -> None:
        """Look from time to time, for ever."""
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Present what the files hold now, if that is another certificate with its key."""
        if self._renew is not None:
            try:
                await asyncio.to_thread(self._renew)
            except OSError as error:
                _log.error("cannot renew the serving certificate: %s", error)
        found = self._read()
        if found in (self._seen, self._loaded):
            return
        self._seen = found
        try:
            self._loaded = self._context.present(*self._files)
        except CertificateError as error:
            _log.error("%s; the serving certificate before is kept", error)
            return
        self.not_after = _end_of(self._loaded[0])
        _log.warning("presenting a new serving certificate, from %s", self._files[0])

    def _read(self) -> tuple[bytes, bytes]:
        try:
            certificate, key = (file.read_bytes() for file in self._files)
        except OSError:
            # In the middle of being replaced; what is wrong is told when it is loaded.
            return b"", b""
        return certificate, key


def _end_of(certificate: bytes) -> float:
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()
