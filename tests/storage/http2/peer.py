"""A server that speaks HTTP/2 frame by frame, as a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from http2 import frames
from http2.frame_reader import Frame, FrameReader
from storage.http2.client import BrokenOffError, ClientConnection
from storage.http2.header_blocks import HEADER_BLOCK_BYTES, Headers


class Peer:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self._frames = FrameReader(header_block_bytes=HEADER_BLOCK_BYTES)
        self._ready: list[Frame] = []

    async def greet(self, settings: dict[int, int] | None = None) -> None:
        assert await self._reader.readexactly(len(frames.PREFACE)) == frames.PREFACE
        self.send(frames.settings_frame(settings or {}), frames.frame(frames.SETTINGS, frames.ACK, 0))

    def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))

    async def next_frame(self, *kinds: int) -> Frame:
        """Return the next frame of one of these kinds, whatever comes before it."""
        async with asyncio.timeout(10):
            while True:
                while self._ready:
                    one = self._ready.pop(0)
                    if one[0] in kinds:
                        return one
                received = await self._reader.read(65_536)
                if not received:
                    raise EOFError
                self._ready += self._frames.feed(received)


class Listener:
    """Keeps what a stream brings."""

    def __init__(self, *, room: bool = True) -> None:
        self.room = room
        self.headers: list[Headers] = []
        self.data = b""
        self.error: BrokenOffError | None = None
        self.ended = asyncio.Event()

    def received_headers(self, headers: Headers, *, ended: bool) -> None:
        self.headers.append(headers)
        if ended:
            self.ended.set()

    def received_data(self, payload: bytes, *, ended: bool) -> bool:
        self.data += payload
        if ended:
            self.ended.set()
        return self.room

    def broke_off(self, error: BrokenOffError) -> None:
        self.error = error
        self.ended.set()

    async def end(self) -> None:
        async with asyncio.timeout(10):
            await self.ended.wait()


@asynccontextmanager
async def connected(
    settings: dict[int, int] | None = None, *, keepalive_seconds: float = 60.0
) -> AsyncIterator[tuple[ClientConnection, Peer]]:
    """Connect a client to a peer over loopback, and close both in the end."""
    arrived: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set_result(Peer(reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    _, client = await asyncio.get_running_loop().create_connection(
        lambda: ClientConnection(keepalive_seconds=keepalive_seconds, keepalive_timeout_seconds=keepalive_seconds), host, port
    )
    peer = await arrived
    try:
        await peer.greet(settings)
        yield client, peer
    finally:
        await client.close()
        peer.writer.close()
        server.close()
        await server.wait_closed()
