"""What is done with the logits of one sequence: they are changed, recorded and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.genai.logits_processors import Length, LogitsProcessor
from ovchat_server.engine.genai.reasoning_limit import ReasoningLimit
from ovchat_server.engine.scheduling.steps import Alternatives, Output
from ovchat_server.engine.scheduling.top_tokens import likeliest, log_total

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.genai.logits_hook import Floats, Integers

# How far below the highest logit the chosen token may be: a plugin may add in 16 bits.
ROUNDING = 2**-6


def needs_processor(request: GenerationRequest, *, as_tokens: bool = True) -> bool:
    """Return whether a request needs a LogitsProcessor.

    genai's own repetition penalty would take a salted token (prompt_input) for an index of logits:
    of a prompt that is scored, or with proposals. Of a prompt that it does not get `as_tokens` it
    knows none.
    """
    sampling = request.sampling
    salted = request.prompt_logprobs is not None or request.speculation.proposes
    return (
        sampling.changes_logits
        or (sampling.repetition_penalty != 1 and (salted or not as_tokens))
        or keeps_open(request)
    )


def keeps_open(request: GenerationRequest) -> bool:
    """Return whether a LogitsProcessor is to keep an answer from ending too early.

    genai forgets how long it must be once a proposed token is rejected (2026.4.1, sampler.cpp,
    update_generated_len).
    """
    return request.min_tokens > 0 and request.speculation.proposes


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


class _Row(NamedTuple):
    """What one row of a step may be followed by.

    Attributes:
        proposed: The token that the row follows, if it is proposed.
        row: The logits before they were changed.
        processor: Knows the tokens up to that one.
        best: The likeliest tokens after the offsets were added, if one of them must come.
        total: The log-sum-exp of the row, if log probabilities are reported.
    """

    proposed: int | None
    row: Floats
    processor: LogitsProcessor | None
    best: Integers | None
    total: float


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
        # Its rows in the step: the first follows its last token, the others those proposed.
        self._rows: list[_Row] = []
        self._problem = ""

    def fail(self, problem: str) -> None:
        """Note why it is unknown which logits are its own; the next `report` says so."""
        self._problem = problem

    def observe(
        self,
        row: Floats,
        kept: Floats,
        offsets: Callable[[], Floats],
        proposed: int | None = None,
    ) -> None:
        """Record a row of its logits, and change them. The rows of a step come in order.

        Args:
            row: Valid during the call.
            kept: Where the row is copied to; valid until the step is over.
            offsets: Returns the row of numbers to be added to the logits, all 0.
            proposed: The token that the row follows; None for its last one.
        """
        if proposed is None:
            self._rows.clear()
            processor = self._processor
        elif not 0 <= proposed < len(row):
            # Padding, which never comes, so that nothing comes of this row and those behind it.
            return
        else:
            before = self._rows[-1].processor
            processor = before.followed_by(proposed) if before else None
        np.copyto(kept, row)
        best = None
        if processor:
            values = offsets()
            processor.write_offsets(row, values)
            best = _best(row + values) if self._certain else None
        total = log_total(row) if self._reports else 0.0
        self._rows.append(_Row(proposed, kept, processor, best, total))

    def report(self, output: Output) -> Output:
        """Return a step's output with what the request asks for.

        Its finish is MISATTRIBUTED if a token cannot be its own.
        """
        rows, self._rows = self._rows, []
        problem = self._problem or self._mismatch(output.tokens, rows)
        if problem:
            return Output([], [], MISATTRIBUTED, reason=problem)
        if not rows:
            return output
        came = [*zip(output.tokens, rows, strict=False)]
        token, last = came[-1]
        if last.processor:
            self._processor = last.processor
            self._processor.append(token)
        if not self._reports:
            return output
        logprobs = [float(row.row[token]) - row.total for token, row in came]
        alternatives = [self._alternatives(row) for _, row in came] if self._top else []
        return Output(output.tokens, logprobs, output.finish, alternatives)

    def _alternatives(self, row: _Row) -> Alternatives:
        top = likeliest(row.row, self._top).tolist()
        return [(other, float(row.row[other]) - row.total) for other in top]

    def _mismatch(self, tokens: Sequence[int], rows: Sequence[_Row]) -> str:
        """Return why the tokens cannot have been chosen from the rows; "" if they can."""
        if not rows:
            return "a token came without logits" if tokens else ""
        if not 0 < len(tokens) <= len(rows):
            of = "one row" if len(rows) == 1 else f"{len(rows)} rows"
            return f"{len(tokens)} tokens came of {of}"
        if [*tokens[:-1]] != [row.proposed for row in rows[1 : len(tokens)]]:
            return f"tokens came that were not proposed: {[*tokens]}"
        problems = (self._unlikely(*pair) for pair in zip(tokens, rows, strict=False))
        return next(filter(None, problems), "")

    def _unlikely(self, token: int, row: _Row) -> str:
        """Return why a token cannot have been chosen from a row; "" if it can."""
        if row.processor and self._alone and row.processor.bans(token):
            return f"token {token} came, which is banned"
        if self._certain:
            best = _best(row.row) if row.best is None else row.best
            if token not in best:
                return f"token {token} came, which is not the likeliest"
        return ""


def _best(logits: Floats) -> Integers:
    """Return the likeliest token, and those that rounding may put in its place."""
    highest = float(logits.max())
    return np.flatnonzero(logits >= highest - ROUNDING * max(abs(highest), 1.0))
