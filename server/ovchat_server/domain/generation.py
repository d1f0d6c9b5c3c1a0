"""The parameters of generation that chat and text completions have in common."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ovchat_server.domain.field_path import FieldPath

if TYPE_CHECKING:
    from ovchat_server.domain.structured_output import Constraint


# What a request may ask for at most. Tokens are proposed within a KV block, which holds no more.
MAX_ASSISTANT_TOKENS = 32
MAX_NGRAM_SIZE = 32


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """The sampling parameters; None stands for the model's default.

    Attributes:
        temperature: 0 to 2; below 1e-5 is greedy.
        top_p: (0, 1].
        top_k: -1 and 0 disable it.
        min_p: [0, 1): the minimum probability as a fraction of the most likely token's.
        repetition_penalty: Above 0; above 1 makes tokens of prompt and answer less likely.
        seed: 64 bits, signed (OpenAI).
        presence_penalty: -2 to 2: subtracted from the logits of generated tokens.
        frequency_penalty: -2 to 2: the same, for each time that they were generated.
        logit_bias: Tokens and the values added to their logits, -100 to 100.
        allowed_token_ids: The only tokens that may be generated; if empty, all may.
        bad_words: Texts that must not be generated; none is white space alone.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    allowed_token_ids: tuple[int, ...] = ()
    bad_words: tuple[str, ...] = ()

    @property
    def biases(self) -> tuple[tuple[int, float], ...]:
        """The entries of `logit_bias` that are not 0."""
        return tuple(item for item in self.logit_bias if item[1])

    def logit_changes(self) -> tuple[str, ...]:
        """Return the names of the set parameters that change logits."""
        changes = {
            "presence_penalty": self.presence_penalty,
            "frequency_penalty": self.frequency_penalty,
            "logit_bias": self.biases,
            "allowed_token_ids": self.allowed_token_ids,
            "bad_words": self.bad_words,
        }
        return tuple(name for name, change in changes.items() if change)


@dataclass(frozen=True, slots=True)
class BeamSearch:
    """Beam search instead of sampling.

    Attributes:
        width: The beam width, at least 2.
        length_penalty: Above 0 favours longer sequences, below 0 shorter ones.
        field: The name of the field that the width was read from.
    """

    width: int
    length_penalty: float = 1.0
    field: FieldPath = FieldPath.of("best_of")


@dataclass(frozen=True, slots=True)
class SpeculationParams:
    """The parameters of speculation; None stands for the model's default.

    Attributes:
        num_assistant_tokens: The most tokens that are proposed for a step; 0 for none.
        max_ngram_size: How many of the last tokens are looked up.
        assistant_confidence_threshold: 0 to 1: how likely a draft model must find what it proposes.
        prediction: What the answer is expected to say, in chats.
    """

    num_assistant_tokens: int | None = None
    max_ngram_size: int | None = None
    assistant_confidence_threshold: float | None = None
    prediction: str | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """When generation ends.

    Attributes:
        max_tokens: The maximum number of tokens to generate; None for the model's default, or
            else what the context has left.
        max_tokens_field: The name of the field that `max_tokens` was read from.
        min_tokens: The number of tokens before which neither the model nor a stop string or
            stop token ends generation.
        ignore_eos: Whether generation goes on past the model's end-of-sequence tokens.
        stop: The stop strings.
        stop_token_ids: The stop tokens.
        include_stop: Whether the stop string or token that ended generation is returned.
    """

    max_tokens: int | None = None
    max_tokens_field: FieldPath = FieldPath.of("max_tokens")
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop: bool = False


class TruncationSide(StrEnum):
    """The end of a prompt from which tokens are removed."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Truncation:
    """The truncation of prompts.

    Attributes:
        tokens: The number of tokens to keep; None for as many as the model's context has room for.
    """

    tokens: int | None
    side: TruncationSide = TruncationSide.LEFT


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """The parameters of generation from a prompt.

    Attributes:
        n: The number of choices for each prompt.
        beams: The beam search; None to sample.
        logprobs: Whether the log probabilities of generated tokens are returned.
        top_logprobs: The number of most likely tokens returned with each of them.
        top_logprobs_field: The name of the field that `top_logprobs` was read from.
        prompt_logprobs: The number of most likely tokens returned with the log probability of
            each token of the prompt; None if none are returned.
        echo_logprobs: Whether the log probabilities of the prompt's tokens are returned before
            those of the generated ones.
        skip_special_tokens: Whether special tokens are left out of the text.
        truncation: The truncation of the prompt; None to refuse one that is too long.
        constraint: The constraint on the answer; None if there is none.
        priority: Requests with lower values leave the engine's queue first (vLLM).
        speculation: How tokens are proposed, on models that do so.
        cache_salt: Prompts share what the prefix cache has with those of the same salt (vLLM);
            None: with those of the same caller that have none.
    """

    sampling: SamplingParams = SamplingParams()
    ending: Ending = Ending()
    n: int = 1
    beams: BeamSearch | None = None
    logprobs: bool = False
    top_logprobs: int = 0
    top_logprobs_field: FieldPath = FieldPath.of("top_logprobs")
    prompt_logprobs: int | None = None
    echo_logprobs: bool = False
    skip_special_tokens: bool = True
    truncation: Truncation | None = None
    constraint: Constraint | None = None
    priority: int = 0
    speculation: SpeculationParams = SpeculationParams()
    cache_salt: str | None = None

    def prompt_alternatives(self) -> dict[FieldPath, int]:
        """Return the parameters that ask for log probabilities of the prompt's tokens.

        Each with the number of most likely tokens that it asks for.
        """
        asked: dict[FieldPath, int] = {}
        if self.prompt_logprobs is not None:
            asked[FieldPath.of("prompt_logprobs")] = self.prompt_logprobs
        if self.echo_logprobs:
            asked[self.top_logprobs_field] = self.top_logprobs
        return asked


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of a stream.

    Attributes:
        include_usage: Whether one more chunk with the usage is sent at the end (OpenAI).
        continuous_usage: Whether each chunk has the usage up to it, too (vLLM).
    """

    include_usage: bool = False
    continuous_usage: bool = False
