"""The TLS side of the listener: versions, ALPN, and client certificates that are asked for, not demanded, and not judged.

As in Go's servers, the handshake only finds out that a client holds the key of the certificate that it shows. Whether an authority that
counts has signed it is judged for each request (`apiserver.auth.authorities`): then a certificate of an unknown authority does no harm to
somebody who brings a token too, and authorities can change while connections are open. Python's `ssl` has neither a switch for that nor
a function for the list of authorities in the certificate request, though OpenSSL has both; they are called directly where CPython's memory
layout is known. Elsewhere the handshake verifies certificates itself, and those of unknown authorities fail in it.
"""

from __future__ import annotations

import ctypes
import os
import ssl
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding


class CertificateError(Exception):
    """A file does not hold what it should; the text says which, and what is wrong."""


class ListenerContext(ssl.SSLContext):
    """The TLS context of a listener; what changes in it holds for new connections."""

    _openssl: _OpenSSL | None = None

    def ask_for_client_certificates(self, authorities: Iterable[x509.Certificate]) -> None:
        """Ask clients for a certificate, naming these authorities. May be called again with others.

        Raises:
            CertificateError: OpenSSL refuses one.
        """
        authorities = list(authorities)
        if self._openssl is None:
            # The callback must live as long as the context: it is kept here.
            self._openssl = _OpenSSL.find(self)
            self.verify_mode = ssl.CERT_OPTIONAL
            if self._openssl is not None:
                self._openssl.accept_any_certificate()
        if self._openssl is not None:
            self._openssl.announce(authorities)
        elif authorities:
            # Those that have gone stay in; their certificates get no further than the handshake.
            try:
                self.load_verify_locations(cadata=b"".join(authority.public_bytes(Encoding.DER) for authority in authorities))
            except ssl.SSLError as error:
                raise CertificateError(f"OpenSSL refuses an authority: {error.reason}") from error

    def present(self, certificate_file: Path, key_file: Path) -> tuple[bytes, bytes]:
        """Present the certificate of these files to new connections; return what they held. Open connections stay as they are.

        All or nothing: after a failure the certificate before is still presented.

        Raises:
            CertificateError: a file cannot be read, holds no certificate or key, or certificate and key do not belong together.
        """
        # Both are read once, and tried first: OpenSSL keeps one half of a pair that does not fit, and files may change at any time.
        held = _read(certificate_file), _read(key_file)
        with _in_memory(held[0]) as certificate, _in_memory(held[1]) as key:
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self):
                _load_serving(context, certificate, key, f"{certificate_file} and {key_file}")
        return held


def make_context(
    certificate_file: Path,
    key_file: Path,
    *,
    client_authority_files: Sequence[Path] = (),
    client_authorities: Iterable[x509.Certificate] = (),
    http2: bool = False,
) -> ListenerContext:
    """Return the context of a listener: TLS 1.2 and later, HTTP/1.1 and, when it is wanted, HTTP/2; clients are asked for certificates of
    these authorities.

    Raises:
        CertificateError: a file cannot be read, holds no certificate or key, or certificate and key do not belong together.
    """
    context = ListenerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The client's order of ciphers counts: clients in Go begin with AES-128, as Go's servers do, and OpenSSL would choose AES-256 itself.
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
    context.present(certificate_file, key_file)
    context.ask_for_client_certificates(
        [*client_authorities, *(authority for file in client_authority_files for authority in load_authorities(file))]
    )
    # No client of Kubernetes resumes sessions across processes; a resumed one would carry an identity that nobody verified again.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    return context


def presented_certificates(connection: ssl.SSLObject | ssl.SSLSocket) -> tuple[bytes | None, tuple[bytes, ...]]:
    """The certificate that the other end has shown, and those that it sent along, as DER; (None, ()) without any."""
    certificate = connection.getpeercert(binary_form=True)
    if certificate is None:
        return None, ()
    if sys.version_info >= (3, 13):
        return certificate, tuple(connection.get_unverified_chain()[1:])
    inner: Any = connection._sslobj  # type: ignore[union-attr] # public from 3.13 on
    return certificate, tuple(ssl.PEM_cert_to_DER_cert(sent.public_bytes()) for sent in inner.get_unverified_chain()[1:])


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A file with this content, of which nothing reaches a disk where the system can do that."""
    if not hasattr(os, "memfd_create"):
        with NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _load_serving(context: ssl.SSLContext, certificate_file: str, key_file: str, names: str) -> None:
    def no_passphrase() -> str:
        raise CertificateError(f"the private key of {names} is encrypted: one without a passphrase is needed")

    try:
        context.load_cert_chain(certificate_file, key_file, password=no_passphrase)
    except ssl.SSLError as error:
        reason = f": {error.reason.replace('_', ' ').lower()}" if error.reason else ""
        raise CertificateError(f"{names} are not a certificate and its key in PEM{reason}") from error


def load_authorities(file: Path) -> list[x509.Certificate]:
    """Read the authorities of a PEM file.

    Raises:
        CertificateError: it cannot be read, or holds none.
    """
    try:
        return x509.load_pem_x509_certificates(_read(file))
    except ValueError as error:
        raise CertificateError(f"{file} holds no certificate of an authority") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {file}: {error.strerror}") from error


class _OpenSSL:
    """The functions of OpenSSL that Python's `ssl` lacks, for one context.

    Source: https://docs.openssl.org/3.0/man3/SSL_CTX_set_cert_verify_callback/, https://docs.openssl.org/3.0/man3/SSL_CTX_set0_CA_list/
    """

    def __init__(self, library: ctypes.CDLL, context: ssl.SSLContext) -> None:
        """Raises AttributeError when the library has no such functions."""
        pointer = ctypes.c_void_p
        callback_type = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)
        # The SSL_CTX is the first member behind the object's header in every CPython that has an SSLContext.
        self._ssl_ctx = pointer.from_address(id(context) + object.__basicsize__)
        self._accept = callback_type(lambda _store, _argument: 1)
        self._set_callback = _typed(library.SSL_CTX_set_cert_verify_callback, None, pointer, callback_type, pointer)
        self._set_names = _typed(library.SSL_CTX_set_client_CA_list, None, pointer, pointer)
        self._add_name = _typed(library.SSL_CTX_add_client_CA, ctypes.c_int, pointer, pointer)
        self._parse = _typed(library.d2i_X509, pointer, pointer, ctypes.POINTER(ctypes.c_char_p), ctypes.c_long)
        self._free = _typed(library.X509_free, None, pointer)

    @classmethod
    def find(cls, context: ssl.SSLContext) -> _OpenSSL | None:
        """The functions for this context; None where they cannot be had."""
        if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
            return None
        import _ssl

        library = ctypes.CDLL(_ssl.__file__) if hasattr(_ssl, "__file__") else ctypes.CDLL(None)
        try:
            return cls(library, context)
        except AttributeError:
            # OpenSSL is linked into the interpreter and keeps its names to itself.
            return None

    def accept_any_certificate(self) -> None:
        """Let the handshake judge no certificate. That the client holds the key is still demanded."""
        self._set_callback(self._ssl_ctx, self._accept, None)

    def announce(self, authorities: Sequence[x509.Certificate]) -> None:
        """Put the names of these authorities, and no others, into the certificate request."""
        self._set_names(self._ssl_ctx, None)
        for authority in authorities:
            der = authority.public_bytes(Encoding.DER)
            certificate = self._parse(None, ctypes.byref(ctypes.c_char_p(der)), len(der))
            if not certificate or not self._add_name(self._ssl_ctx, certificate):
                raise CertificateError(f"OpenSSL refuses the authority {authority.subject.rfc4514_string()}")
            self._free(certificate)


def _typed(function: Any, result: Any, *arguments: Any) -> Any:
    function.restype = result
    function.argtypes = arguments
    return function
