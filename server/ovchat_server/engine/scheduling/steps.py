"""What a scheduler steps: a pipeline, and the sequences inside it."""

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
    """Tokens of a sequence, and "stop" or "length" where it ended.

    MISATTRIBUTED (contract.messages): nobody can tell whether they are its own, for the reason
    given; it still runs.
    """

    tokens: list[int]
    logprobs: list[float]
    finish: str | None = None
    alternatives: list[Alternatives] = field(default_factory=list)
    reason: str = ""

    def without(self, count: int) -> Output:
        """What is left without the first `count` tokens."""
        return Output(
            self.tokens[count:], self.logprobs[count:], self.finish, self.alternatives[count:]
        )


class Handle(Protocol):
    """A sequence inside the pipeline, or a search for several."""

    @property
    def answered(self) -> int:
        """Tokens that it has made, of a search those of each beam; 0: its prompt is being read."""
        ...

    def take(self) -> list[Output]:
        """What came since the last time; of a search all at once, when it ends."""
        ...

    def dropped(self) -> bool:
        """Whether the pipeline gave the sequence up by itself."""
        ...

    def cancel(self) -> None:
        """Give it up: its blocks are free after the next step."""
        ...


class Pipeline(Protocol):
    """What a scheduler steps. Driven by one thread."""

    @property
    def scored_tokens(self) -> int:
        """Most tokens that a step should read whose scores are to be told."""
        ...

    @property
    def computed(self) -> bool:
        """Whether the last step came to its logits, as far as is known."""
        ...

    def uncached(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """Return a prompt that reads the same, of which the prefix cache knows nothing."""
        ...

    def add(self, request: SequenceRequest, answered: int, scores: PromptScores | None) -> Handle:
        """Take a sequence in; it runs from the next step on.

        Args:
            request: With what is known of it as a prompt.
            answered: Tokens at the end of the prompt that are of its answer.
            scores: Gathers those of all the tokens of its prompt that it reads.
        """
        ...

    def read(self, prompt: Sequence[int], scores: PromptScores | None) -> Handle:
        """Read a prompt in the next step, so that the prefix cache has it; a token comes of it."""
        ...

    def step(self) -> None:
        """Run the model once over all sequences."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens as text, control tokens and all."""
        ...
