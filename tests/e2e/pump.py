"""One direction of a relayed connection, for those who stand between two ends."""

from __future__ import annotations

import asyncio

_PIECE_BYTES = 256 * 1024


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes until it ends, and the end; break off when either side does."""
    try:
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        writer.close()
    except OSError:
        writer.transport.abort()
