"""What is done with the logits of one sequence: they are changed, recorded and checked."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.genai.logits_processors import Length, LogitsProcessor
from ovchat_server.engine.genai.reasoning_limit import ReasoningLimit
from ovchat_server.engine.scheduling.steps import Output
from ovchat_server.engine.scheduling.top_tokens import log_total, top_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.genai.grammar_followers import GrammarFollower
    from ovchat_server.engine.genai.logits_hook import Floats, Integers

# How far below the highest logit the chosen token may be: a plugin may add in 16 bits.
ROUNDING = 2**-6


def needs_processor(request: GenerationRequest, *, as_tokens: bool = True) -> bool:
    """Return whether a request needs a LogitsProcessor.

    genai's own repetition penalty would take a salted token (prompt_input) for an index of logits:
    of a prompt that has a salt or is scored, or with speculation. Of a prompt that it does not get
    `as_tokens` it knows none.
    """
    sampling = request.sampling
    salted = (
        request.prompt.cache_salt > 0 or request.prompt_logprobs is not None or request.speculates
    )
    return (
        sampling.changes_logits
        or (sampling.repetition_penalty != 1 and (salted or not as_tokens))
        or keeps_open(request)
    )


def keeps_open(request: GenerationRequest) -> bool:
    """Return whether a LogitsProcessor is to keep an answer from ending too early.

    Behind proposed tokens it is not genai that chooses.
    """
    return request.min_tokens > 0 and request.speculates


def needs_logits(request: GenerationRequest, *, as_tokens: bool = True) -> bool:
    """Return whether a request needs its logits: to change them, or to report them."""
    return needs_processor(request, as_tokens=as_tokens) or request.top_logprobs > 0


class Vocabulary(NamedTuple):
    """A model's tokens.

    Attributes:
        size: How many there are: the number of logits in a row.
        text: Returns the text of tokens.
    """

    size: int
    text: Callable[[Sequence[int]], str]


class SequenceLogits:
    """Changes the logits of one sequence as its request asks, and reports what it asks for."""

    def __init__(
        self,
        request: GenerationRequest,
        answered: int,
        vocabulary: Vocabulary,
        *,
        stops: Collection[int] = (),
        as_tokens: bool = True,
    ) -> None:
        """Begin at the end of the prompt.

        Args:
            request: Its prompt holds the tokens of the answer that are known.
            answered: Number of tokens at the end of the prompt that belong to the answer.
            vocabulary: That of the model.
            stops: The tokens that end the answer.
            as_tokens: See needs_processor.

        Raises:
            IndexError: A token is not in the vocabulary.
        """
        prompt = request.prompt.tokens
        start = len(prompt) - answered
        sampling = request.sampling
        limit = ReasoningLimit(sampling.reasoning, vocabulary.text) if sampling.reasoning else None
        least = answered + request.min_tokens if keeps_open(request) else 0
        length = Length(limit, stops, least)
        self._top = request.top_logprobs
        self._reports = request.logprobs or request.top_logprobs > 0
        self._processor = (
            LogitsProcessor(sampling, prompt[:start], prompt[start:], vocabulary.size, length)
            if needs_processor(request, as_tokens=as_tokens)
            else None
        )
        # Whether nothing but ours forbids tokens: a grammar could leave only banned ones.
        self._alone = not (request.grammar or request.min_tokens)
        # Whether it must choose the likeliest.
        self._certain = (
            self._alone
            and not sampling.temperature
            and (self._processor is not None or sampling.repetition_penalty == 1)
        )
        self._follower: GrammarFollower | None = None
        self._row: Floats | None = None
        # The likeliest tokens after the offsets were added.
        self._best: Integers | None = None
        self._total = 0.0
        self._problem = ""

    @property
    def processor(self) -> LogitsProcessor | None:
        """What changes the logits of its next token, if anything does."""
        return self._processor

    def behind(self, tokens: Sequence[int]) -> SequenceLogits:
        """Return another one, behind further tokens of the answer."""
        other = copy.copy(self)
        if self._processor:
            vars(other).update(_processor=self._processor.behind(tokens))
        return other

    def chosen_by(self, follower: GrammarFollower) -> SequenceLogits:
        """Return another one, of whose logits that one chooses."""
        other = copy.copy(self)
        vars(other).update(_follower=follower, _certain=True)
        return other

    def fail(self, problem: str) -> None:
        """Note why it is unknown which logits are its own; the next `report` says so."""
        self._problem = problem

    def observe(self, row: Floats, kept: Floats, offsets: Callable[[], Floats]) -> None:
        """Record its row of logits, and change them.

        Args:
            row: Valid during the call.
            kept: Where the row is copied to; valid until the step is over.
            offsets: Returns the row of numbers to be added to the logits, all 0.
        """
        np.copyto(kept, row)
        self._row = kept
        if self._reports:
            self._total = log_total(row)
        if not (self._processor or self._follower):
            return
        values = offsets()
        if self._processor:
            self._processor.write_offsets(row, values)
        if self._follower:
            token = self._follower.choose(row + values)
            values.fill(-np.inf)
            values[token] = 0
            self._best = np.array([token])
        else:
            self._best = _best(row + values) if self._certain else None

    def report(self, output: Output) -> Output:
        """Return a step's output with what the request asks for.

        Its finish is MISATTRIBUTED if the token cannot be its own.
        """
        row, self._row = self._row, None
        problem = self._problem or self._mismatch(output.tokens, row)
        if problem:
            return Output([], [], MISATTRIBUTED, reason=problem)
        if row is None:
            return output
        [token] = output.tokens
        if self._processor:
            self._processor.append(token)
        if not self._reports:
            return output
        logprob = float(row[token]) - self._total
        alternatives = [top_tokens(row, self._total, self._top)] if self._top else []
        return Output([token], [logprob], output.finish, alternatives)

    def _mismatch(self, tokens: Sequence[int], row: Floats | None) -> str:
        """Return why the tokens cannot have been chosen from the row; "" if they can."""
        if row is None:
            return "a token came without logits" if tokens else ""
        if len(tokens) != 1:
            return f"{len(tokens)} tokens came of one row"
        if self._processor and self._alone and self._processor.bans(tokens[0]):
            return f"token {tokens[0]} came, which is banned"
        if self._certain:
            best = _best(row) if self._best is None else self._best
            if tokens[0] not in best:
                return f"token {tokens[0]} came, which is not the likeliest"
        return ""


def _best(logits: Floats) -> Integers:
    """Return the likeliest token, and those that rounding may put in its place."""
    highest = float(logits.max())
    return np.flatnonzero(logits >= highest - ROUNDING * max(abs(highest), 1.0))
