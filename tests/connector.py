"""aiohttp's connector, with an end that is one."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler


class Connector(aiohttp.TCPConnector):
    """Is closed when all of its connections are, also those that were let go before, as by leaving a watch.

    aiohttp only begins to close them, and a test's loop that ends before that is done leaves their sockets open.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._made: list[ResponseHandler] = []

    async def _create_connection(self, *args: Any, **options: Any) -> ResponseHandler:
        made = await super()._create_connection(*args, **options)
        still_open = [other for other in self._made if (closed := other.closed) is not None and not closed.done()]
        self._made = [*still_open, made]
        return made

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close all connections, and return when none is open any more."""
        closing = [closed for made in self._made if (closed := made.closed) is not None]
        await super().close(abort_ssl=abort_ssl)
        if closing:
            await asyncio.wait(closing)
