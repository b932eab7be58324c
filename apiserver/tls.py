"""The TLS side of the listener: versions, ALPN, and client certificates that are asked for but not demanded.

What Python's `ssl` cannot do, and what follows: it has no callback for verification, so a client that *presents* a certificate of an
unknown authority (or an expired one) fails in the handshake, where Go's servers answer 401. A client that looks at the list of authorities
in the request, as all Go clients do, presents no such certificate and is judged by what else it brings. Python has no function that sends
this list either, though OpenSSL has; it is called directly where CPython's memory layout is known, and left out elsewhere.
"""

from __future__ import annotations

import ctypes
import ssl
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding


class CertificateError(Exception):
    """A file does not hold what it should; the text says which, and what is wrong."""


def make_context(certificate_file: Path, key_file: Path, *, client_authority_files: Sequence[Path]) -> ssl.SSLContext:
    """Return the context of a listener: TLS 1.2 and later, HTTP/1.1, certificates of these authorities accepted from clients.

    Raises:
        CertificateError: a file cannot be read, holds no certificate or key, or certificate and key do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _load_serving(context, certificate_file, key_file)
    authorities = [authority for file in client_authority_files for authority in _load_authorities(file)]
    if authorities:
        context.verify_mode = ssl.CERT_OPTIONAL
        for authority in authorities:
            context.load_verify_locations(cadata=authority.public_bytes(Encoding.DER))
        announce_client_authorities(context, authorities)
    # No client of Kubernetes resumes sessions across processes; a resumed one would carry an identity that nobody verified again.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    return context


def _load_serving(context: ssl.SSLContext, certificate_file: Path, key_file: Path) -> None:
    def no_passphrase() -> str:
        raise CertificateError(f"the private key {key_file} is encrypted: one without a passphrase is needed")

    for file in (certificate_file, key_file):
        _read(file)
    try:
        context.load_cert_chain(certificate_file, key_file, password=no_passphrase)
    except ssl.SSLError as error:
        reason = f": {error.reason.replace('_', ' ').lower()}" if error.reason else ""
        raise CertificateError(f"{certificate_file} and {key_file} are not a certificate and its key in PEM{reason}") from error


def _load_authorities(file: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(_read(file))
    except ValueError as error:
        raise CertificateError(f"{file} holds no certificate of an authority") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {file}: {error.strerror}") from error


def announce_client_authorities(context: ssl.SSLContext, authorities: Sequence[x509.Certificate]) -> bool:
    """Put the names of these authorities into the server's certificate request; return whether that was possible here.

    Raises:
        CertificateError: OpenSSL refuses one.

    Source: https://docs.openssl.org/3.0/man3/SSL_CTX_set0_CA_list/ (SSL_CTX_add_client_CA)
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    import _ssl

    library = ctypes.CDLL(_ssl.__file__) if hasattr(_ssl, "__file__") else ctypes.CDLL(None)
    try:
        parse, free, add = library.d2i_X509, library.X509_free, library.SSL_CTX_add_client_CA
    except AttributeError:
        # OpenSSL is linked into the interpreter and keeps its names to itself.
        return False
    parse.restype = ctypes.c_void_p
    parse.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_long)
    free.restype = None
    free.argtypes = (ctypes.c_void_p,)
    add.restype = ctypes.c_int
    add.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    # The SSL_CTX is the first member behind the object's header in every CPython that has an SSLContext.
    ssl_ctx = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    for authority in authorities:
        der = authority.public_bytes(Encoding.DER)
        certificate = parse(None, ctypes.byref(ctypes.c_char_p(der)), len(der))
        if not certificate or not add(ssl_ctx, certificate):
            raise CertificateError(f"OpenSSL refuses the authority {authority.subject.rfc4514_string()}")
        free(certificate)
    return True
