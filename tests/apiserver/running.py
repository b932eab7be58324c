"""A listener with real TLS on a free port, and clients of it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from apiserver.certificates import Certificates, KeyPair
from apiserver.config import ListenConfig
from apiserver.request import Peer
from apiserver.server import Server
from apiserver.tls import make_context
from tests.connector import Connector

if TYPE_CHECKING:
    from apiserver.app import App
    from apiserver.auth.trust import Trust
    from apiserver.turns import Turns

Entry = Callable[[web.BaseRequest, Peer], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that accepts connections."""

    url: str
    port: int
    pki: Certificates
    server: Server
    app: App | None = None

    def tls(self, identity: KeyPair | None) -> ssl.SSLContext:
        """A client's TLS context that trusts the server and proves this identity."""
        context = ssl.create_default_context(cafile=str(self.pki.authority.certificate_file))
        if identity is not None:
            context.load_cert_chain(identity.certificate_file, identity.key_file)
        return context

    @asynccontextmanager
    async def client(self, identity: KeyPair | None, *, auto_decompress: bool = True) -> AsyncIterator[aiohttp.ClientSession]:
        """A client with this identity, or with none, which keeps no cookies."""
        connector = Connector(ssl=self.tls(identity))
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(self.url, connector=connector, cookie_jar=jar, auto_decompress=auto_decompress) as session:
            yield session


@asynccontextmanager
async def listening(
    pki: Certificates,
    entry: Entry,
    *,
    app: App | None = None,
    config: ListenConfig | None = None,
    trust: Trust | None = None,
    turns: Turns | None = None,
) -> AsyncIterator[Listening]:
    """Serve `entry` until the end of the block; clients are asked for certificates of those whom `trust` names, or of our authority."""
    config = config or ListenConfig(secure_port=0)
    authorities = [pki.authority.certificate_file]
    tls = make_context(pki.serving.certificate_file, pki.serving.key_file, client_authority_files=authorities, http2=config.http2)
    if trust is not None:
        tls.ask_for_client_certificates(trust.certificates)
        trust.on_change(lambda: tls.ask_for_client_certificates(trust.certificates))
    server = Server(config, tls)
    port = server.bind()
    await server.start(entry, app.turns if app is not None else turns)
    try:
        yield Listening(f"https://127.0.0.1:{port}", port, pki, server, app)
    finally:
        if app is not None:
            app.end_watches()
        await server.stop(timeout_seconds=5)
