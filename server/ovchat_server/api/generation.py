"""How an answer is generated: what chat and text completions have in common."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ovchat_server.api.field_path import FieldPath

if TYPE_CHECKING:
    from ovchat_server.api.structured_output import Constraint


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are chosen. None: the model's default.

    Attributes:
        temperature: 0 to 2; below 1e-5 is greedy.
        top_p: (0, 1].
        top_k: -1 and 0 turn it off.
        min_p: [0, 1): the share of the most likely token's probability that others need.
        repetition_penalty: Above 0; above 1 makes tokens seen before less likely.
        seed: 64 bits, signed (OpenAI).
        presence_penalty: -2 to 2: taken off the logits of tokens that the answer has already.
        frequency_penalty: -2 to 2: the same, as many times as it has them.
        logit_bias: Tokens and what is added to their logits, -100 to 100.
        allowed_token_ids: The only tokens to choose from; none: all.
        bad_words: Texts that the answer must not hold; none is white space alone.
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
        """What of `logit_bias` changes something."""
        return tuple(item for item in self.logit_bias if item[1])

    def logit_changes(self) -> tuple[str, ...]:
        """The names of the parameters by which it changes logits."""
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
    """The likeliest whole answers instead of sampled ones.

    Attributes:
        width: Answers that are followed at once, at least 2.
        length_penalty: Above 0 favours longer answers, below 0 shorter ones.
        field: What the caller named the width.
    """

    width: int
    length_penalty: float = 1.0
    field: FieldPath = FieldPath.of("best_of")


@dataclass(frozen=True, slots=True)
class Ending:
    """When an answer ends.

    Attributes:
        max_tokens: Most tokens to generate. None: the model's default, or until it ends.
        max_tokens_field: What the caller named it.
        min_tokens: Neither the model nor a stop may end the answer before so many tokens.
        ignore_eos: Go on past the model's end tokens.
        stop: Texts that end the answer.
        stop_token_ids: Tokens that end the answer.
        include_stop: What ended the answer is part of it.
    """

    max_tokens: int | None = None
    max_tokens_field: FieldPath = FieldPath.of("max_tokens")
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop: bool = False


class TruncationSide(StrEnum):
    """Which end of a prompt is cut off."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Truncation:
    """Cut a prompt that is too long.

    Attributes:
        tokens: How many to keep. None: as many as the model's context has room for.
    """

    tokens: int | None
    side: TruncationSide = TruncationSide.LEFT


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """What to generate from a prompt.

    Attributes:
        n: Choices for every prompt.
        beams: None: sample.
        logprobs: Report the log probability of every token.
        top_logprobs: How many of the likeliest tokens to tell with each.
        top_logprobs_field: What the caller named it.
        prompt_logprobs: How many of the likeliest tokens to tell with each token of the prompt,
            and how likely it was itself. None: nothing of the prompt.
        echo_logprobs: Tell of the prompt's tokens, before the answer's, what is told of those.
        skip_special_tokens: Leave control tokens out of the text.
        truncation: None: a prompt that is too long is refused.
        constraint: The form that the answer must have; None: any.
        priority: Where requests wait for the engine, lower goes first (vLLM).
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

    def prompt_alternatives(self) -> dict[FieldPath, int]:
        """The parameters that ask how likely the prompt's tokens are.

        And how many of the likeliest tokens each of them wants to know.
        """
        asked: dict[FieldPath, int] = {}
        if self.prompt_logprobs is not None:
            asked[FieldPath.of("prompt_logprobs")] = self.prompt_logprobs
        if self.echo_logprobs:
            asked[self.top_logprobs_field] = self.top_logprobs
        return asked


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream carries besides deltas.

    Attributes:
        include_usage: One more chunk at the end, with the usage (OpenAI).
        continuous_usage: The usage so far on every chunk (vLLM).
    """

    include_usage: bool = False
    continuous_usage: bool = False
