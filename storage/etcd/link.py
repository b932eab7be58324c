"""One connection to one member of etcd, and the calls over it.

Knows etcd's methods, and how to get through to a member. Policy: certificates are read again for each connection; what is the same in
each call is encoded once.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from storage.etcd import messages
from storage.etcd.calls import Call
from storage.etcd.config import EtcdConfig
from storage.http2.client import ClientConnection
from storage.http2.header_blocks import encode_headers

_DEFAULT_PORT = 2379

# Before these, etcd could send a progress notice ahead of the events that it covers: https://github.com/etcd-io/etcd/issues/15220
_ORDERED_SINCE = {(3, 4): 25, (3, 5): 8}
# Before these, a progress request that came while the watch was catching up was kept until the next event, and with it all that followed:
# https://github.com/etcd-io/etcd/issues/17507
_PROMPT_SINCE = {(3, 4): 31, (3, 5): 13}


@dataclass(frozen=True, slots=True)
class Method:
    """What can be asked of etcd."""

    path: str
    response: Any
    headers: tuple[tuple[str, str], ...] = ()


RANGE = Method("/etcdserverpb.KV/Range", messages.RangeResponse)
TXN = Method("/etcdserverpb.KV/Txn", messages.TxnResponse)
COMPACT = Method("/etcdserverpb.KV/Compact", messages.CompactionResponse)
STATUS = Method("/etcdserverpb.Maintenance/Status", messages.StatusResponse)
AUTHENTICATE = Method("/etcdserverpb.Auth/Authenticate", messages.AuthenticateResponse)
# etcd ends the stream at once when the member has no leader; without, the watch of a cut-off member would be silent for ever.
WATCH = Method("/etcdserverpb.Watch/Watch", messages.WatchResponse, (("hasleader", "true"),))


class Link:
    """Calls on one member, over a connection of its own."""

    def __init__(self, index: int, config: EtcdConfig, connection: ClientConnection) -> None:
        self.index = index
        self.endpoint = config.endpoints[index]
        self.prompt_progress = True
        self._connection = connection
        self._timeout_seconds = config.request_timeout_seconds
        self._token = ""
        self._blocks: dict[str, bytes] = {}

    @classmethod
    async def connect(cls, index: int, config: EtcdConfig) -> Link:
        """Return a link to the member of that index. Takes as long as the network lets it.

        Raises:
            OSError: the member cannot be reached, cannot prove who it is, or does not speak HTTP/2; or a certificate cannot be read.
        """
        endpoint = urlsplit(config.endpoints[index])
        make = partial(
            ClientConnection,
            keepalive_seconds=config.keepalive_seconds,
            keepalive_timeout_seconds=config.keepalive_timeout_seconds,
        )
        security = _security(config) if endpoint.scheme == "https" else None
        loop, host, port = asyncio.get_running_loop(), endpoint.hostname or "", endpoint.port or _DEFAULT_PORT
        transport, connection = await loop.create_connection(make, host, port, ssl=security)
        session = transport.get_extra_info("ssl_object")
        if session is not None and session.selected_alpn_protocol() != "h2":
            transport.abort()
            raise OSError("it does not speak HTTP/2")
        return cls(index, config, connection)

    @property
    def token(self) -> str:
        """What etcd's authentication has given us; empty without one."""
        return self._token

    @token.setter
    def token(self, token: str) -> None:
        self._token = token
        self._blocks.clear()

    async def call(self, method: Method, request: Any) -> Any:
        """Return the response to one request. Cancelling it tells etcd so.

        Raises:
            CallError: anything else than a response.
        """
        answer = await Call(self._connection, self._block(method, timed=True), request.SerializeToString()).answer(self._timeout_seconds)
        return method.response.FromString(answer)

    def stream(self, method: Method, request: Any) -> Call:
        """Begin a call with many messages both ways, the first of which is `request`.

        Raises:
            CallError: it cannot be begun.
        """
        return Call(self._connection, self._block(method, timed=False), request.SerializeToString(), streaming=True)

    async def drain(self) -> None:
        """Take no more calls, let those under way end for as long as a request may take, then close the connection."""
        self._connection.drain()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._connection.wait_closed()
        except TimeoutError:
            await self.close()

    async def close(self) -> None:
        """Close the connection; what is under way breaks off."""
        await self._connection.close()

    def _block(self, method: Method, *, timed: bool) -> bytes:
        block = self._blocks.get(method.path)
        if block is None:
            scheme, _, authority = self.endpoint.partition("://")
            headers = [
                (":method", "POST"),
                (":scheme", scheme),
                (":path", method.path),
                (":authority", authority.rstrip("/")),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                *method.headers,
            ]
            if timed:
                headers.append(("grpc-timeout", f"{round(self._timeout_seconds * 1000)}m"))
            if self._token:
                headers.append(("token", self._token))
            block = self._blocks[method.path] = encode_headers(headers)
        return block


def has_ordered_progress(version: str) -> bool:
    """Whether an etcd of this version answers progress requests, and never ahead of the events that they cover."""
    return _is_since(version, _ORDERED_SINCE)


def has_prompt_progress(version: str) -> bool:
    """Whether it also answers them as soon as it can, so that one may be sent again until it is."""
    return _is_since(version, _PROMPT_SINCE)


def _is_since(version: str, first_patches: dict[tuple[int, int], int]) -> bool:
    numbers = [int(part) if part.isdigit() else 0 for part in version.split("-")[0].split(".")]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return (major, minor) > (3, 5) or patch >= first_patches.get((major, minor), 1 << 30)


def _security(config: EtcdConfig) -> ssl.SSLContext:
    for file in filter(None, (config.ca_file, config.cert_file, config.key_file)):
        file.open("rb").close()  # OpenSSL would not tell which one it cannot read
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if config.ca_file is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(config.ca_file)
    if config.cert_file is not None:
        context.load_cert_chain(config.cert_file, config.key_file)
    context.set_alpn_protocols(["h2"])
    return context
