"""What aiohttp's responses write themselves with: their head becomes HEADERS, their body DATA.

Bodies are written as they are: whoever compresses one has done so before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp.abc import AbstractStreamWriter

from apiserver.http2.heads import response_block

if TYPE_CHECKING:
    from multidict import CIMultiDict

    from apiserver.http2.stream import Stream

_DRAIN_ABOVE_BYTES = 64 * 1024
_WITHOUT_BODY = (204, 304)
_CONTINUE = b"\x08\x03100"


class ResponseWriter(AbstractStreamWriter):
    """Writes one response."""

    length: int | None = None

    def __init__(self, stream: Stream, *, head_only: bool) -> None:
        self._stream = stream
        self._head_only = head_only
        self._block: bytes | None = None
        self._begun = self._ended = False

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        """Take the head; it is sent together with the first of the body."""
        status = int(status_line[9:12])
        self._head_only = self._head_only or status in _WITHOUT_BODY
        self._block = response_block(status, headers)
        self._begun = True

    def send_headers(self) -> None:
        """Send the head now."""
        if self._block is not None:
            block, self._block = self._block, None
            self._stream.send_head(block)
            self.output_size += len(block)

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Send a piece of the body, and wait when the client takes no more.

        What is written before the head is the word that a client may go on with its body.
        """
        if not self._begun:
            self._stream.send_head(_CONTINUE, interim=True)
            return
        self.send_headers()
        if chunk and not self._head_only:
            self._stream.send(chunk)
            self.output_size += len(chunk)
            self.buffer_size += len(chunk)
            if self.buffer_size > _DRAIN_ABOVE_BYTES:
                self.buffer_size = 0
                await self.drain()

    async def write_eof(self, chunk: bytes = b"") -> None:
        """Send the last piece, and wait until there is room for more."""
        if self._ended:
            return
        self._ended = True
        content = b"" if self._head_only else chunk
        if content or self._block is None:
            self.send_headers()
            self._stream.send(content, end=True)
            self.output_size += len(content)
        else:
            self._stream.send_head(self._block, end=True)
            self.output_size += len(self._block)
        await self.drain()

    async def drain(self) -> None:
        """Wait until the client takes more."""
        if self._stream.paused:
            await self._stream.drained()

    def enable_chunking(self) -> None:
        """A body needs no length here."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> Any:
        """Raise: nobody here leaves it to the writer."""
        raise TypeError(f"a body is compressed before it is written: {encoding}")
