"""Requests to kube-apiserver: JSON out, JSON in, and nothing else.

What a server that others rely on needs of a client, and no more: no redirects (they would carry our credentials elsewhere), no cookies, no
unpacking, bodies of bounded size, a time-out for each request, and one kind of error.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from yarl import URL

from apiserver.cluster.credentials import Credentials, Identity, tls_context
from apiserver.cluster.kubeconfig import KubeconfigError
from apiserver.cluster.skew import Clock

if TYPE_CHECKING:
    import ssl

    from apiserver.cluster.kubeconfig import Kubeconfig

_BODY_BYTES = 64 * 1024 * 1024
"""More than a list of any kind that is asked for here; what is over it is refused."""
_CONNECTIONS = 64
_RETIRE_SECONDS = 30.0
_SILENCE_SECONDS = 150.0
"""A watch hears a bookmark about once a minute; one that hears nothing for so long is taken for dead."""


class ClusterError(Exception):
    """A request got no answer that can be used."""

    def __init__(self, message: str, *, code: int = 0, retry_after_seconds: float | None = None, was_cut: bool = False) -> None:
        super().__init__(message)
        self.code = code
        """Of the answer; 0: there was none."""
        self.retry_after_seconds = retry_after_seconds
        """What the server asks for."""
        self.was_cut = was_cut
        """Whether the connection was closed before an answer, as happens to idle ones: worth another try at once."""


class ClusterClient:
    """A client of one kube-apiserver. `run` must be awaited by the owner, and closes the connections when it is cancelled."""

    def __init__(self, config: Kubeconfig) -> None:
        self._config = config
        self._credentials = Credentials(config)
        self._session: aiohttp.ClientSession | None = None
        self._identity: Identity | None = None
        self._retired: list[tuple[float, aiohttp.ClientSession]] = []

    async def run(self) -> None:
        """Close the connections of credentials that have been replaced, for ever; at the end, all of them."""
        try:
            while True:
                await asyncio.sleep(_RETIRE_SECONDS)
                while self._retired and self._retired[0][0] <= time.monotonic():
                    await self._retired.pop(0)[1].close()
        finally:
            for session in (*(session for _, session in self._retired), self._session):
                if session is not None:
                    await session.close()

    async def get(self, path: str, *, timeout_seconds: float = 10.0) -> dict[str, Any]:
        """The object or list at a path.

        Raises:
            ClusterError: there is none, or no answer in time.
        """
        return await self._request("GET", path, None, timeout_seconds)

    async def read(self, path: str, *, timeout_seconds: float = 10.0) -> bytes:
        """What is at a path, as it is sent: for large documents, which would hold the loop while they are read.

        Raises:
            ClusterError: there is nothing, or no answer in time.
        """
        with _failures():
            async with asyncio.timeout(timeout_seconds), self._send("GET", path, None) as response:
                return await _read(response)

    async def clock(self, path: str) -> Clock:
        """The clock of whoever answers at a path, which behind kube-apiserver may be another server.

        Raises:
            ClusterError: nobody does, or without a Date.
        """
        asked_at = time.time()
        with _failures():
            async with asyncio.timeout(10.0), self._send("GET", path, None) as response:
                return Clock.read(response.headers.get("Date", ""), asked_at=asked_at)

    async def post(self, path: str, value: dict[str, Any], *, timeout_seconds: float = 10.0) -> dict[str, Any]:
        """What the server makes of an object that it is sent.

        Raises:
            ClusterError: it refuses it, or does not answer in time.
        """
        return await self._request("POST", path, orjson.dumps(value), timeout_seconds)

    async def send(self, path: str, body: bytes, *, timeout_seconds: float) -> None:
        """Post JSON that is written already; nothing is made of what is answered.

        Raises:
            ClusterError: the server refuses it, or does not answer in time.
        """
        with _failures():
            async with asyncio.timeout(timeout_seconds), self._send("POST", path, body) as response:
                await _read(response)

    async def watch(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """The events of a watch, until the server ends it.

        Raises:
            ClusterError: it cannot be begun, or breaks.
        """
        with _failures():
            async with self._send("GET", path, None, silence_seconds=_SILENCE_SECONDS) as response:
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield _object(line)
                    if len(rest) > _BODY_BYTES:
                        raise ClusterError("an event of the watch is too large")

    async def _request(self, method: str, path: str, body: bytes | None, timeout_seconds: float) -> dict[str, Any]:
        with _failures():
            async with asyncio.timeout(timeout_seconds), self._send(method, path, body) as response:
                return _object(await _read(response))

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, body: bytes | None, *, silence_seconds: float | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and give its answer when it is a good one."""
        session = await self._connected()
        headers = [*self._config.impersonation, *self._credentials.headers().items()]
        if body is not None:
            headers.append(("Content-Type", "application/json"))
        async with session.request(
            method,
            URL(self._config.server + path, encoded=True),
            data=body,
            headers=headers,
            allow_redirects=False,
            proxy=self._config.proxy or None,
            server_hostname=self._config.server_name or None,
            timeout=aiohttp.ClientTimeout(total=None, connect=10.0, sock_read=silence_seconds),
        ) as response:
            if response.status == 401:
                self._credentials.doubt()
            if not 200 <= response.status < 300:
                raise await _error(response)
            yield response

    async def _connected(self) -> aiohttp.ClientSession:
        try:
            identity = await self._credentials.fresh()
            if self._session is None or identity != self._identity:
                session = _session(tls_context(self._config, identity))
                if self._session is not None:
                    self._retired.append((time.monotonic() + _RETIRE_SECONDS, self._session))
                self._session, self._identity = session, identity
        except KubeconfigError as error:
            raise ClusterError(str(error)) from error
        return self._session


async def clock_at(url: str) -> Clock:
    """The clock of whoever answers there, whatever the answer is: nobody proves anything, and nothing is told but the address.

    Raises:
        ClusterError: nobody does, or without a Date.
    """
    asked_at, timeout = time.time(), aiohttp.ClientTimeout(total=10.0)
    with _failures():
        async with aiohttp.ClientSession(timeout=timeout) as session, session.head(url, ssl=False, allow_redirects=False) as response:
            return Clock.read(response.headers.get("Date", ""), asked_at=asked_at)


def _session(tls: ssl.SSLContext) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls, limit=_CONNECTIONS, ttl_dns_cache=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "clrk-apiserver"},
        auto_decompress=False,
        read_bufsize=1024 * 1024,
    )


@contextmanager
def _failures() -> Iterator[None]:
    """The one table of what can go wrong below: aiohttp's errors become a ClusterError."""
    try:
        yield
    except TimeoutError as error:
        raise ClusterError("no answer in time") from error
    except aiohttp.ClientConnectorError as error:
        raise ClusterError(str(error)) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        was_cut = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError))
        raise ClusterError(str(error) or type(error).__name__, was_cut=was_cut) from error


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _BODY_BYTES:
            raise ClusterError("the answer is too large")
    return bytes(body)


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ClusterError("the answer is no JSON") from error
    if not isinstance(value, dict):
        raise ClusterError("the answer is no object")
    return value


async def _error(response: aiohttp.ClientResponse) -> ClusterError:
    """What the server says, as far as it is a Status."""
    body = await response.content.read(64 * 1024)
    try:
        message = str(orjson.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = response.reason or ""
    try:
        retry_after_seconds = float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        retry_after_seconds = None
    return ClusterError(f"{response.status} {message}"[:1024], code=response.status, retry_after_seconds=retry_after_seconds)
