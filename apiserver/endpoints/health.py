"""`/healthz`, `/livez` and `/readyz`: plain text, as kube-apiserver writes it; needs no identity, so it tells no reasons (the log does).

Being alive never depends on the store: a restart would not bring it back. Every check has a time of its own, checks run side by side, and
everybody who asks meanwhile shares a check that is running: probes cost the store no more than one read at a time.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/server/healthz/healthz.go
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import web

from apiserver.endpoints.negotiation import response_headers
from apiserver.meta import errors

if TYPE_CHECKING:
    from apiserver.request import Call, Handler

_log = logging.getLogger(__name__)


class HealthCheck:
    """A named question that has a bounded time to be answered."""

    def __init__(self, name: str, ask: Callable[[], Awaitable[object]], *, timeout_seconds: float = 2.0) -> None:
        """`ask` returns when all is well and raises, with a reason for the log, when it is not."""
        self.name = name
        self._ask = ask
        self._timeout_seconds = timeout_seconds
        self._running: asyncio.Task[str] | None = None

    async def problem(self) -> str:
        """What is wrong, or nothing. Returns within the time-out."""
        if self._running is None:
            self._running = asyncio.create_task(self._find_problem(), name=f"health check {self.name}")
            self._running.add_done_callback(self._forget)
        return await asyncio.shield(self._running)

    def _forget(self, _: asyncio.Task[str]) -> None:
        self._running = None

    async def _find_problem(self) -> str:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._ask()
        except TimeoutError:
            return f"no answer within {self._timeout_seconds:g} seconds"
        except Exception as error:
            return str(error) or type(error).__name__
        return ""


async def ping() -> None:
    """Answer: the event loop turns."""


class HealthEndpoint:
    """One of the three addresses, with what it checks."""

    def __init__(self, name: str, checks: Sequence[HealthCheck]) -> None:
        self.name = name
        self._checks = tuple(checks)

    def handlers(self) -> dict[str, Handler]:
        """The handlers by path: the whole, and each check alone."""
        return {f"/{self.name}": self.all} | {f"/{self.name}/{check.name}": self._single(check) for check in self._checks}

    async def all(self, call: Call) -> web.Response:
        """Answer 200 when every check passes that is not excluded, else 500 with the names of those that do not."""
        excluded = set(call.info.query.get("exclude", ()))
        asked = [check for check in self._checks if check.name not in excluded]
        problems = dict(zip(asked, await asyncio.gather(*(check.problem() for check in asked)), strict=True))
        lines = [_line(check.name, problems.get(check)) for check in self._checks]
        unknown = sorted(excluded - {check.name for check in self._checks})
        if unknown:
            quoted = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}\n")
        failed = {check.name: problem for check, problem in problems.items() if problem}
        if failed:
            _log.warning("%s: %s", self.name, "; ".join(f"{name} failed: {problem}" for name, problem in failed.items()))
            return _text(call, f"{''.join(lines)}{self.name} check failed\n", code=500)
        if "verbose" in call.info.query:
            return _text(call, f"{''.join(lines)}{self.name} check passed\n")
        return _text(call, "ok")

    def _single(self, check: HealthCheck) -> Handler:
        async def answer(call: Call) -> web.Response:
            problem = await check.problem()
            if problem:
                _log.warning("%s: %s failed: %s", self.name, check.name, problem)
                return _text(call, f"internal server error: {check.name} failed: reason withheld\n", code=500)
            return _text(call, "ok")

        return answer


def _line(name: str, problem: str | None) -> str:
    if problem is None:
        return f"[+]{name} excluded: ok\n"
    return f"[-]{name} failed: reason withheld\n" if problem else f"[+]{name} ok\n"


def _text(call: Call, text: str, *, code: int = 200) -> web.Response:
    if call.info.method not in ("GET", "HEAD", "POST"):
        raise errors.method_not_allowed()
    headers = response_headers(call, "text/plain; charset=utf-8")
    headers["X-Content-Type-Options"] = "nosniff"
    return web.Response(status=code, body=text.encode(), headers=headers)
