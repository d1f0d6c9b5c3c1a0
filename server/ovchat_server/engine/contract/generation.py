"""What an engine is asked to generate, and the tokens that it returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ovchat_server.engine.contract.engine import EngineStatus
from ovchat_server.engine.contract.messages import Capabilities
from ovchat_server.engine.contract.prompt import Prompt  # noqa: TC001  msgspec reads it
from ovchat_server.engine.contract.speculation import NO_SPECULATION, Speculation

if TYPE_CHECKING:
    from collections.abc import Sequence


# Far from all small numbers, and so are its small multiples (2^32 by the golden ratio).
SEED_STEP = 0x9E3779B1


class TokenFinish(StrEnum):
    """Why the engine stopped generating."""

    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class ReasoningBudget:
    """How long the reasoning in an answer may be.

    Attributes:
        tokens: The maximum number of tokens of reasoning; then it is closed.
        opening: The text that opens it; "" if the prompt ends inside it.
        closing: The tokens that close it, at least one. Without the white space around it, their
            text is the mark.
        reopening: Tokens that only open it. Where they are given, an answer may reason several
            times, until the maximum is reached; then the last of them does not come behind the
            others. Otherwise there is no reasoning but at the beginning.
    """

    tokens: int
    opening: str
    closing: tuple[int, ...]
    reopening: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How each token is chosen; every value is set.

    Attributes:
        temperature: 0 is greedy: the most likely token, whatever the filters.
        top_p: (0, 1].
        top_k: 0 turns it off.
        min_p: [0, 1); 0 turns it off.
        repetition_penalty: Above 0; 1 turns it off.
        seed: 0 to 2^32 - 1, as the engine's generator takes 32 bits.
        presence_penalty: -2 to 2: subtracted from the logits of tokens that the answer contains.
        frequency_penalty: -2 to 2: the same, once for each time that it contains them.
        bias: Tokens of the vocabulary, and what is added to their logits.
        allowed: The only tokens to choose from; empty for all.
        banned: Sequences of tokens that the answer must not contain.
        reasoning: How long the reasoning may be; None for any length.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    bias: tuple[tuple[int, float], ...] = ()
    allowed: tuple[int, ...] = ()
    banned: tuple[tuple[int, ...], ...] = ()
    reasoning: ReasoningBudget | None = None

    @property
    def changes_logits(self) -> bool:
        """Whether it needs to change logits, which only some devices can; see Capabilities."""
        return bool(
            self.presence_penalty
            or self.frequency_penalty
            or self.bias
            or self.allowed
            or self.banned
            or self.reasoning
        )


@dataclass(frozen=True, slots=True)
class BeamSearch:
    """Beam search: the most likely whole sequences.

    Attributes:
        width: How many sequences are followed at once, at least 2.
        returned: How many of them are returned, the best first; at most `width`.
        length_penalty: Above 0 favours longer sequences.
    """

    width: int
    returned: int
    length_penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class Resumption:
    """How to resume a grammar in the middle of an answer, after a preemption.

    Attributes:
        mark: A text. The last mark in the answer so far decides how the answer continues. "" is
            the beginning of the answer.
        grammar: The grammar of what follows the mark (see grammar.formats). "" if no grammar could
            begin there: such a sequence generates its tokens once more.
        until: The only marks that count after this one; empty for all.
    """

    mark: str
    grammar: str
    until: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Sequences to generate from one prompt: one by sampling, or several by beam search.

    Attributes:
        prompt: At least one token.
        max_tokens: The maximum number of tokens to generate, at least one; together with the
            prompt at most the engine's context length.
        min_tokens: No end token before so many tokens; at most `max_tokens`. Not in a search.
        ignore_eos: Neither an end token nor one of `stop_tokens` ends the sequence. Not in a
            search.
        stop_tokens: Tokens of the vocabulary that end it, besides the model's own.
        reserve_max_tokens: Whether admission waits until there is room for all of `max_tokens`,
            because the caller set them. Otherwise room for the prompt is enough.
        logprobs: Whether to report the log probability of every token.
        top_logprobs: How many of the most likely tokens to report with each token. Not in a search.
        prompt_logprobs: How many of the most likely tokens to report with each of the prompt's
            tokens, whose own log probabilities are reported, too; None for none at all, as in a
            search. The prompt is then read without the prefix cache.
        grammar: The grammar that the sequence must follow (see grammar.formats), which was checked
            before; "" for none. Not in a search, nor with `ignore_eos` or `min_tokens`.
        self_terminating: Whether the grammar alone decides where the sequence ends: until then,
            tokens that end answers are text, except for the tokenizer's own end token.
        resumptions: How to resume the grammar in the middle of the answer. If empty, it cannot be
            resumed, and the sequence is never preempted.
        speculation: The tokens that may be proposed for a step. Not in a search.
        prediction: Tokens of the vocabulary that the answer is expected to have, which may be
            proposed; at most as many as the context has.
    """

    prompt: Prompt
    max_tokens: int
    sampling: Sampling = Sampling()
    beam_search: BeamSearch | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stop_tokens: tuple[int, ...] = ()
    reserve_max_tokens: bool = False
    logprobs: bool = False
    top_logprobs: int = 0
    prompt_logprobs: int | None = None
    grammar: str = ""
    self_terminating: bool = False
    resumptions: tuple[Resumption, ...] = ()
    speculation: Speculation = NO_SPECULATION
    prediction: tuple[int, ...] = ()

    @property
    def sequences(self) -> int:
        """How many sequences it returns."""
        return self.beam_search.returned if self.beam_search else 1

    @property
    def beams(self) -> int:
        """How many sequences run for it; 1 if it is no beam search."""
        return self.beam_search.width if self.beam_search else 1

    @property
    def speculates(self) -> bool:
        """Whether tokens may be proposed."""
        return self.speculation.proposes and not self.beam_search

    def followed_by(self, tokens: Sequence[int]) -> GenerationRequest:
        """Return the request for the rest of an answer that began with these tokens."""
        done = len(tokens)
        # It must not draw the same random numbers again, nor those of the next choice, whose seed
        # is one higher.
        seed = (self.sampling.seed + done * SEED_STEP) % 2**32
        return replace(
            self,
            prompt=self.prompt.followed_by(tokens),
            max_tokens=self.max_tokens - done,
            min_tokens=max(self.min_tokens - done, 0),
            sampling=replace(self.sampling, seed=seed),
        )


@dataclass(frozen=True, slots=True)
class PromptScore:
    """How likely a token of a prompt was, given those before it.

    Attributes:
        logprob: The natural logarithm of its probability.
        rank: How many tokens were at least as likely, itself included: 1 is the most likely
            (vLLM).
        alternatives: The most likely tokens in its place and their log probabilities, most likely
            first, as many as were asked for. The token itself need not be among them.
    """

    logprob: float
    rank: int
    alternatives: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class GeneratedTokens:
    """The tokens of one sequence since the last ones, with the end token.

    Attributes:
        index: The index of the sequence, among those of all requests in the stream.
        logprobs: One for every token if asked for, else empty. Natural logarithms of the model's
            own probabilities, before temperature, filters, penalties and bias.
        alternatives: For every token, the most likely tokens in its place and their log
            probabilities, most likely first, if asked for; else empty.
        prompt: One for each token of the prompt except the first, if asked for: all of them come
            with the sequence's first token.
        cached: How many of the prompt's tokens the prefix cache had; comes with the first tokens.
            None if it is unknown or came before.
        accepted: How many of the tokens were proposed before they came (Speculation).
        rejected: How many others were proposed.
    """

    index: int
    tokens: tuple[int, ...]
    finish: TokenFinish | None = None
    logprobs: tuple[float, ...] = ()
    alternatives: tuple[tuple[tuple[int, float], ...], ...] = ()
    prompt: tuple[PromptScore, ...] = ()
    cached: int | None = None
    accepted: int = 0
    rejected: int = 0


# Assumed until the engine has been loaded once.
USUAL_CAPABILITIES = Capabilities(sees_logits=True)


@dataclass(frozen=True, slots=True)
class GenerationStatus(EngineStatus):
    """How an engine that generates tokens is doing.

    Attributes:
        context_length: The maximum number of tokens of prompt and answer together; 0 until the
            engine has been loaded once.
        search_lengths: The same for each sequence of a beam search of width 1, 2 and so on.
    """

    capabilities: Capabilities = USUAL_CAPABILITIES
    context_length: int = 0
    search_lengths: tuple[int, ...] = ()
