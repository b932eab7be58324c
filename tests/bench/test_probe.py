"""The probe tells what kept an event loop from what kept the machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from apiserver.certificates import Certificates, prepare_certificates
from tests.bench.probe import Probed, probing

HELD_MS = 60
TICK_MS = 20
"""To this the system counts, at the worst, what a thread runs."""
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
def working(pki: Certificates, where: str) -> Iterator[tuple[str, int]]:
    """A server that works before each answer, in its loop or elsewhere; gives its address and the thread of its loop."""
    serving = pki.serving
    command = [sys.executable, "-c", SERVER.replace("IN", where), str(HELD_MS / 1000), str(serving.certificate_file), str(serving.key_file)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield f"https://127.0.0.1:{int(process.stdout.readline())}", process.pid
        process.communicate()


def probed_beside_work(pki: Certificates, where: str, *, has_loop: bool = True) -> Probed:
    with working(pki, where) as (url, thread):
        client = pki.admin.certificate_file, pki.admin.key_file
        with probing(url, client, loop_thread=thread if has_loop else None) as probed:
            pass
    assert probed.answers
    return probed


def test_a_loop_that_is_held_is_told_in_its_own_cpu_time(pki: Certificates) -> None:
    probed = probed_beside_work(pki, "work()")
    assert probed.longest_hold_ms is not None
    assert probed.longest_hold_ms > HELD_MS - TICK_MS
    assert probed.longest_wait_ms > HELD_MS


def test_what_others_do_meanwhile_is_a_wait_and_no_hold(pki: Certificates) -> None:
    probed = probed_beside_work(pki, "await asyncio.sleep(held_seconds)")
    assert probed.longest_hold_ms is not None
    assert probed.longest_wait_ms > HELD_MS
    assert probed.longest_hold_ms < HELD_MS - TICK_MS


def test_a_server_without_a_loop_has_waits_only(pki: Certificates) -> None:
    assert probed_beside_work(pki, "work()", has_loop=False).longest_hold_ms is None
