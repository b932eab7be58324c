"""A watch over messages that come as a test sends them: together, and with an end among them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from http2 import frames
from storage.etcd import EtcdConfig
from storage.etcd.connection import Connection
from storage.etcd.link import Link
from storage.etcd.messages import WatchRequest, WatchResponse
from storage.etcd.watch import Watches
from storage.store import Event
from tests.storage.etcd.test_calls import begin, data, message
from tests.storage.http2.peer import Peer, connected


async def begun(peer: Peer) -> tuple[int, int]:
    """Take the beginning of a watch, and return its stream and the revision that it begins with."""
    _, _, stream_id, payload = await peer.next_frame(frames.DATA)
    peer.send(begin(stream_id))
    return stream_id, WatchRequest.FromString(payload[5:]).create_request.start_revision


def response(revision: int, **fields: Any) -> bytes:
    return message(WatchResponse(header={"revision": revision}, **fields).SerializeToString())


def creation(revision: int) -> bytes:
    kv = {"key": b"/pods/a%d" % revision, "value": b"x", "mod_revision": revision}
    return response(revision, events=[{"kv": kv}])


def event(revision: int) -> Event:
    return Event(revision, f"/pods/a{revision}", b"x")


async def test_what_comes_together_is_passed_on_together_and_an_end_behind_it_takes_nothing_away() -> None:
    async with asyncio.timeout(10), connected() as (client, peer):
        config = EtcdConfig()
        connection = Connection(config, on_epoch=lambda: None)
        connection._link = Link(0, config, client)
        watches = Watches(connection, b"", progress_seconds=60.0)
        async with aclosing(watches.watch("/pods/", 10)) as watch:  # type: ignore[type-var]
            first = asyncio.ensure_future(anext(watch))
            stream_id, start_revision = await begun(peer)
            assert start_revision == 11
            peer.send(data(stream_id, response(10, created=True) + creation(11) + creation(12) + response(12, canceled=True)))
            assert await first == (event(11), event(12))
            second = asyncio.ensure_future(anext(watch))
            stream_id, start_revision = await begun(peer)
            assert start_revision == 13
            peer.send(data(stream_id, response(12, created=True) + creation(13)))
            assert await second == (event(13),)
