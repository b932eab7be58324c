"""What a Service is to its clients, on loopback: one address in front of replicas, of which those that are ready get the new connections.

kube-apiserver takes no EndpointSlice with an address of loopback, so the Service that it knows is an ExternalName that leads here. As with
a cluster's own Service, a connection stays with the replica that it was given, however that fares; nothing is tried again, and readiness
is what a probe of each replica has said last.
"""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress

from tests.e2e.pump import pump

_PROBE_SECONDS = 0.2


class Balancer:
    """One address for the servers at these ports. It works in a thread of its own, from `start` to `stop`."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._ports = tuple(ports)
        self._ready: frozenset[int] = frozenset()
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="balancer")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, with all connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def wait(self, *, ready: set[int], seconds: float = 60.0) -> None:
        """Return when these ports, and no others, are those of ready servers."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._ready == ready, seconds), f"ready are {set(self._ready)} instead of {ready}"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner, suppress(RuntimeError):  # the loop is stopped before it is done
            runner.run(self._work())

    async def _work(self) -> None:
        server = await asyncio.start_server(self._relay, sock=self._socket)
        async with server:
            await asyncio.gather(*(self._probe(port) for port in self._ports))

    async def _probe(self, port: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        while True:
            ready = False
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                # However long the answer takes: on a machine that is busy, slow is not down.
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                ready = (await reader.readline()).startswith(b"HTTP/1.1 200 ")
                writer.transport.abort()
            with self._changed:
                self._ready = self._ready | {port} if ready else self._ready - {port}
                self._changed.notify_all()
            await asyncio.sleep(_PROBE_SECONDS)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", random.choice(sorted(self._ready)))
        except (OSError, IndexError):
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
