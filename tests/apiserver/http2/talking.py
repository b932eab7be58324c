"""A client of HTTP/2 that says what it is told to say, also what no client should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from struct import unpack

from hpack import Decoder, Encoder

from http2 import frames
from tests.apiserver.running import Listening

Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Frame:
    """What has come."""

    type: int
    flags: int
    stream: int
    payload: bytes

    @property
    def code(self) -> int:
        """Of a frame that ends a stream or the connection."""
        number: int = unpack(">I", self.payload[-4:])[0] if self.type == frames.RST_STREAM else unpack(">I", self.payload[4:8])[0]
        return number


@dataclass(slots=True)
class Answer:
    """A response, as far as it has come."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(self.headers[":status"])


class Client:
    """One connection. `answers` has what came for each stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.answers: dict[int, Answer] = {}
        self.gone_away: int | None = None
        self.settings: dict[int, int] = {}
        self.pongs = 0
        self.credit: dict[int, int] = {}
        """What the server has said that it takes, by stream."""
        self.generous = True
        """Whether room is given back for what has come."""
        self.obedient = True
        """Whether it says that it keeps to the server's settings."""
        self._encoder = Encoder()
        self._decoder = Decoder()
        self._next = 1

    def send(self, *pieces: bytes) -> None:
        """Write frames."""
        self.writer.write(b"".join(pieces))

    def block(self, *headers: Header) -> bytes:
        """Headers, compressed."""
        return self._encoder.encode(headers)

    def ask(self, method: str, path: str, *more: Header, ended: bool = True, encoded: bytes = b"") -> int:
        """Begin a request; return its stream. `encoded` are further headers, encoded already."""
        stream, self._next = self._next, self._next + 2
        self.answers[stream] = Answer()
        block = self.block((":method", method), (":scheme", "https"), (":path", path), (":authority", "localhost"), *more) + encoded
        flags = frames.END_STREAM if ended else 0
        pieces = [block[at : at + frames.FRAME_BYTES] for at in range(0, len(block), frames.FRAME_BYTES)]
        for number, piece in enumerate(pieces):
            last = frames.END_HEADERS if number == len(pieces) - 1 else 0
            self.send(frames.frame(frames.CONTINUATION if number else frames.HEADERS, last | (0 if number else flags), stream, piece))
        return stream

    def data(self, stream: int, content: bytes, *, ended: bool = False) -> None:
        """Send a piece of a body."""
        self.send(frames.frame(frames.DATA, frames.END_STREAM if ended else 0, stream, content))

    async def next(self) -> Frame:
        """The next frame; it is written down too. An IncompleteReadError at the end of the connection."""
        type_, flags, stream, length = frames.head_of(await self.reader.readexactly(9), 0)
        frame = Frame(type_, flags, stream, await self.reader.readexactly(length))
        answer = self.answers.get(stream)
        if type_ == frames.HEADERS:
            assert answer is not None
            answer.headers |= {str(name): str(value) for name, value in self._decoder.decode(frame.payload)}
        elif type_ == frames.DATA:
            assert answer is not None
            answer.body += frame.payload
            if self.generous and length:
                self.send(frames.window_update(0, length))
                if not flags & frames.END_STREAM:
                    self.send(frames.window_update(stream, length))
        elif type_ == frames.RST_STREAM and answer is not None:
            answer.reset = frame.code
        elif type_ == frames.GOAWAY:
            self.gone_away = frame.code
        elif type_ == frames.SETTINGS and not flags & frames.ACK:
            self.settings |= dict(frames.settings_of(frame.payload))
            if self.obedient:
                self.send(frames.frame(frames.SETTINGS, frames.ACK, 0))
        elif type_ == frames.PING and flags & frames.ACK:
            self.pongs += 1
        elif type_ == frames.PING:
            self.send(frames.frame(frames.PING, frames.ACK, 0, frame.payload))
        elif type_ == frames.WINDOW_UPDATE:
            self.credit[stream] = self.credit.get(stream, 0) + frames.uint(frame.payload)
        if type_ in (frames.HEADERS, frames.DATA) and flags & frames.END_STREAM:
            assert answer is not None
            answer.ended = True
        return frame

    async def answer(self, stream: int) -> Answer:
        """What comes for a stream, when it has ended."""
        answer = self.answers[stream]
        while not answer.ended and answer.reset is None:
            await self.next()
        return answer

    async def end(self) -> int | None:
        """Read until the server closes; return the code with which it went away."""
        try:
            while True:
                await self.next()
        except (asyncio.IncompleteReadError, ConnectionError):
            return self.gone_away


@asynccontextmanager
async def talking(listening: Listening, *, settings: dict[int, int] | None = None) -> AsyncIterator[Client]:
    """A connection on which the greetings have been sent."""
    context = listening.tls(listening.pki.admin)
    context.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection("127.0.0.1", listening.port, ssl=context, server_hostname="localhost")
    client = Client(reader, writer)
    client.send(frames.PREFACE, frames.settings_frame(settings or {}))
    try:
        async with asyncio.timeout(30):
            yield client
    finally:
        writer.transport.abort()
