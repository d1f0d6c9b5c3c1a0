"""What comes before the tokens of an answer: roles, and prompts that are echoed or told of."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.serving.prompt_logprobs import PromptTeller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.api.completion import ChunkChoice
    from ovchat_server.api.generation import GenerationParams
    from ovchat_server.engine.contract.generation import GeneratedTokens
    from ovchat_server.serving.generation import PromptTokens
    from ovchat_server.serving.models import ServedModel
    from ovchat_server.serving.worker_pool import WorkerPool


@dataclass(frozen=True, slots=True)
class Begun:
    """What goes on now.

    Attributes:
        chunks: The beginnings of choices.
        pieces: Tokens of choices that have begun.
    """

    chunks: Sequence[ChunkChoice]
    pieces: Sequence[GeneratedTokens]


class Opening:
    """Begins all choices with the first token of any."""

    def __init__(self, chunks: Sequence[ChunkChoice]) -> None:
        """Begin with `chunks`, in the order of the choices."""
        self.chunks = chunks
        # All choices have begun.
        self.done = False

    async def take(self, piece: GeneratedTokens) -> Begun:
        """What goes on now that the engine said more, until all is done."""
        # As soon as there is a token: callers measure their TTFT by it. All choices at once,
        # because the SDKs take them in the order of their index.
        self.done = True
        return Begun(self.chunks, (piece,))


class ScoredOpening(Opening):
    """Begins the choices of a prompt when it is known how likely its tokens were.

    What comes of them before waits. Prompts begin in their order.
    """

    def __init__(
        self,
        chunks: Sequence[ChunkChoice],
        prompts: Sequence[PromptTokens],
        teller: PromptTeller,
        answered: int,
    ) -> None:
        """Begin with `chunks`, as many for each of the `prompts`.

        Args:
            chunks: In the order of the prompts.
            prompts: What is told of.
            teller: Tells.
            answered: Choices of each prompt, which have a sequence each. 0: a prompt has one
                sequence, of which only what it tells of the prompt counts.
        """
        super().__init__(chunks)
        self._prompts = prompts
        self._teller = teller
        self._answered = answered
        self._sequences = max(answered, 1)
        self._told: dict[int, Sequence[ChunkChoice]] = {}
        self._held: defaultdict[int, list[GeneratedTokens]] = defaultdict(list)
        # Prompts whose choices have begun.
        self._open = 0

    async def take(self, piece: GeneratedTokens) -> Begun:
        """What goes on now that the engine said more, until all is done."""
        prompt, choice = divmod(piece.index, self._sequences)
        if prompt < self._open:
            return Begun((), (piece,) if self._answered else ())
        self._held[prompt].append(piece)
        # The first choice is the one that the engine tells of the prompt with.
        if choice == 0 and prompt not in self._told:
            self._told[prompt] = await self._chunks_of(prompt, piece)
        chunks: list[ChunkChoice] = []
        pieces: list[GeneratedTokens] = []
        while self._open in self._told:
            chunks += self._told[self._open]
            pieces += self._held.pop(self._open, [])
            self._open += 1
        self.done = bool(self._answered) and self._open == len(self._prompts)
        return Begun(chunks, pieces if self._answered else ())

    async def _chunks_of(self, prompt: int, piece: GeneratedTokens) -> Sequence[ChunkChoice]:
        """The beginnings of a prompt's choices, with what is told of its tokens."""
        told = await self._teller.tell(self._prompts[prompt], piece.prompt)
        each = len(self.chunks) // len(self._prompts)
        return [
            dataclasses.replace(chunk, logprobs=told.echoed, prompt_logprobs=told.listed)
            for chunk in self.chunks[prompt * each : (prompt + 1) * each]
        ]


def opening_of(  # noqa: PLR0913, PLR0917
    model: ServedModel,
    workers: WorkerPool,
    params: GenerationParams,
    chunks: Sequence[ChunkChoice],
    prompts: Sequence[PromptTokens],
    answered: int,
) -> Opening:
    """The opening of an answer: whether it has to wait depends on what is told of the prompts.

    Args:
        model: Who answers.
        workers: Make what is told of large prompts.
        params: What was asked for.
        chunks: See ScoredOpening; so the others.
        prompts: What is answered.
        answered: Choices of each prompt that have a sequence.
    """
    if not params.prompt_alternatives():
        return Opening(chunks)
    teller = PromptTeller(model.files.tokenizer, params, workers)
    return ScoredOpening(chunks, prompts, teller, answered)
