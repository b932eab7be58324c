"""Waiting for a future of one's own, with an end. In the paths where every microsecond counts: `asyncio.timeout` takes three of them."""

from __future__ import annotations

import asyncio
from typing import TypeVar

_Result = TypeVar("_Result")


async def wait_until(waiter: asyncio.Future[_Result], deadline: float | None) -> _Result:
    """Return what the future brings; cancelling the call cancels it, so nobody else may wait for it.

    Raises:
        TimeoutError: it has brought nothing by `deadline`, in the time of the loop; it is done then.
    """
    if deadline is None:
        return await waiter
    timer = waiter.get_loop().call_at(deadline, _time_out, waiter)
    try:
        return await waiter
    finally:
        timer.cancel()


def _time_out(waiter: asyncio.Future[_Result]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
