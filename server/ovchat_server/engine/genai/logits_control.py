"""Changes and records the logits of those sequences that ask for it, and of no others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.genai.cache_salt import unsalted
from ovchat_server.engine.genai.logits_processors import LogitRules
from ovchat_server.engine.genai.row_owners import row_owners
from ovchat_server.engine.scheduling.steps import Output
from ovchat_server.engine.scheduling.top_tokens import likeliest, log_total

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.genai.logits_hook import Floats, Integers
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores

# A plugin may add in 16 bits, so how far from the best a token may be that is the best.
ROUNDING = 2**-6


def has_rules(request: GenerationRequest) -> bool:
    """Return whether the logits of a request are changed by rules of ours.

    genai's own would take a salted token (cache_salt) for a place in a row of logits.
    """
    repeats = request.sampling.repetition_penalty != 1
    return request.sampling.changes_logits or (request.prompt_logprobs is not None and repeats)


def needs_logits(request: GenerationRequest) -> bool:
    """Return whether a request needs its logits: to change them, or to report them."""
    return has_rules(request) or request.top_logprobs > 0


class Control:
    """The logits of one sequence: what it asks for, and what was seen of the last step."""

    def __init__(self, request: GenerationRequest, answered: int, size: int) -> None:
        """Begin where the request does.

        Args:
            request: What is asked for, with what is known as its prompt.
            answered: Tokens at the end of the prompt that are of its answer.
            size: How many logits there are.

        Raises:
            IndexError: A token is none of the vocabulary.
        """
        prompt = unsalted(request.prompt)
        start = len(prompt) - answered
        sampling = request.sampling
        self._top = request.top_logprobs
        self._tells = request.logprobs or request.top_logprobs > 0
        self._rules = (
            LogitRules(sampling, prompt[:start], prompt[start:], size)
            if has_rules(request)
            else None
        )
        # Whether nothing else forbids tokens: it could leave only what is banned.
        self._alone = not (request.grammar or request.min_tokens)
        # Whether the best logit is chosen, with nothing between it and the sampler.
        self._certain = (
            self._alone
            and not sampling.temperature
            and (self._rules is not None or sampling.repetition_penalty == 1)
        )
        self._row: Floats | None = None
        # Tokens that may be the best after what was added.
        self._best: Integers | None = None
        self._total = 0.0
        self._problem = ""

    def fail(self, problem: str) -> None:
        """It cannot be told which logits are its own."""
        self._problem = problem

    def look(self, row: Floats, kept: Floats, added: Callable[[], Floats]) -> None:
        """See its row of logits; `kept` is room for it until the step is over."""
        np.copyto(kept, row)
        self._row = kept
        if self._tells:
            self._total = log_total(row)
        if self._rules:
            values = added()
            self._rules.write(row, values)
            self._best = _best(row + values) if self._certain else None

    def told(self, output: Output) -> Output:
        """What came of the step, as it was asked for; MISATTRIBUTED where that is not its own."""
        row, self._row = self._row, None
        problem = self._problem or self._doubt(output.tokens, row)
        if problem:
            return Output([], [], MISATTRIBUTED, reason=problem)
        if row is None:
            return output
        [token] = output.tokens
        if self._rules:
            self._rules.note(token)
        if not self._tells:
            return output
        logprob = float(row[token]) - self._total
        top = likeliest(row, self._top).tolist() if self._top else []
        alternatives = [[(other, float(row[other]) - self._total) for other in top]] if top else []
        return Output([token], [logprob], output.finish, alternatives)

    def _doubt(self, tokens: Sequence[int], row: Floats | None) -> str:
        """Why what came cannot have been chosen from its row; "" where it can."""
        if row is None:
            return "a token came without logits" if tokens else ""
        if len(tokens) != 1:
            return f"{len(tokens)} tokens came of one row"
        if self._rules and self._alone and self._rules.bans(tokens[0]):
            return f"token {tokens[0]} came, which is banned"
        if self._certain:
            best = _best(row) if self._best is None else self._best
            if tokens[0] not in best:
                return f"token {tokens[0]} came, which is not the likeliest"
        return ""


def _best(logits: Floats) -> Integers:
    """The likeliest token, with those that rounding may put in its place."""
    highest = float(logits.max())
    return np.flatnonzero(logits >= highest - ROUNDING * max(abs(highest), 1.0))


class Resident:
    """What runs inside the pipeline; see row_owners.Resident."""

    def __init__(
        self,
        prompt: Sequence[int],
        control: Control | None = None,
        scores: PromptScores | None = None,
    ) -> None:
        """A sequence that is added now."""
        self.prompt = unsalted(prompt)
        self.control = control
        self.scores = scores
        self.length = len(prompt)
        self.last: int | None = None
        self.beams = 1

    @property
    def echoes(self) -> bool:
        """See row_owners.Resident: until its prompt is told of."""
        return self.scores is not None

    def grow(self, tokens: Sequence[int]) -> None:
        """It has so many tokens more."""
        if tokens:
            self.length += len(tokens)
            self.last = tokens[-1]

    def told(self, output: Output) -> Output:
        """What came of a step, with what was asked for; MISATTRIBUTED where that is not its own."""
        # Its prompt was read when the first token came.
        scores, self.scores = self.scores, None
        if scores and (problem := scores.problem(len(self.prompt))):
            return Output([], [], MISATTRIBUTED, reason=problem)
        return self.control.told(output) if self.control else output


class ResidentSearch(Resident):
    """A beam search inside the pipeline: it tells nothing of its tokens before it ends."""

    def __init__(self, prompt: Sequence[int], width: int) -> None:
        """A search of so many beams that is added now."""
        super().__init__(prompt)
        self._width = width

    def run(self) -> None:
        """A step gave it rows: each of its beams has a token more."""
        self.length += 1
        self.beams = self._width


class LogitsControl:
    """Knows what runs inside the pipeline, and so whose the rows of logits are."""

    def __init__(self) -> None:
        """Nothing runs."""
        # Whether there were logits since this was set to False.
        self.seen = False
        # In the order in which they were added.
        self._residents: list[Resident] = []
        self._kept = np.empty((0, 0), np.float32)

    def enter(self, resident: Resident) -> None:
        """It was added to the pipeline."""
        self._residents.append(resident)

    def leave(self, resident: Resident) -> None:
        """It runs no more. May be called again."""
        if resident in self._residents:
            self._residents.remove(resident)

    def assume(self) -> None:
        """Nothing can be seen of a step: each search is taken to have run."""
        for item in self._residents:
            if isinstance(item, ResidentSearch):
                item.run()

    def look(
        self, logits: Floats, tokens: Integers, positions: Integers, added: Callable[[], Floats]
    ) -> None:
        """See logits_tap.Look."""
        self.seen = True
        asking: list[Control | PromptScores] = [
            *(item.control for item in self._residents if item.control),
            *(item.scores for item in self._residents if item.scores),
        ]
        # How far a search is, only its rows tell: it may have to wait for its first step.
        if not asking and not any(isinstance(item, ResidentSearch) for item in self._residents):
            return
        try:
            self._look(logits, tokens, positions, added)
        except Exception as error:  # noqa: BLE001  all that runs would be lost with it
            for item in asking:
                item.fail(f"{type(error).__name__}: {error}")

    def _look(
        self, logits: Floats, tokens: Integers, positions: Integers, added: Callable[[], Floats]
    ) -> None:
        owners = row_owners(tokens, positions, self._residents, len(logits))
        for search in {owner for owner, _ in owners if isinstance(owner, ResidentSearch)}:
            search.run()
        chosen = [
            (number, row.owner)
            for number, row in enumerate(owners)
            # Behind all other tokens of a prompt nothing is chosen.
            if row.position == row.owner.length - 1
        ]
        if len(self._kept) < len(chosen):
            # Once for all steps: new memory costs more than what is done with it.
            self._kept = np.empty((len(chosen), logits.shape[-1]), np.float32)
        changes = _Changes(added)
        for kept, (number, owner) in zip(self._kept, chosen, strict=False):
            if owner.control:
                owner.control.look(logits[number], kept, partial(changes.row, number))
        for (owner, position), row in zip(owners, logits, strict=True):
            if owner.scores:
                owner.scores.look(position, row)


class _Changes:
    """What is added to the logits: made when the first row asks for its own."""

    def __init__(self, make: Callable[[], Floats]) -> None:
        self._make = make
        self._rows: Floats | None = None

    def row(self, number: int) -> Floats:
        if self._rows is None:
            self._rows = self._make()
        row: Floats = self._rows[number]
        return row
