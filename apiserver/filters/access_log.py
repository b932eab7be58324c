"""A line per request, when asked for. Off by default: writing it costs more than answering.

Neither bodies nor headers are logged, except the User-Agent; text of the client is escaped, so that it cannot forge a line.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import orjson

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_CHARACTERS = 4096
"""How much is logged of what a client may make as long as it likes."""


@dataclass(frozen=True, slots=True)
class AccessLog:
    """Where and how requests are logged."""

    logger: logging.Logger
    format: Literal["json", "plain"] = "json"


def make(stages: Stages) -> Filter | None:
    """Return the filter that logs each request when its response is ready (a watch: when it ends), or None when it is off."""
    settings = stages.access_log
    if settings is None:
        return None
    write = settings.logger.info
    line = _json if settings.format == "json" else _plain

    async def log_access(call: Call, handler: Handler) -> web.StreamResponse:
        started = time.monotonic()
        response = await handler(call)
        write("%s", line(call, response, time.monotonic() - started))
        return response

    return log_access


def _facts(call: Call, response: web.StreamResponse, seconds: float) -> dict[str, str | int | float]:
    return {
        "method": call.info.method,
        "uri": _cut(call.http.raw_path if call.http.raw_path.isascii() else ascii(call.http.raw_path)),
        "verb": call.info.verb,
        "code": response.status,
        "seconds": round(seconds, 6),
        "user": _cut(call.user.name),
        "client": call.peer.address,
        "userAgent": _cut(call.http.headers.get("User-Agent", "")),
        "auditId": call.audit_id,
    }


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}...TRUNCATED"


def _json(call: Call, response: web.StreamResponse, seconds: float) -> str:
    facts = {"time": time.time(), **_facts(call, response, seconds)}
    return orjson.dumps({key: _encodable(value) for key, value in facts.items()}).decode()


def _plain(call: Call, response: web.StreamResponse, seconds: float) -> str:
    facts = _facts(call, response, seconds)
    return " ".join(f"{key}={ascii(value) if isinstance(value, str) else value}" for key, value in facts.items())


def _encodable(value: str | float) -> str | float:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
