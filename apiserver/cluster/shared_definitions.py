"""How the cluster describes the types that all its servers share, read again when the cluster has become another version.

While kube-apiserver is away, what was read before counts, and before that our own words: nobody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.cluster.client import ClusterError
from openapi.adopted import shared_definitions

if TYPE_CHECKING:
    from apiserver.cluster.client import ClusterClient

_log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 600.0
_READ_SECONDS = 60.0
"""The document has several megabytes, and a kube-apiserver that has just started makes it first."""


class SharedDefinitions:
    """Reads them and gives them to `adopt`. The owner awaits `run` as a task."""

    def __init__(self, client: ClusterClient, adopt: Callable[[Mapping[str, Any]], None]) -> None:
        self._client = client
        self._adopt = adopt

    async def run(self) -> None:
        """Look, for ever: at the version every ten minutes, at the document when the version has changed."""
        known, pause_seconds = "", _FIRST_PAUSE_SECONDS
        while True:
            try:
                version = str((await self._client.get("/version")).get("gitVersion"))
                if version != known:
                    self._adopt(await self._read())
                    known = version
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
                pause_seconds = _FIRST_PAUSE_SECONDS
            except ClusterError as error:
                _log.info("cannot read how kube-apiserver describes shared types: %s", ascii(str(error))[1:-1])
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)

    async def _read(self) -> dict[str, Any]:
        body = await self._client.read("/openapi/v2", timeout_seconds=_READ_SECONDS)
        definitions = await asyncio.to_thread(_shared, body)
        if not definitions:
            raise ClusterError("it describes none of them")
        return definitions


def _shared(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return shared_definitions(document) if isinstance(document, dict) else {}
