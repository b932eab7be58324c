"""Questions to kube-apiserver and their answers: kept for some seconds, and each asked by one request at a time.

Nothing is kept of a question that could not be answered: the next request asks again, and fails closed until there is an answer.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/util/webhook/webhook.go
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from apiserver.cluster.client import ClusterError

if TYPE_CHECKING:
    from apiserver.cluster.client import ClusterClient

_Key = TypeVar("_Key", bound=Hashable)
_Answer = TypeVar("_Answer")

_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.5
_PAUSE_FACTOR = 1.5
_JITTER = 0.2
_PASSING = frozenset((429, 500, 504))
"""Codes after which another try may succeed."""
_CREATED, _NO_ANSWER = "201", "<error>"


class ReviewCache(Generic[_Key, _Answer]):
    """Answers by question, at most `capacity` of them: the oldest goes first, which is the one that ends first too."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._kept: dict[_Key, tuple[_Answer, float]] = {}
        self._asking: dict[_Key, asyncio.Future[tuple[_Answer] | ClusterError | None]] = {}

    def peek(self, key: _Key) -> _Answer | None:
        """The answer that is kept, if it still counts."""
        kept = self._kept.get(key)
        return kept[0] if kept is not None and time.monotonic() < kept[1] else None

    async def find(self, key: _Key, ask: Callable[[], Awaitable[tuple[_Answer, float]]]) -> _Answer:
        """The answer that is kept, or the one that somebody waits for already, or a new one.

        `ask` returns an answer, and for how many seconds it counts: 0 for those who wait for it alone. Safe to cancel: if others wait, one
        of them asks instead.

        Raises:
            ClusterError: there is no answer.
        """
        while True:
            answer = self.peek(key)
            if answer is not None:
                return answer
            asking = self._asking.get(key)
            if asking is None:
                return await self._ask(key, ask)
            outcome = await asyncio.shield(asking)
            if isinstance(outcome, ClusterError):
                raise ClusterError(str(outcome), code=outcome.code)
            if outcome is not None:
                return outcome[0]

    async def _ask(self, key: _Key, ask: Callable[[], Awaitable[tuple[_Answer, float]]]) -> _Answer:
        asking = self._asking[key] = asyncio.get_running_loop().create_future()
        outcome: tuple[_Answer] | ClusterError | None = None
        try:
            answer, seconds = await ask()
            outcome = (answer,)
            if seconds > 0:
                self._keep(key, answer, seconds)
        except ClusterError as error:
            outcome = error
            raise
        finally:
            del self._asking[key]
            asking.set_result(outcome)
        return answer

    def _keep(self, key: _Key, answer: _Answer, seconds: float) -> None:
        self._kept.pop(key, None)
        if len(self._kept) >= self._capacity:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (answer, time.monotonic() + seconds)


Record = Callable[[tuple[str, ...], float], None]
"""Takes down what became of an attempt, by some labels (of a review: the code of the answer), and how many seconds it took."""


async def review(client: ClusterClient, path: str, value: dict[str, Any], *, record: Record | None = None) -> dict[str, Any]:
    """Post a review and return its status. What may pass is tried again, five times in all; `record` is told of each attempt.

    Raises:
        ClusterError: there is no answer, or one that is none.
    """
    pause_seconds = _FIRST_PAUSE_SECONDS
    for attempt in range(_ATTEMPTS):
        code, began = _NO_ANSWER, time.perf_counter()
        try:
            answered = await client.post(path, value)
            code = _CREATED
            break
        except ClusterError as error:
            code = str(error.code) if error.code else _NO_ANSWER
            may_pass = error.was_cut or error.code in _PASSING or error.retry_after_seconds is not None
            if not may_pass or attempt == _ATTEMPTS - 1:
                raise
            if error.was_cut and attempt == 0:
                # An idle connection that the server had closed, as a rule: a new one is opened at once.
                continue
        finally:
            if record is not None:
                record((code,), time.perf_counter() - began)
        await asyncio.sleep(pause_seconds * random.uniform(1.0, 1.0 + _JITTER))
        pause_seconds *= _PAUSE_FACTOR
    status = answered.get("status")
    if answered.get("kind") != value["kind"] or not isinstance(status, dict):
        raise ClusterError(f"the answer is no {value['kind']}")
    return status
