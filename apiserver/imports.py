"""What libraries do when they are imported that a server does not need: a tenth of its start.

Knows no other module of ours, and must be called before they import these libraries.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def import_libraries() -> None:
    """Import the libraries that can be told to do less.

    aiohttp reads all authorities of the system, twice, for clients that bring no TLS context of their own; every client here brings one.
    pydantic looks through all packages that are installed for plugins, which nobody has asked for here.
    Source: https://docs.openssl.org/3.0/man3/SSL_CTX_load_verify_locations/ and https://docs.pydantic.dev/latest/concepts/plugins/
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with _without_authorities():
        import aiohttp  # noqa: F401 - for what it does when it is imported for the first time


@contextmanager
def _without_authorities() -> Iterator[None]:
    given = {name: os.environ.get(name) for name in _AUTHORITIES}
    os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    try:
        yield
    finally:
        for name, value in given.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
