"""When the first chunks of an answer are sent: roles, echoed prompts, their log probabilities."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from ovchat_server.serving.plan import generates
from ovchat_server.serving.prompt_logprobs import PromptLogprobReporter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.engine.contract.generation import GeneratedTokens
    from ovchat_server.serving.plan import GenerationPlan
    from ovchat_server.serving.render import RenderedPrompt
    from ovchat_server.serving.worker_pool import WorkerPool

# The first chunks to send now, and the tokens to assemble after them.
Released: TypeAlias = "tuple[Sequence[ChunkChoice], Sequence[GeneratedTokens]]"


class FirstChunks:
    """Sends the first chunks of all choices with the first token of any.

    Attributes:
        sent: Whether all were sent, so that tokens need no longer be released.
    """

    def __init__(self, chunks: Sequence[ChunkChoice]) -> None:
        """Send `chunks`, in the order of the choices."""
        self._chunks = chunks
        self.sent = False

    async def release(self, tokens: GeneratedTokens) -> Released:
        """Take tokens, and return what can be sent and assembled now."""
        # With the first token, by which callers measure their TTFT; for all choices at once,
        # because SDKs expect choices in the order of their index.
        self.sent = True
        return self._chunks, (tokens,)


class ScoredFirstChunks(FirstChunks):
    """Sends the first chunks of a prompt's choices with the log probabilities of its tokens.

    Tokens of these choices that come before are held back. Prompts begin in their order.
    """

    def __init__(
        self,
        chunks: Sequence[ChunkChoice],
        prompts: Sequence[RenderedPrompt],
        choices: int,
        reporter: PromptLogprobReporter,
    ) -> None:
        """Send `chunks`, as many for each prompt.

        Args:
            chunks: In the order of the prompts.
            prompts: Whose log probabilities to send.
            choices: Sequences of each prompt. 0: it has one, whose tokens are dropped.
            reporter: Makes the log probabilities.
        """
        super().__init__(chunks)
        self._prompts = prompts
        self._choices = choices
        self._reporter = reporter
        self._ready: dict[int, Sequence[ChunkChoice]] = {}
        self._held: defaultdict[int, list[GeneratedTokens]] = defaultdict(list)
        # Prompts whose first chunks were sent.
        self._prompts_sent = 0

    async def release(self, tokens: GeneratedTokens) -> Released:
        """Take tokens, and return what can be sent and assembled now."""
        prompt, choice = divmod(tokens.index, max(self._choices, 1))
        if prompt < self._prompts_sent:
            return (), (tokens,) if self._choices else ()
        self._held[prompt].append(tokens)
        # The engine reports the prompt with the first of its choices.
        if choice == 0 and prompt not in self._ready:
            self._ready[prompt] = await self._chunks_of(prompt, tokens)
        chunks: list[ChunkChoice] = []
        released: list[GeneratedTokens] = []
        while self._prompts_sent in self._ready:
            chunks += self._ready[self._prompts_sent]
            released += self._held.pop(self._prompts_sent, [])
            self._prompts_sent += 1
        self.sent = bool(self._choices) and self._prompts_sent == len(self._prompts)
        return chunks, released if self._choices else ()

    async def _chunks_of(self, prompt: int, tokens: GeneratedTokens) -> Sequence[ChunkChoice]:
        """Return the first chunks of a prompt's choices, with its log probabilities."""
        report = await self._reporter.report(self._prompts[prompt], tokens.prompt)
        each = len(self._chunks) // len(self._prompts)
        return [
            dataclasses.replace(
                chunk, logprobs=report.echoed or chunk.logprobs, prompt_logprobs=report.listed
            )
            for chunk in self._chunks[prompt * each : (prompt + 1) * each]
        ]


def first_chunks(plan: GenerationPlan, workers: WorkerPool) -> FirstChunks:
    """Return what sends the first chunks of a planned answer."""
    params = plan.params
    if not params.prompt_alternatives():
        return FirstChunks(plan.first_chunks)
    reporter = PromptLogprobReporter(plan.model.files.tokenizer, params, workers)
    choices = params.n if generates(params) else 0
    return ScoredFirstChunks(plan.first_chunks, plan.prompts, choices, reporter)
