"""Work of many steps shares the passes of the loop: others come between a few steps, however many work."""

from __future__ import annotations

import asyncio

from apiserver.registry.turns import Turns


async def test_others_come_between_a_few_steps_however_many_work() -> None:
    turns, log = Turns(steps=3, most_steps=3), list[str]()

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
    turns, order = Turns(steps=2, most_steps=2), list[int]()

    async def work(number: int) -> None:
        await turns.next()
        order.append(number)

    await asyncio.gather(*(work(number) for number in range(9)))
    assert order == list(range(9))


async def test_a_turn_of_somebody_who_has_gone_is_taken_by_the_next() -> None:
    turns, done = Turns(steps=1, most_steps=1), list[int]()

    async def work(number: int) -> None:
        await turns.next()
        done.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(6)]
    await asyncio.sleep(0)
    for gone in tasks[1:5]:
        gone.cancel()
    await asyncio.wait(tasks)
    assert done == [0, 5]


class Clock:
    """The time that the loop has been busy for."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def steps_in_a_pass(step_seconds: float) -> int:
    """How many steps are done at last in one pass of the loop, when each of them takes so long."""
    clock, counts = Clock(), [0]
    turns = Turns(clock=clock)

    async def work() -> None:
        for _ in range(50):
            await turns.next()
            clock.seconds += step_seconds
            counts[-1] += 1

    async def look() -> None:
        while True:
            await asyncio.sleep(0)
            counts.append(0)

    looking = asyncio.create_task(look())
    await asyncio.gather(*(work() for _ in range(40)))
    looking.cancel()
    return max(counts[len(counts) // 2 :])


async def test_more_steps_share_a_pass_when_they_are_short() -> None:
    assert await steps_in_a_pass(0.0001) > 8
    assert 2 <= await steps_in_a_pass(0.01) <= 4  # given out by those who ask, and to those who wait


async def test_a_single_step_waits_only_when_the_pass_has_become_long() -> None:
    clock, log = Clock(), list[str]()
    turns = Turns(clock=clock)

    async def work(number: int) -> None:
        await turns.short()
        clock.seconds += 0.004
        log.append(str(number))

    async def look() -> None:
        while len(log) < 12:
            log.append(" ")
            await asyncio.sleep(0)

    await asyncio.gather(look(), *(work(number) for number in range(8)))
    assert "".join(log).split()[0] == "012"
    assert sorted("".join(log).replace(" ", "")) == list("01234567")
