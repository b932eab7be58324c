"""A line on loopback that can be cut: what lies between a client and its server when the network fails."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tests.e2e.pump import pump

T = TypeVar("T")


class Cuttable:
    """An address that leads to the one at `target_port`. It works in a thread of its own, inside of the `with` block."""

    def __init__(self, target_port: int) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._target_port = target_port
        self._away = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="cuttable")

    def __enter__(self) -> Cuttable:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._ended.set)
        self._thread.join()

    def cut(self) -> int:
        """Cut all connections that there are, and return how many ends that were."""
        return self._call(self._cut)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Cut all connections, and let nobody make one, until the end of the block."""
        self._away = True
        self.cut()
        try:
            yield
        finally:
            self._away = False

    def _call(self, function: Callable[[], T]) -> T:
        """Call it in the thread of the line."""

        async def called() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._work())

    async def _work(self) -> None:
        async with await asyncio.start_server(self._relay, sock=self._socket):
            self._ready.set()
            await self._ended.wait()
            self._cut()

    def _cut(self) -> int:
        for writer in self._writers:
            writer.transport.abort()
        return len(self._writers)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        self._writers |= ends
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
            ends.add(back)
            self._writers |= ends
            if self._away:
                self._cut()
            await asyncio.gather(pump(reader, back), pump(there, writer))
        except OSError:
            writer.transport.abort()
        finally:
            self._writers -= ends
