"""What the etcd store has to be told. Knows nothing of the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdConfig:
    """Where etcd is, how to prove who we are, and how long to wait for it."""

    endpoints: tuple[str, ...] = ("http://127.0.0.1:2379",)
    """URLs of the members, http or https. The first that works is used; when it fails the next one is, round and round."""
    prefix: str = ""
    """Put before every key, so that several installations can share one etcd; callers see keys without it. Empty: nothing is put."""
    ca_file: Path | None = None
    """PEM with the authorities that may have signed the members' certificates. None: those that the system trusts."""
    cert_file: Path | None = None
    """PEM of the client certificate, read again for each connection, so that a renewed one is used. None: no client certificate."""
    key_file: Path | None = None
    """PEM of the key of `cert_file`."""
    user: str | None = None
    """Name for etcd's own authentication; needs `password`. None: etcd asks for none, or the client certificate's name counts."""
    password: str | None = field(default=None, repr=False)
    """Password of `user`."""
    connect_timeout_seconds: float = 2.0
    """How long one member may take from the connection to the first linearizable answer before the next one is tried."""
    request_timeout_seconds: float = 10.0
    """After that an answer is no longer waited for. Above etcd's own limit of about 7 s, so that etcd can say what is wrong."""
    keepalive_seconds: float = 6.0
    """A connection in use that is silent for so long is asked for a sign of life. etcd refuses clients that ask more than every 5 s."""
    keepalive_timeout_seconds: float = 3.0
    """A connection that then gives none for so long is given up: after `keepalive_seconds` plus this the next member is used."""
    progress_seconds: float = 2.0
    """How often a quiet watch asks how far it is. It costs two small messages for each watch."""
    compact_seconds: float = 300.0
    """History older than one to two of these is removed from etcd. 0: somebody else compacts."""

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ValueError("no etcd endpoint is given")
        if (self.user is None) != (self.password is None):
            raise ValueError("etcd user and password belong together")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("etcd client certificate and key belong together")
        for endpoint in self.endpoints:
            scheme, separator, address = endpoint.partition("://")
            if scheme not in ("http", "https") or not separator or not address.strip("/"):
                raise ValueError(f"etcd endpoint {endpoint!r} is not of the form http://HOST:PORT or https://HOST:PORT")
