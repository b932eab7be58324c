"""Work of many steps shares the passes of the loop: others come between a few steps, however many work."""

from __future__ import annotations

import asyncio
import contextvars
from itertools import chain

import pytest

from apiserver.turns import Turns


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


@pytest.fixture
def clock() -> Clock:
    return Clock()


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


async def test_single_steps_go_before_those_of_long_work(clock: Clock) -> None:
    turns, order = Turns(steps=1, most_steps=1, clock=clock), list[str]()

    async def long() -> None:
        await turns.next()
        order.append("long")

    async def short() -> None:
        await turns.short()
        order.append("short")

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(long())
        await asyncio.sleep(0)
        clock.seconds += 1
        for _ in range(3):
            group.create_task(short())
    assert order.index("short") < 2
    assert sorted(order) == ["long"] * 3 + ["short"] * 3


async def test_a_call_is_made_at_once_while_the_pass_is_short(clock: Clock) -> None:
    turns, called = Turns(clock=clock), list[int]()
    turns.call(called.append, 1)
    assert called == [1]
    clock.seconds += 1
    assert not turns.free
    turns.call(called.append, 2)
    clock.seconds -= 1
    turns.call(called.append, 3)  # behind those that wait
    assert called == [1]
    await asyncio.sleep(0)
    assert called == [1, 2, 3]
    assert turns.free


async def test_calls_wait_for_one_of_the_next_passes_when_they_take_long(clock: Clock) -> None:
    turns, passes = Turns(clock=clock), [list[int]()]

    def call(number: int) -> None:
        clock.seconds += 0.002
        passes[-1].append(number)

    clock.seconds += 1
    turns.free  # noqa: B018 - begins a pass
    clock.seconds += 1
    for number in range(9):
        turns.queue(call, number)
    while sum(map(len, passes)) < 9:
        await asyncio.sleep(0)
        passes.append([])
    assert list(chain(*passes)) == list(range(9))
    assert max(map(len, passes)) == 2


async def test_what_is_urgent_goes_first(clock: Clock) -> None:
    turns, called = Turns(clock=clock), list[str]()
    turns.queue(called.append, "leaves")
    turns.queue(called.append, "asks", urgent=True)
    turns.queue(called.append, "leaves")
    turns.queue(called.append, "asks", urgent=True)
    await asyncio.sleep(0)
    assert called == ["asks", "asks", "leaves", "leaves"]


async def test_a_call_that_fails_is_told_and_those_behind_it_are_made(clock: Clock) -> None:
    turns, called, told = Turns(clock=clock), list[int](), list[str]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(str(context["exception"])))

    def fail() -> None:
        raise RuntimeError("as it happens")

    turns.queue(fail)
    turns.queue(called.append, 1)
    await asyncio.sleep(0)
    assert (called, told) == ([1], ["as it happens"])


async def test_a_call_is_made_in_the_context_of_whoever_wanted_it(clock: Clock) -> None:
    who = contextvars.ContextVar("who", default="nobody")
    turns, seen = Turns(clock=clock), list[str]()

    async def want(name: str) -> None:
        who.set(name)
        turns.queue(lambda: seen.append(who.get()))

    await asyncio.gather(want("one"), want("two"))
    await asyncio.sleep(0)
    assert seen == ["one", "two"]
    assert who.get() == "nobody"
