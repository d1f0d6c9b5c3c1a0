"""What is still to be measured, how long it will take, and what fits into the time there is."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from typing import TextIO

    from benchmarks.plan import Plan

# Seconds on the machine of docs/performance.md, with the 0.6B: a step, each further sequence in
# it, and a token of a prompt; and an image of the vision model. Only how they compare matters:
# measured rounds say how fast it is.
STEP = 0.028
SEQUENCE = 0.0025
PROMPT_TOKEN = 0.0014
IMAGE = 2.5
CHARACTERS_PER_TOKEN = 6


def guess(plan: Plan) -> float:
    """Guess how many seconds a plan takes one contender, before anything was measured."""
    seconds = 0.0
    for phase in plan.phases:
        steps = [sum(ask.max_tokens for ask in lane.asks) for lane in phase]
        asks = [ask for lane in phase for ask in lane.asks]
        sequences = sum(max(ask.choices for ask in lane.asks) for lane in phase)
        characters = sum(len(text) for ask in asks for _, text in ask.messages)
        seconds += max(steps) * (STEP + SEQUENCE * sequences)
        seconds += characters / CHARACTERS_PER_TOKEN * PROMPT_TOKEN
        seconds += sum(IMAGE for ask in asks if ask.image)
    return seconds


@dataclass(frozen=True, slots=True)
class Step:
    """One round of one workload or scenario.

    Attributes:
        name: The workload's or scenario's.
        round: From 0.
    """

    name: str
    round: int


class Schedule:
    """Everything in the first round, then everything in the second, as long as there is time."""

    def __init__(
        self,
        guesses: Mapping[str, float],
        rounds: int,
        deadline: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Plan all rounds.

        Args:
            guesses: Seconds that a round of each workload or scenario may take, in the order in
                which they are measured.
            rounds: How often each is measured.
            deadline: When all should be done, by the clock; None where it takes what it takes.
            clock: Tells the time in seconds.
        """
        self.rounds = rounds
        self._guesses = guesses
        self._deadline = deadline
        self._clock = clock
        self._taken: dict[str, list[float]] = {name: [] for name in guesses}
        self._ahead: list[str] = []
        self._current: tuple[str, float] | None = None

    def steps(self) -> Iterator[Step]:
        """Yield what to measure next; it is over, and its time is taken, when the next is drawn.

        The first is measured in any case, what does not fit before the deadline is not.
        """
        self._ahead = [name for _ in range(self.rounds) for name in self._guesses]
        for number in range(self.rounds):
            for name in self._guesses:
                self._ahead.pop(0)
                if not self._fits(name):
                    continue
                start = self._clock()
                self._current = name, start
                yield Step(name, number)
                self._current = None
                self._taken[name].append(self._clock() - start)

    def remaining(self) -> float:
        """Return the seconds that are left, as far as the rounds until now tell."""
        now = self._clock()
        seconds = sum(map(self._expected, self._ahead))
        if self._current is not None:
            name, start = self._current
            seconds += max(self._expected(name) - (now - start), 0)
        if self._deadline is not None:
            seconds = min(seconds, max(self._deadline - now, 0))
        return seconds

    def left_out(self) -> dict[str, int]:
        """Return how many rounds were left out, by workload or scenario."""
        counts = {name: self.rounds - len(taken) for name, taken in self._taken.items()}
        return {name: count for name, count in counts.items() if count}

    def _fits(self, name: str) -> bool:
        if self._deadline is None or not any(self._taken.values()):
            return True
        return self._clock() + self._expected(name) <= self._deadline

    def _expected(self, name: str) -> float:
        """Return the seconds of a round: as its earlier ones, or else guessed at their pace."""
        if taken := self._taken[name]:
            return statistics.mean(taken)
        guessed = sum(self._guesses[name] * len(taken) for name, taken in self._taken.items())
        measured = sum(map(sum, self._taken.values()))
        return self._guesses[name] * (measured / guessed if guessed else 1)


class Progress:
    """Says what is going on, each line with the time since it began."""

    def __init__(self, output: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now."""
        self._output = output
        self._clock = clock
        self._start = clock()

    def say(self, text: str) -> None:
        """Write a line."""
        elapsed = int(self._clock() - self._start)
        print(f"[{elapsed // 60:3}:{elapsed % 60:02}] {text}", file=self._output, flush=True)

    @contextlib.asynccontextmanager
    async def repeated(
        self, describe: Callable[[], str], interval: float = 10
    ) -> AsyncIterator[None]:
        """Say what `describe` returns every `interval` seconds until the context is left."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval)
                self.say(describe())

        task = asyncio.create_task(repeat())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


def duration(seconds: float) -> str:
    """Return a duration as a person says it: seconds up to two minutes, then minutes."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
