"""One channel to one member of etcd.

Knows gRPC and its settings. Policy: certificates are read again for each channel; the channel connects by itself and fails fast.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import grpc
from aetcd import rpc

from storage.etcd.config import EtcdConfig

Metadata = tuple[tuple[str, str], ...]

RANGE: Callable[[Link], Any] = attrgetter("range")
TXN: Callable[[Link], Any] = attrgetter("txn")
COMPACT: Callable[[Link], Any] = attrgetter("compact")
STATUS: Callable[[Link], Any] = attrgetter("status")

# Before these, etcd could send a progress notice ahead of the events that it covers: https://github.com/etcd-io/etcd/issues/15220
_PROGRESS_SINCE = {(3, 4): 31, (3, 5): 13}


class Link:
    """A channel to one member, and the calls over it. `metadata` carries the token, if any."""

    def __init__(self, index: int, config: EtcdConfig) -> None:
        self.index = index
        self.endpoint = config.endpoints[index]
        self.metadata: Metadata = ()
        self.progress_requests = False
        scheme, _, address = self.endpoint.partition("://")
        target, options = address.rstrip("/"), _channel_options(config)
        if scheme == "https":
            self._channel = grpc.aio.secure_channel(target, _credentials(config), options)
        else:
            self._channel = grpc.aio.insecure_channel(target, options)
        kv = rpc.KVStub(self._channel)
        self.range, self.txn, self.compact = kv.Range, kv.Txn, kv.Compact
        self.status = rpc.MaintenanceStub(self._channel).Status
        self.authenticate = rpc.AuthStub(self._channel).Authenticate
        self.watch = rpc.WatchStub(self._channel).Watch

    async def close(self, grace_seconds: float | None = None) -> None:
        """Close the channel; let calls under way end for so long."""
        await self._channel.close(grace_seconds)


def has_progress_requests(version: str) -> bool:
    """Whether an etcd of this version answers progress requests, and never ahead of the events that they cover."""
    numbers = [int(part) if part.isdigit() else 0 for part in version.split("-")[0].split(".")]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return (major, minor) > (3, 5) or patch >= _PROGRESS_SINCE.get((major, minor), 1 << 30)


def _credentials(config: EtcdConfig) -> Any:
    return grpc.ssl_channel_credentials(
        root_certificates=None if config.ca_file is None else config.ca_file.read_bytes(),
        private_key=None if config.key_file is None else config.key_file.read_bytes(),
        certificate_chain=None if config.cert_file is None else config.cert_file.read_bytes(),
    )


def _channel_options(config: EtcdConfig) -> list[tuple[str, int]]:
    return [
        ("grpc.keepalive_time_ms", int(config.keepalive_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", int(config.keepalive_timeout_seconds * 1000)),
        # A ping under way already, and in grpc 1.85 every one, has this limit instead, which is a minute if nobody sets it.
        ("grpc.http2.ping_timeout_ms", int(config.keepalive_timeout_seconds * 1000)),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # A new channel must try at once, not wait for the back-off of the one before.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
    ]
