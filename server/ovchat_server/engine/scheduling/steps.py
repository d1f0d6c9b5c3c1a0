"""What the scheduler needs of an engine: a pipeline, and handles of the sequences in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores


# Tokens and their log probabilities.
Alternatives: TypeAlias = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Output:
    """New tokens of a sequence, and "stop" or "length" if it ended.

    With MISATTRIBUTED (contract.messages) the tokens may be another's, for the reason given, and
    the sequence still runs.
    """

    tokens: list[int]
    logprobs: list[float]
    finish: str | None = None
    alternatives: list[Alternatives] = field(default_factory=list)
    reason: str = ""

    def without(self, count: int) -> Output:
        """Return the output without its first `count` tokens."""
        return Output(
            self.tokens[count:], self.logprobs[count:], self.finish, self.alternatives[count:]
        )


class Handle(Protocol):
    """A sequence or a beam search inside the pipeline."""

    @property
    def answered(self) -> int:
        """The number of tokens generated, by each beam of a beam search; 0 during prefill."""
        ...

    def take(self) -> list[Output]:
        """Return the outputs since the last call; all of a beam search when it ends."""
        ...

    def dropped(self) -> bool:
        """Return whether the pipeline dropped the sequence by itself."""
        ...

    def cancel(self) -> None:
        """Cancel it; its blocks are free after the next step."""
        ...


class Pipeline(Protocol):
    """An engine that runs a batch of sequences in steps. Used by one thread."""

    @property
    def scored_tokens(self) -> int:
        """The most prompt tokens that a step should score."""
        ...

    @property
    def computed(self) -> bool:
        """Whether the last step computed its logits, as far as is known."""
        ...

    def uncached(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """Return a prompt that reads the same, of which the prefix cache knows nothing."""
        ...

    def add(self, request: SequenceRequest, answered: int, scores: PromptScores | None) -> Handle:
        """Add a sequence; it runs from the next step on.

        Args:
            request: Its prompt holds the tokens of the answer that are known.
            answered: Number of tokens at the end of the prompt that belong to the answer.
            scores: Gathers the scores of the prompt's tokens.
        """
        ...

    def read(self, prompt: Sequence[int], scores: PromptScores | None) -> Handle:
        """Add a prompt to be read into the prefix cache; its handle yields one token."""
        ...

    def step(self) -> None:
        """Run the model once over all sequences."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """Return tokens as text, with special tokens."""
        ...
