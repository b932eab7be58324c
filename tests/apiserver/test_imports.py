"""Libraries that are imported for a server do no more than it needs, and leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_TELL = """
import os
from apiserver.imports import import_libraries
import_libraries()
from aiohttp.connector import _SSL_CONTEXT_VERIFIED
from pydantic.plugin._loader import get_plugins
print(_SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"], len(tuple(get_plugins())))
print(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
"""


@pytest.mark.parametrize("given", [{}, {"SSL_CERT_FILE": "/etc/ssl/cert.pem", "SSL_CERT_DIR": "/etc/ssl/certs"}], ids=["default", "given"])
def test_no_authorities_are_read_for_clients_that_bring_their_own(given: dict[str, str]) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT_")}
    done = subprocess.run([sys.executable, "-c", _TELL], env=kept | given, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0", str(given.get("SSL_CERT_FILE")), str(given.get("SSL_CERT_DIR"))]
