"""Work of many steps shares the passes of the loop: others come between a few steps, however many work."""

from __future__ import annotations

import asyncio

from apiserver.registry.turns import Turns


async def test_others_come_between_a_few_steps_however_many_work() -> None:
    turns, log = Turns(steps=3), list[str]()

    async def work() -> None:
        for _ in range(5):
            await turns.next()
            log.append("step")

    async def look() -> None:
        while "end" not in log:
            log.append("pass")
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await asyncio.gather(*(work() for _ in range(20)))
    log.append("end")
    await looking
    passes = "".join({"step": "s", "pass": " ", "end": ""}[what] for what in log).split()
    assert sum(map(len, passes)) == 100
    assert max(map(len, passes)) <= 2 * 3  # given out by those who ask, and to those who wait


async def test_turns_come_in_the_order_in_which_they_were_asked_for() -> None:
    turns, order = Turns(steps=2), list[int]()

    async def work(number: int) -> None:
        await turns.next()
        order.append(number)

    await asyncio.gather(*(work(number) for number in range(9)))
    assert order == list(range(9))


async def test_a_turn_of_somebody_who_has_gone_is_taken_by_the_next() -> None:
    turns, done = Turns(steps=1), list[int]()

    async def work(number: int) -> None:
        await turns.next()
        done.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(6)]
    await asyncio.sleep(0)
    for gone in tasks[1:5]:
        gone.cancel()
    await asyncio.wait(tasks)
    assert done == [0, 5]
