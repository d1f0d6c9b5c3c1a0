"""Log probabilities of the tokens of prompts, as answers report them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.chat.detokenizer import token_offsets
from ovchat_server.chat.logprobs import (
    prompt_token,
    token_logprob,
    unscored_prompt_token,
    unscored_token,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.detokenizer import TokenDecoder
    from ovchat_server.domain.completion import PromptToken, TokenLogprob
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.engine.contract.generation import PromptScore
    from ovchat_server.serving.render import RenderedPrompt
    from ovchat_server.serving.worker_pool import WorkerPool

# Making so many log probabilities takes a few milliseconds.
MAX_LOGPROBS_IN_PLACE = 1000


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """The log probabilities of a prompt's tokens.

    Attributes:
        listed: As a list of their own; None if not asked for.
        echoed: As tokens of the answer, before its own; None if not asked for.
    """

    listed: tuple[PromptToken, ...] | None
    echoed: tuple[TokenLogprob, ...] | None


@dataclass(frozen=True, slots=True)
class PromptLogprobReporter:
    """Makes the log probabilities of prompts from the engine's scores of their tokens.

    Attributes:
        decoder: Of the model's tokens.
        params: What is asked for.
        workers: Threads for prompts that would block the event loop.
    """

    decoder: TokenDecoder
    params: GenerationParams
    workers: WorkerPool

    async def report(self, prompt: RenderedPrompt, scores: Sequence[PromptScore]) -> PromptLogprobs:
        """Return the log probabilities of a prompt.

        Args:
            prompt: Its tokens, and the text that is echoed.
            scores: One for each token but the first.
        """
        alternatives = max(self.params.prompt_alternatives().values())
        in_place = len(prompt.tokens) * (1 + alternatives) <= MAX_LOGPROBS_IN_PLACE
        return await self.workers.run(partial(self._report, prompt, scores), in_place=in_place)

    def _report(self, prompt: RenderedPrompt, scores: Sequence[PromptScore]) -> PromptLogprobs:
        listed, echoed = self.params.prompt_logprobs, self.params.echo_logprobs
        return PromptLogprobs(
            None if listed is None else tuple(self._listed(prompt, scores, listed)),
            tuple(self._echoed(prompt, scores)) if echoed else None,
        )

    def _listed(
        self, prompt: RenderedPrompt, scores: Sequence[PromptScore], alternatives: int
    ) -> list[PromptToken]:
        first, *others = prompt.tokens
        return [
            unscored_prompt_token(self.decoder, first),
            *(
                prompt_token(
                    self.decoder,
                    (token, score.logprob, score.rank),
                    score.alternatives[:alternatives],
                )
                for token, score in zip(others, scores, strict=True)
            ),
        ]

    def _echoed(self, prompt: RenderedPrompt, scores: Sequence[PromptScore]) -> list[TokenLogprob]:
        alternatives = self.params.top_logprobs
        first, *others = prompt.tokens
        _, *offsets = token_offsets(self.decoder, prompt.tokens, prompt.text)
        return [
            unscored_token(self.decoder, first),
            *(
                token_logprob(
                    self.decoder,
                    (token, score.logprob),
                    score.alternatives[:alternatives],
                    offset,
                    with_itself=True,
                )
                for token, score, offset in zip(others, scores, offsets, strict=True)
            ),
        ]
