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
        read = sum(item.unread for item in candidates)
        tokens, chosen = [1.0] * len(candidates), Counter[int]()
        # What follows are logarithms, of products over all sequences: of their tokens by the times
        # that the step takes.
        gain, most, spared, prepared = 0.0, 0, 0.0, 0.0
        # How likely all of them come, and what the next step takes longer if not.
        whole, again = [1.0] * len(candidates), cost.of(1) - 1
        best = running * math.log(MARGIN / cost.of(read - len(candidates)))
        best_chosen = Counter[int]()
        for chance, number, reads in _likeliest(candidates):
            read += reads
            if read > room:
                break
            if not chosen[number]:
                spared += candidates[number].once * (1 - 1 / PROPOSALS)
                prepared += candidates[number].preparation / PROPOSALS
            chosen[number] += 1
            most = max(most, chosen[number])
            gain += math.log(1 + chance / tokens[number])
            tokens[number] += chance
            whole[number] = chance
            before = cost.times(running, finding(len(chosen), most) + prepared)
            longer = before + cost.of(read - spared - len(candidates))
            longer += (1 - math.prod(whole)) * again
            pace = gain - running * math.log(longer)
            if pace > best:
                best, best_chosen = pace, chosen.copy()
        return [(candidates[number], count) for number, count in best_chosen.items()]

    def note(self, running: int, further: int, seconds: float) -> None:
        """Learn from a step that read `further` tokens besides one of each running sequence."""
        cost = self._costs.setdefault(running.bit_length(), StepCost(running))
        cost.note(running, further, seconds)


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
