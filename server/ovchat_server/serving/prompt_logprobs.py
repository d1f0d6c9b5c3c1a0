"""How likely the tokens of prompts were: how many may be told, and in which forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.api.errors import InvalidRequestError, Violation
from ovchat_server.api.field_path import ErrorText
from ovchat_server.chat.detokenizer import token_offsets
from ovchat_server.chat.logprobs import (
    prompt_token,
    token_logprob,
    unscored_prompt_token,
    unscored_token,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.api.completion import PromptToken, TokenLogprob
    from ovchat_server.api.generation import GenerationParams
    from ovchat_server.chat.detokenizer import TokenDecoder
    from ovchat_server.engine.contract.generation import PromptScore
    from ovchat_server.serving.generation import PromptTokens
    from ovchat_server.serving.worker_pool import WorkerPool

# Telling so many takes a few milliseconds.
FEW = 1000


def check_prompt_logprobs(
    params: GenerationParams, prompts: Sequence[PromptTokens], most: int, copies: int = 1
) -> None:
    """Refuse to tell more than `most` log probabilities of prompts, each `copies` times.

    Raises:
        InvalidRequestError: They are more.
    """
    asked = params.prompt_alternatives()
    each = sum(1 + alternatives for alternatives in asked.values())
    count = sum(len(prompt.tokens) for prompt in prompts) * each * copies
    if count > most:
        first, *others = asked
        text = ErrorText.of(
            first,
            *(ErrorText.of(" and ", other) for other in others),
            f" asked for {count} log probabilities of prompts, all choices together, of which at "
            f"most {most} are told: ask for fewer alternatives or choices, or of fewer tokens.",
        )
        raise InvalidRequestError.of([Violation(first, text)])


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of the tokens of a prompt.

    Attributes:
        listed: In a list of their own. None: not asked for; so `echoed`.
        echoed: As the tokens of the answer are, before them.
    """

    listed: tuple[PromptToken, ...] | None
    echoed: tuple[TokenLogprob, ...] | None


@dataclass(frozen=True, slots=True)
class PromptTeller:
    """Makes what is told of prompts from what the engine knows of them."""

    decoder: TokenDecoder
    params: GenerationParams
    workers: WorkerPool

    async def tell(self, prompt: PromptTokens, scores: Sequence[PromptScore]) -> Told:
        """What is told of a prompt; `scores` has one for each token but the first."""
        alternatives = max(self.params.prompt_alternatives().values())
        in_place = len(prompt.tokens) * (1 + alternatives) <= FEW
        return await self.workers.run(partial(self._told, prompt, scores), in_place=in_place)

    def _told(self, prompt: PromptTokens, scores: Sequence[PromptScore]) -> Told:
        listed, echoed = self.params.prompt_logprobs, self.params.echo_logprobs
        return Told(
            None if listed is None else tuple(self._listed(prompt, scores, listed)),
            tuple(self._echoed(prompt, scores)) if echoed else None,
        )

    def _listed(
        self, prompt: PromptTokens, scores: Sequence[PromptScore], alternatives: int
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

    def _echoed(self, prompt: PromptTokens, scores: Sequence[PromptScore]) -> list[TokenLogprob]:
        alternatives = self.params.top_logprobs
        first, *others = prompt.tokens
        _, *offsets = token_offsets(self.decoder, prompt.tokens, prompt.text or "")
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
