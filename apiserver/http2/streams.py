"""The streams of one connection: which there are, who works for them, and what their client may cost.

Bounds: 100 streams at a time, and no more that are worked for, since what writes goes on when its client gives it up. What a client has
us do for nothing (streams that it resets before they are answered, or has us reset, frames that say nothing) is counted; answers make up
for it. Who is some hundred ahead is sent away.

Source: https://nvd.nist.gov/vuln/detail/CVE-2023-44487, CVE-2025-8671, CVE-2019-9514 to 9518
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from apiserver.http2.stream import Serve, Stream
from http2 import frames
from http2.frames import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from apiserver.http2.heads import RequestHead
    from apiserver.http2.outgoing import Outgoing
    from apiserver.request import Peer

MOST_STREAMS: Final = 100
_NUISANCES: Final = 200


class Streams:
    """The streams of one connection."""

    def __init__(self, serve: Serve, peer: Peer, outgoing: Outgoing, *, on_idle: Callable[[], None]) -> None:
        """`on_idle` is called when there is no stream any more, or nobody works for one."""
        self.peer = peer
        self.outgoing = outgoing
        self.last_id = 0
        """Of the stream that was begun last."""
        self._serve = serve
        self.on_idle: Callable[[], None] | None = on_idle
        self._loop = asyncio.get_running_loop()
        self._streams: dict[int, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._initial_window = frames.WINDOW_BYTES
        self._nuisances = 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self._streams)

    @property
    def worked_for(self) -> bool:
        """Whether somebody works for a stream, which may have ended already."""
        return bool(self._tasks)

    def get(self, id_: int) -> Stream | None:
        """Return the stream; None when it has ended.

        Raises:
            ProtocolError: it has not begun. What comes for one that has ended may have been on its way.
        """
        stream = self._streams.get(id_)
        if stream is None and (not id_ or id_ > self.last_id or not id_ & 1):
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "the stream has not begun")
        return stream

    @property
    def full(self) -> bool:
        """Whether there may be no more."""
        return len(self._streams) >= MOST_STREAMS or len(self._tasks) >= MOST_STREAMS

    def begin(self, id_: int, head: RequestHead, *, ended: bool) -> None:
        """Have a request answered; unless it has `ended`, its body is to come."""
        stream = self._streams[id_] = Stream(self, id_, self._initial_window)
        if not ended:
            stream.expect(head.length_bytes)
        task = stream.task = self._loop.create_task(stream.run(self._serve, head))
        self._tasks.add(task)

    def set_window(self, size: int) -> None:
        """Take the client's word for how much of a stream it takes at first; what it takes of those that there are changes as much.

        Raises:
            ProtocolError: nobody has that much room.
        """
        more, self._initial_window = size - self._initial_window, size
        for stream in self._streams.values() if more else ():
            stream.window += more
            if stream.window > frames.MAX_WINDOW_BYTES:
                raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")

    def pump(self) -> None:
        """Send what waits, as far as the client takes it."""
        for stream in [stream for stream in self._streams.values() if stream.waits]:
            if not self.outgoing.room:
                return
            stream.pump()

    # They end

    def refuse(self, id_: int, code: ErrorCode) -> None:
        """End a stream, which may not even have begun, for what its client has done."""
        self.count_nuisance()
        stream = self._streams.get(id_)
        if stream is not None:
            stream.reset(code)
        else:
            self.outgoing.send(frames.rst_stream(id_, code))

    def given_up(self, stream: Stream) -> None:
        """Its client wants it no more."""
        if not stream.response_begun:
            self.count_nuisance()
        self.ended(stream)
        stream.lost()

    def count_nuisance(self) -> None:
        """Count what is of no use.

        Raises:
            ProtocolError: it is too much.
        """
        self._nuisances += 1
        if self._nuisances > _NUISANCES:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "too much of what is of no use")

    def answered(self, stream: Stream) -> None:
        """A stream has ended as it should."""
        self._nuisances = max(0, self._nuisances - 1)
        self.ended(stream)

    def ended(self, stream: Stream) -> None:
        """A stream has ended."""
        self._streams.pop(stream.id, None)
        if not self._streams and self.on_idle is not None:
            self.on_idle()

    def served(self, stream: Stream) -> None:
        """Nobody works for a stream any more."""
        if stream.task is not None:
            self._tasks.discard(stream.task)
        if not self._tasks and self.on_idle is not None:
            self.on_idle()

    def lose(self) -> None:
        """The client has gone: tell all who still work for it."""
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            stream.lost()

    async def cut_off(self, *, after_seconds: float | None) -> None:
        """Return when nobody works for them any more: what takes longer is cancelled."""
        for seconds in (after_seconds, None):
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=seconds)
            for task in self._tasks:
                task.cancel()
