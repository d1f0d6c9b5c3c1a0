"""What an engine is asked to generate, and the tokens that it returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ovchat_server.engine.contract.engine import EngineStatus
from ovchat_server.engine.contract.messages import Capabilities


class TokenFinish(StrEnum):
    """Why the engine stopped generating."""

    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class ReasoningBudget:
    """How long the reasoning before an answer may be.

    Attributes:
        tokens: The maximum number of tokens of reasoning; then it is closed.
        opening: The text that opens it; "": the prompt ends inside of it.
        closing: Tokens that close it, at least one.
    """

    tokens: int
    opening: str
    closing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How each token is chosen; every value is set.

    Attributes:
        temperature: 0 is greedy: the most likely token, whatever the filters say.
        top_p: (0, 1].
        top_k: 0 turns it off.
        min_p: [0, 1); 0 turns it off.
        repetition_penalty: Above 0; 1 turns it off.
        seed: 0 to 2^32 - 1: the engine's generator takes no more bits.
        presence_penalty: -2 to 2: taken off the logits of tokens that the answer has already.
        frequency_penalty: -2 to 2: the same, so many times as it has them.
        bias: Tokens of the vocabulary and what is added to their logits.
        allowed: The only tokens to choose from; none: all.
        banned: Sequences of tokens that the answer must not hold.
        reasoning: How long reasoning may be; None: any length.
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
        """Whether it needs what only some devices can do; see EngineStatus."""
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
    """Beam search: the likeliest whole sequences.

    Attributes:
        width: Sequences followed at once, at least 2.
        returned: How many of them to return, the best first; at most `width`.
        length_penalty: Above 0 favours longer sequences.
    """

    width: int
    returned: int
    length_penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class Resumption:
    """What form the rest of an answer has, should its sequence lose its place and come back.

    Attributes:
        mark: A text: the last mark in the answer so far says how it goes on. "": the place
            where the answer begins.
        grammar: What follows then, as of grammar.formats. "": none could begin in the middle of
            what the mark begins. Such a sequence repeats what it said.
        until: The only marks that count behind this one; none: all do.
    """

    mark: str
    grammar: str
    until: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Sequences to generate from one prompt: one by sampling, or some by beam search.

    Attributes:
        prompt: Tokens of the model's vocabulary, at least one.
        max_tokens: Most tokens to generate, at least one; with the prompt no more than the
            engine's context length.
        min_tokens: No end token before so many; at most `max_tokens`. Not in a search.
        ignore_eos: No end token ends the sequence, nor does one of `stop_tokens`. Not in a
            search.
        stop_tokens: Tokens of the vocabulary that end it, besides the model's own.
        reserve: Room for all of `max_tokens` is kept from the start: the caller asked for them.
            Otherwise it begins where there is room for its prompt.
        logprobs: Report the log probability of every token.
        top_logprobs: So many of the likeliest tokens are told with each token; not in a search.
        prompt_logprobs: Tell of each of the prompt's tokens how likely it was, and so many of the
            likeliest in its place. None: tell nothing; so in a search. The prompt is read anew
            for it, whatever the prefix cache has.
        grammar: What the sequence must be, as of grammar.formats, checked before; "" for
            anything. Not in a search, nor with `ignore_eos` or `min_tokens`.
        closed: The grammar says where the sequence ends: a token that ends answers is text
            before that, but for the tokenizer's own.
        resumptions: How the grammar goes on in the middle of an answer; with none it cannot,
            and the sequence keeps its place.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling = Sampling()
    beam_search: BeamSearch | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stop_tokens: tuple[int, ...] = ()
    reserve: bool = False
    logprobs: bool = False
    top_logprobs: int = 0
    prompt_logprobs: int | None = None
    grammar: str = ""
    closed: bool = False
    resumptions: tuple[Resumption, ...] = ()

    @property
    def sequences(self) -> int:
        """How many sequences it returns."""
        return self.beam_search.returned if self.beam_search else 1

    @property
    def beams(self) -> int:
        """How many sequences run for it; 1: it is no beam search."""
        return self.beam_search.width if self.beam_search else 1


@dataclass(frozen=True, slots=True)
class PromptScore:
    """How likely the model found a token of a prompt, behind those before it.

    Attributes:
        logprob: Natural logarithm of its probability.
        rank: Tokens that were as likely at least, itself among them: 1 is the likeliest (vLLM).
        alternatives: The likeliest tokens in its place and their log probabilities, the
            likeliest first, as many as were asked for. It need not be one of them.
    """

    logprob: float
    rank: int
    alternatives: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class GeneratedTokens:
    """Tokens of one sequence that came since the last time; the end token is one of them.

    Attributes:
        index: Which sequence: counted through all requests of the generation.
        logprobs: One for every token where asked for, else none. Natural logarithms of the
            model's own probabilities, before temperature, filters, penalties and bias.
        alternatives: For every token the likeliest tokens in its place and their log
            probabilities, the likeliest first, where asked for; else none.
        prompt: One for each token of the prompt but the first, where asked for: all of them with
            the sequence's first token, and never again.
        cached: The number of tokens that the prefix cache had of the prompt, with the first tokens;
            None: not known, or told before.
    """

    index: int
    tokens: tuple[int, ...]
    finish: TokenFinish | None = None
    logprobs: tuple[float, ...] = ()
    alternatives: tuple[tuple[tuple[int, float], ...], ...] = ()
    prompt: tuple[PromptScore, ...] = ()
    cached: int | None = None


# Those that an engine is taken to have until it was loaded once.
USUAL_CAPABILITIES = Capabilities(sees_logits=True)


@dataclass(frozen=True, slots=True)
class GenerationStatus(EngineStatus):
    """How an engine that generates tokens is doing.

    Attributes:
        context_length: Most tokens of prompt and answer together; 0 until loaded once.
        search_lengths: The same for each sequence of a beam search: of width 1, 2 and so on.
    """

    capabilities: Capabilities = USUAL_CAPABILITIES
    context_length: int = 0
    search_lengths: tuple[int, ...] = ()
