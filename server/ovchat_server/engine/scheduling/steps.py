"""The pipeline that a scheduler steps, and the sequences inside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ovchat_server.engine.contract.messages import MISATTRIBUTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.contract.prompt import Prompt
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores


# Tokens and their log probabilities.
Alternatives: TypeAlias = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Output:
    """Tokens of a sequence, and "stop" or "length" where it ended.

    MISATTRIBUTED (contract.messages): nobody can tell whether they are its own, for the reason
    given. Of the tokens, so many as were `accepted` had been proposed; others that had been were
    `rejected`. An answer that was `cut` ends at a token which the pipeline did not choose.
    """

    tokens: list[int]
    logprobs: list[float]
    finish: str | None = None
    alternatives: list[Alternatives] = field(default_factory=list)
    reason: str = ""
    accepted: int = 0
    rejected: int = 0
    cut: bool = False

    @property
    def runs(self) -> bool:
        """Whether the sequence still runs in the pipeline, though this is its last output."""
        return self.cut or self.finish == MISATTRIBUTED

    def without(self, count: int) -> Output:
        """Return the output without its first `count` tokens."""
        tokens = self.tokens[count:]
        return replace(
            self,
            tokens=tokens,
            logprobs=self.logprobs[count:],
            alternatives=self.alternatives[count:],
            accepted=min(self.accepted, len(tokens)),
        )


class Handle(Protocol):
    """A sequence inside the pipeline, or a beam search for several."""

    @property
    def answered(self) -> int:
        """The number of generated tokens, of each beam; 0 while the prompt is being read."""
        ...

    @property
    def unread(self) -> int:
        """The number of tokens that the next step reads of it, of each beam, behind its prompt."""
        ...

    @property
    def cached(self) -> int | None:
        """The number of tokens that the prefix cache had of the prompt; None: not known."""
        ...

    @property
    def shared(self) -> int | None:
        """How many of its tokens others may find in the prefix cache; None: all."""
        ...

    def own_from(self, place: int) -> None:
        """Have the blocks from here on made anew and found by nobody else, if it is added anew."""
        ...

    def take(self) -> list[Output]:
        """Return the outputs since the last call; those of a beam search all at its end."""
        ...

    def dropped(self) -> bool:
        """Return whether the pipeline dropped the sequence by itself."""
        ...

    def cancel(self) -> None:
        """Cancel it; its blocks are free after the next step."""
        ...


class Pipeline(Protocol):
    """The pipeline of a scheduler, used by one thread."""

    @property
    def scored_tokens(self) -> int:
        """The maximum number of tokens that a step should read of prompts that are scored."""
        ...

    @property
    def proposed(self) -> bool:
        """Whether tokens were proposed for the last step, which so took longer."""
        ...

    @property
    def sampling_seconds(self) -> float:
        """How long the last step took to choose tokens from its logits; 0: it is not known."""
        ...

    @property
    def computed(self) -> bool:
        """Whether the last step computed its logits, as far as is known."""
        ...

    def add(self, request: SequenceRequest, answered: int, scores: PromptScores | None) -> Handle:
        """Add a sequence, which runs from the next step on.

        Args:
            request: The request, whose prompt includes the tokens generated so far.
            answered: The number of generated tokens at the end of the prompt.
            scores: Collects the log probabilities of the prompt's tokens that are read.
        """
        ...

    def read(self, prompt: Prompt, scores: PromptScores | None) -> Handle:
        """Read a prompt in the next step, for the prefix cache; its handle yields one token."""
        ...

    def step(self, free_blocks: int = 0) -> None:
        """Run the model once over all sequences.

        Args:
            free_blocks: How many KV blocks no sequence holds, nor may need in this step.
        """
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, including that of special tokens."""
        ...
