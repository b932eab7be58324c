"""The probe tells how long a server keeps somebody waiting, whatever it waits for itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from apiserver.certificates import Certificates, prepare_certificates
from tests.bench.probe import probing

HELD_MS = 60
SERVER = """
import asyncio, ssl, sys, threading, time

held_seconds, (certificate, key) = float(sys.argv[1]), sys.argv[2:]

def work():
    began = time.thread_time()
    while time.thread_time() - began < held_seconds:
        pass

async def answer(reader, writer):
    while await reader.read(4096):
        IN
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")

async def main():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""
"""Works before each answer, and ends with its standard input."""


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return prepare_certificates(tmp_path_factory.mktemp("pki"), ["127.0.0.1"])


@contextmanager
def working(pki: Certificates, where: str) -> Iterator[str]:
    """A server that works before each answer, in its loop or elsewhere; gives its address."""
    serving = pki.serving
    command = [sys.executable, "-c", SERVER.replace("IN", where), str(HELD_MS / 1000), str(serving.certificate_file), str(serving.key_file)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield f"https://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate()


@pytest.mark.parametrize("where", ["work()", "await asyncio.sleep(held_seconds)"])
def test_the_longest_wait_is_told(pki: Certificates, where: str) -> None:
    with working(pki, where) as url, probing(url, (pki.admin.certificate_file, pki.admin.key_file)) as probed:
        pass
    assert probed.answers
    assert probed.longest_wait_ms > HELD_MS
