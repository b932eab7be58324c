"""A watch over WebSocket, as browsers ask for it: the handshake, and what a client sends although nothing is expected.

Whatever is wrong with a handshake is an ordinary failure, after which the connection ends: no byte behind it is ever read as anything else.
kube-apiserver refuses with the same codes, but without a Status.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/watch.go (HandleWS)
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from apiserver.meta import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apiserver.request import Call

_CREDENTIAL = "base64url.bearer.authorization.k8s.io."
_LARGEST_MESSAGE_BYTES = 64 * 1024
_CLOSE_SECONDS = 2.0
_KEY_BYTES = 16


def asks_for_websocket(call: Call) -> bool:
    """Whether the client wants to leave HTTP for a WebSocket."""
    headers = call.http.headers
    return headers.get("Upgrade", "").lower() == "websocket" and "upgrade" in headers.get("Connection", "").lower()


def accept_websocket(call: Call) -> web.WebSocketResponse:
    """Judge a handshake, and return the response that answers it.

    A client may name one subprotocol beside the one that carries its token, whatever it is called; it is confirmed.

    Raises:
        APIError: 400 for a handshake that is not one of RFC 6455; 403 without an `Origin` that is an address, as kube-apiserver wants it.
    """
    headers = call.http.headers
    if not _is_key(headers.get("Sec-WebSocket-Key", "")):
        raise errors.bad_request("mismatch challenge/response")
    if headers.get("Sec-WebSocket-Version") != "13":
        raise errors.bad_request("missing or bad WebSocket Version")
    if not _is_origin(headers.get("Origin", "")):
        raise errors.APIError(403, "Forbidden", "a WebSocket needs an Origin header")
    protocols = _protocols(headers)
    if len(protocols) > 1:
        raise errors.bad_request("more than one WebSocket subprotocol")
    return web.WebSocketResponse(protocols=protocols, compress=False, max_msg_size=_LARGEST_MESSAGE_BYTES, timeout=_CLOSE_SECONDS)


async def ignore_messages(socket: web.WebSocketResponse) -> None:
    """Read until the client closes: it is answered, also to its pings, and nothing that it says means anything."""
    async for _ in socket:
        pass


def _protocols(headers: Mapping[str, str]) -> list[str]:
    listed = [protocol.strip() for protocol in headers.get("Sec-WebSocket-Protocol", "").split(",")]
    return [protocol for protocol in listed if protocol and not protocol.startswith(_CREDENTIAL)]


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False


def _is_origin(text: str) -> bool:
    try:
        return "%" not in text and (text.startswith("/") or bool(urlsplit(text).scheme))
    except ValueError:
        return False
