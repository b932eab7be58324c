"""The body of a request that comes in a stream, as its reader gets it: what aiohttp's requests have as their content.

Policy: what has come and is not read yet is kept as bytes in one piece, however small the frames that it came in; how much that may be is
the window's to bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Body:
    """What comes is fed to it, and taken by one reader."""

    __slots__ = ("_buffer", "_ended", "_error", "_on_read", "_waiter")

    def __init__(self, on_read: Callable[[int], None]) -> None:
        """`on_read` is told how much has been taken."""
        self._on_read = on_read
        self._buffer = bytearray()
        self._ended = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, content: bytes, *, ended: bool) -> None:
        """Take what has come."""
        self._buffer += content
        self._ended = ended
        self._wake()

    def set_exception(self, error: BaseException) -> None:
        """Nothing more comes; who reads is told why."""
        self._error = error
        self._wake()

    async def readany(self) -> bytes:
        """Return what has come, as soon as there is something; nothing at the end.

        Raises:
            ConnectionError: the client has gone.
        """
        while not self._buffer and not self._ended:
            if self._error is not None:
                raise self._error
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        content = bytes(self._buffer)
        self._buffer.clear()
        self._on_read(len(content))
        return content

    def at_eof(self) -> bool:
        """Whether everything has come, and has been read."""
        return self._ended and not self._buffer

    def is_eof(self) -> bool:
        """Whether everything has come."""
        return self._ended

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
