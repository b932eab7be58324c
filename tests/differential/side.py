"""One of the two servers, as a client sees it: sends a request, reads the answer or the events, and changes nothing of them."""

from __future__ import annotations

import asyncio
import io
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from tests.connector import Connector
from tests.differential import protobuf_text
from tests.differential.exchange import USER_AGENT

COMPARED_HEADERS = (
    "Content-Type",
    "Content-Encoding",
    "Vary",
    "Cache-Control",
    "Warning",
    "Retry-After",
    "Allow",
    "Location",
    "WWW-Authenticate",
    "X-Content-Type-Options",
    "Etag",
    "Accept-Patch",
    "Deprecation",
)
_LONG_BYTES = 1 << 20
_SKIPPED = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: tuple[str, ...]
    """`Name: value` of those that clients read, sorted; several of one name keep their order."""
    text: str


@dataclass(slots=True)
class Stream:
    """A watch: the answer's head, and the events so far."""

    status: int
    headers: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Side:
    """A server at an address, with a client for each identity."""

    def __init__(self, name: str, url: str, clients: Mapping[str, aiohttp.ClientSession]) -> None:
        self.name = name
        self.url = url
        self._clients = clients

    async def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], identity: str) -> Answer:
        """Send one request and read the whole answer; again, as clients do, while kube-apiserver opens its storage of custom resources."""
        while True:
            answer = await self._ask_once(method, path, body, headers, identity)
            if answer.status != 429 or "storage is (re)initializing" not in answer.text:
                return answer
            await asyncio.sleep(1)

    async def _ask_once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], identity: str) -> Answer:
        try:
            response = await self._send(identity, method, path, body, headers)
        except aiohttp.ServerDisconnectedError:
            return Answer(0, (), "(no answer: the connection was closed)")
        async with response:
            content = await response.read()
            if response.headers.get("Content-Encoding") == "gzip":
                content = zlib.decompress(content, 31)
            is_protobuf = response.content_type == protobuf_text.MEDIA_TYPE
            text = protobuf_text.text_of(content) if is_protobuf and content else content.decode("utf-8", "backslashreplace")
            return Answer(response.status, _headers(response), text)

    @asynccontextmanager
    async def watch(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[Stream]:
        """Open a watch and collect its lines in the background."""
        async with self._send("admin", "GET", path, None, headers) as response:
            stream = Stream(response.status, _headers(response))
            reading = asyncio.create_task(_read_lines(response, stream))
            try:
                yield stream
            finally:
                reading.cancel()
                await asyncio.wait([reading])

    @asynccontextmanager
    async def watch_web_socket(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[Stream]:
        """Open a watch over WebSocket and collect its messages in the background."""
        url = URL(self.url + path, encoded=True)
        try:
            socket = await self._clients["admin"].ws_connect(url, headers={"User-Agent": USER_AGENT, **headers})
        except aiohttp.WSServerHandshakeError as refused:
            yield Stream(refused.status, (), ended=True)
            return
        stream = Stream(101, ())
        reading = asyncio.create_task(_read_messages(socket, stream))
        try:
            yield stream
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            await socket.close()

    def _send(
        self, identity: str, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> aiohttp.client._BaseRequestContextManager[aiohttp.ClientResponse]:
        url = URL(self.url + path, encoded=True)
        data = io.BytesIO(body) if body is not None and len(body) > _LONG_BYTES else body  # aiohttp sends a file piece by piece
        return self._clients[identity].request(
            method, url, data=data, headers={"User-Agent": USER_AGENT, **headers}, skip_auto_headers=_SKIPPED, allow_redirects=False
        )


@asynccontextmanager
async def side(name: str, url: str, contexts: Mapping[str, ssl.SSLContext]) -> AsyncIterator[Side]:
    """A side whose connections are closed at the end of the block. `contexts` has one for each identity."""
    async with AsyncExitStack() as stack:
        clients = {
            identity: await stack.enter_async_context(
                aiohttp.ClientSession(
                    connector=Connector(ssl=context, limit=100),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_read=70),
                    read_bufsize=1 << 22,
                )
            )
            for identity, context in contexts.items()
        }
        yield Side(name, url, clients)


def _headers(response: aiohttp.ClientResponse) -> tuple[str, ...]:
    present = tuple(f"{name}: (is there)" for name in ("Audit-Id",) if response.headers.get(name))
    return (*(f"{name}: {value}" for name in COMPARED_HEADERS for value in response.headers.getall(name, ())), *present)


async def _read_lines(response: aiohttp.ClientResponse, stream: Stream) -> None:
    rest = b""
    is_protobuf = response.content_type == protobuf_text.MEDIA_TYPE
    gunzip = _Gunzip() if response.headers.get("Content-Encoding") == "gzip" else None
    async for chunk in response.content.iter_any():
        if gunzip is not None:
            chunk = gunzip(chunk)
        if is_protobuf:
            records, rest = protobuf_text.records(rest + chunk)
            stream.lines += map(protobuf_text.event_text, records)
        else:
            *lines, rest = (rest + chunk).split(b"\n")
            stream.lines += [line.decode() for line in lines]
        stream.changed.set()
    if rest:
        stream.lines.append(rest.decode())
    if gunzip is not None:
        stream.lines.append("(one gzip member)" if gunzip.members == 1 else "(several gzip members)")
    stream.ended = True
    stream.changed.set()


class _Gunzip:
    """Decompresses gzip piece by piece, and counts its members."""

    def __init__(self) -> None:
        self.members = 1
        self._inflate = zlib.decompressobj(31)

    def __call__(self, chunk: bytes) -> bytes:
        content = self._inflate.decompress(chunk)
        while rest := self._inflate.unused_data:
            self.members += 1
            self._inflate = zlib.decompressobj(31)
            content += self._inflate.decompress(rest)
        return content


async def _read_messages(socket: aiohttp.ClientWebSocketResponse, stream: Stream) -> None:
    async for message in socket:
        is_binary = message.type is aiohttp.WSMsgType.BINARY
        stream.lines.append(f"{message.type.name} {protobuf_text.event_text(message.data) if is_binary else message.data}")
        stream.changed.set()
    stream.ended = True
    stream.changed.set()
