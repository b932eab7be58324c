"""The way in alone: the real listener and the real filters around an endpoint of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from apiserver.access import Access, standalone
from apiserver.certificates import Certificates
from apiserver.config import ListenConfig
from apiserver.endpoints.failure import respond_error
from apiserver.filters import bind, enter
from apiserver.filters.access_log import AccessLog
from apiserver.filters.deadline import Deadlines
from apiserver.filters.limits import InFlight, InFlightLimits
from apiserver.filters.stages import Stages
from apiserver.request import Call, Handler
from tests.apiserver.running import Listening, listening


async def answer_path(call: Call) -> web.Response:
    """Say what was understood of the request."""
    return web.json_response({"path": call.info.path, "verb": call.info.verb, "user": call.user.name, "groups": list(call.user.groups)})


@asynccontextmanager
async def shell(
    pki: Certificates,
    endpoint: Handler = answer_path,
    *,
    limits: InFlightLimits | None = None,
    deadlines: Deadlines | None = None,
    access_log: AccessLog | None = None,
    listen: ListenConfig | None = None,
    access: Access | None = None,
    refusing: asyncio.Event | None = None,
) -> AsyncIterator[Listening]:
    """Serve the endpoint behind the chain; without `access` as a server that stands alone."""
    access = access or standalone([pki.authority.certificate])
    stages = Stages(
        authenticators=access.authenticators,
        authorization=access.authorization,
        anonymous=access.anonymous,
        limits=limits or InFlightLimits(),
        in_flight=InFlight(),
        deadlines=deadlines or Deadlines(),
        respond_error=respond_error,
        access_log=access_log,
        refusing=refusing,
    )
    async with listening(pki, enter(bind(stages, endpoint)), config=listen) as running:
        yield running
