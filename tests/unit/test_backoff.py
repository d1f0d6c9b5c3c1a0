"""Delays between restarts."""

from __future__ import annotations

from ovchat_server.backoff import FIRST_DELAY, LONGEST_DELAY, Backoff


async def test_each_delay_is_twice_the_last_up_to_the_longest() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    backoff = Backoff(sleep)
    for _ in range(9):
        await backoff.wait()
    assert slept[:3] == [FIRST_DELAY, FIRST_DELAY * 2, FIRST_DELAY * 4]
    assert slept[-2:] == [LONGEST_DELAY] * 2

    backoff.reset()
    await backoff.wait()
    assert slept[-1] == FIRST_DELAY
