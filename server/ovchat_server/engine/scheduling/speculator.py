"""Decides how many tokens are proposed for a step: as many as make it worth its time."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

from ovchat_server.engine.scheduling.step_cost import StepCost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# By how much a step with proposals must promise to make sequences faster.
MARGIN = 1.1
# For how many proposals a sequence is taken to read what it reads once.
PROPOSALS = 4


class Candidate(Protocol):
    """A sequence for which tokens may be proposed."""

    @property
    def unread(self) -> int:
        """How many tokens the next step reads of it if none is proposed."""
        ...

    @property
    def known(self) -> int:
        """How many tokens it reads besides those proposed, if any is."""
        ...

    @property
    def once(self) -> int:
        """How many of those known it reads for later proposals, too, and not again."""
        ...

    @property
    def preparation(self) -> float:
        """How many seconds it takes, before the step and only once, to have tokens proposed."""
        ...

    def chances(self) -> Sequence[float]:
        """Return how likely each token that may be proposed is to come, with all before it."""
        ...


CandidateT = TypeVar("CandidateT", bound=Candidate)


class Speculator:
    """Weighs the tokens that a step may give against the time that it takes.

    A token that is proposed is one more that the step reads. What that costs depends on the machine
    and on how many sequences run, so it is measured.

    The step takes longer for all sequences, but gives more tokens to those alone for which they are
    proposed. So the mean over all of them decides by how many times a sequence becomes faster, the
    geometric one. By the sum of their tokens, a few that quote would slow down many that do not.
    """

    def __init__(self) -> None:
        """Begin with nothing measured."""
        # For 1 sequence, 2 to 3, 4 to 7 and so on: what is not worth it is tried once for them all.
        self._costs: dict[int, StepCost] = {}

    def begin(self, plain: float, measured: Sequence[tuple[int, float]]) -> None:
        """Begin with what steps of one sequence take.

        Args:
            plain: The seconds of a step without proposals.
            measured: Numbers of further tokens, and the seconds of such steps.
        """
        times = [(further, seconds / plain) for further, seconds in measured]
        self._costs[1] = StepCost(1, times)
        self.note(1, 0, plain)

    def propose(
        self,
        running: int,
        candidates: Sequence[CandidateT],
        room: int,
        finding: Callable[[int, int], float],
    ) -> list[tuple[CandidateT, int]]:
        """Return for whom to propose tokens, and how many.

        Args:
            running: How many sequences the step runs.
            candidates: Those among them for which it may be done.
            room: How many tokens the step may read of these, with those that it reads anyway.
            finding: How many seconds it takes to find up to so many tokens for each of so many
                sequences.
        """
        cost = self._costs.get(running.bit_length())
        if not cost:
            return []
        step = _Step(running, candidates, cost, finding)
        best, counts = step.gain + running * math.log(MARGIN), Counter[int]()
        for chance, number, reads in _likeliest(candidates):
            if step.read + reads > room:
                break
            step.propose(chance, number, reads)
            if (gain := step.gain) > best:
                best, counts = gain, step.counts.copy()
        return [(candidates[number], count) for number, count in counts.items()]

    def note(self, running: int, further: int, seconds: float) -> None:
        """Learn from a step that read `further` tokens besides one of each running sequence."""
        cost = self._costs.setdefault(running.bit_length(), StepCost(running))
        cost.note(running, further, seconds)


class _Step:
    """What a step gives and takes, while more and more is proposed for it.

    Attributes:
        counts: How many tokens are proposed for whom, by the number of the candidate.
        read: How many tokens it reads of all candidates.
    """

    def __init__(
        self,
        running: int,
        candidates: Sequence[Candidate],
        cost: StepCost,
        finding: Callable[[int, int], float],
    ) -> None:
        """Begin with a step for which nothing is proposed; see Speculator.propose."""
        self._running = running
        self._candidates = candidates
        self._cost = cost
        self._finding = finding
        self.counts = Counter[int]()
        self.read = sum(item.unread for item in candidates)
        # What is read once and what is done once, as far as that counts for later proposals.
        self._spared = self._prepared = 0.0
        # Of each candidate: how many tokens come, and how likely all that are proposed do.
        self._tokens = [1.0] * len(candidates)
        self._whole = [1.0] * len(candidates)
        # The sum of the logarithms of the first.
        self._given = 0.0
        self._most = 0
        # What the next step takes longer that reads again what came in place of wrong tokens.
        self._again = cost.of(1) - 1

    def propose(self, chance: float, number: int, reads: int) -> None:
        """Propose another token for a candidate; see _likeliest."""
        if not self.counts[number]:
            candidate = self._candidates[number]
            self._spared += candidate.once * (1 - 1 / PROPOSALS)
            self._prepared += candidate.preparation / PROPOSALS
        self.counts[number] += 1
        self.read += reads
        self._given += math.log(1 + chance / self._tokens[number])
        self._tokens[number] += chance
        self._whole[number] = chance
        self._most = max(self._most, self.counts[number])

    @property
    def gain(self) -> float:
        """How many times faster each sequence becomes: the logarithm of the product of all."""
        return self._given - self._running * math.log(self._times)

    @property
    def _times(self) -> float:
        """How many times as long as a plain one it takes, with what comes before and behind it."""
        times = self._cost.of(self.read - self._spared - len(self._candidates))
        if self.counts:
            seconds = self._finding(len(self.counts), self._most) + self._prepared
            times += self._cost.times(self._running, seconds)
        return times + (1 - math.prod(self._whole)) * self._again


def _likeliest(candidates: Sequence[Candidate]) -> Iterator[tuple[float, int, int]]:
    """Yield tokens that may be proposed, the likeliest first.

    Returns:
        How likely each one is to come, the number of its candidate, and how many tokens are read
        for it.
    """
    tokens = [
        (-chance, number, place)
        for number, item in enumerate(candidates)
        for place, chance in enumerate(item.chances())
    ]
    for chance, number, place in sorted(tokens):
        again = 0 if place else candidates[number].known - candidates[number].unread
        yield -chance, number, 1 + again
