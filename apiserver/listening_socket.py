"""The socket that connections come from: its address, and what accepted ones inherit from it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from apiserver.config import StartupError

if TYPE_CHECKING:
    from apiserver.config import ListenConfig


def bind(config: ListenConfig) -> socket.socket:
    """Take the address. Connections are refused until somebody listens.

    Raises:
        StartupError: the address is taken, or not one of this machine.
    """
    host, port = config.bind_address, config.secure_port
    bound: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setblocking(False)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if config.dead_peer_seconds:
            _notice_dead_peers(bound, config.dead_peer_seconds)
        if family == socket.AF_INET6:
            # `::` means every address, IPv4 as well, as in Go.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(address)
    except (OSError, OverflowError) as error:
        if bound is not None:
            bound.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StartupError(f"cannot listen on {host} port {port}: {reason}") from error
    return bound


def _notice_dead_peers(listening: socket.socket, seconds: int) -> None:
    """Ask idle peers for a sign of life, and give up on those who owe one, or an acknowledgement, for so long. Accepted sockets inherit it.

    Source: https://man7.org/linux/man-pages/man7/tcp.7.html (TCP_KEEPIDLE, TCP_USER_TIMEOUT)
    """
    idle = max(seconds // 3, 1)
    probes = 8
    interval = max((seconds - idle) // probes, 1)
    options = {"TCP_KEEPIDLE": idle, "TCP_KEEPALIVE": idle, "TCP_KEEPINTVL": interval, "TCP_KEEPCNT": probes}
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (options | {"TCP_USER_TIMEOUT": seconds * 1000}).items():
        if hasattr(socket, name):  # macOS calls the first one by the second name, and has no TCP_USER_TIMEOUT
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
