"""The context window: how many tokens the prompt and the answer of a request may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.errors import ContextLengthExceededError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import TruncationSide
from ovchat_server.tokenizer.huggingface import kept

if TYPE_CHECKING:
    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.serving.models import TextModel

# The part of the context that an answer has, or less, where messages are left out for it.
ROOM_FOR_ANSWER = 4


class ContextWindow:
    """The tokens that a model has room for in one request, prompt and answer together.

    While a model is loaded, the size of its KV cache is unknown, and only the context length that
    the model was made for counts. The engine refuses the request then.
    """

    def __init__(self, model: TextModel, params: GenerationParams) -> None:
        """Read the engine's status as it is now."""
        status = model.engine.status
        self._ending, self._truncation, self._beams = params.ending, params.truncation, params.beams
        self._default_max_tokens = model.files.defaults.max_tokens
        # The beams of a search share the KV cache, so each has less of it.
        self._search_lengths = status.search_lengths
        self._longest = self._length = status.context_length or model.files.context_length
        if self._beams and status.context_length:
            self._length = status.search_lengths[self._beams.width - 1]

    @property
    def kept_tokens(self) -> int | None:
        """How many tokens of a prompt are kept; None: as many as it has."""
        if self._truncation is None:
            return None
        if self._truncation.tokens is not None:
            return self._truncation.tokens
        answer = self._ending.max_tokens or max(self._ending.min_tokens, 1)
        return max(self._length - answer, 1)

    @property
    def cuts_left(self) -> bool:
        """Whether the last tokens of a prompt are kept, not the first ones."""
        return self._truncation is not None and self._truncation.side is TruncationSide.LEFT

    def truncate(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tokens of a prompt, truncated if the request asks for it."""
        return tuple(kept(tokens, self.kept_tokens, cut_left=self.cuts_left))

    @property
    def longest_prompt(self) -> int:
        """The most tokens of a prompt that leave room for an answer of one."""
        return self._length - 1

    @property
    def roomy_prompt(self) -> int:
        """The most tokens of a prompt that leave room for the answer that is asked for.

        For no more than a quarter of the context: agents ask for the same large number with every
        request.
        """
        room = self._length // ROOM_FOR_ANSWER
        answer = min(self._ending.max_tokens or self._default_max_tokens or room, room)
        return self._length - max(answer, self._ending.min_tokens)

    def check_prompt(self, field: FieldPath, tokens: int) -> None:
        """Refuse a prompt that leaves no room for an answer.

        Args:
            field: What the caller named it.
            tokens: Its length.

        Raises:
            ContextLengthExceededError: It is too long.
        """
        max_tokens = self._ending.max_tokens
        # With `max_tokens` of 0 the prompt may fill the whole window.
        shortest_answer = 0 if max_tokens == 0 else 1
        if tokens + shortest_answer <= self._length:
            return
        for answer in (max_tokens or shortest_answer, shortest_answer):
            self._check_beam_width(tokens + answer)
        raise ContextLengthExceededError.of_prompt(field, tokens, self._longest)

    def max_tokens(self, prompt_tokens: int, *, strict: bool) -> int:
        """Return the maximum number of tokens to generate after a prompt that fits.

        Args:
            prompt_tokens: The length of the prompt.
            strict: Whether to refuse a `max_tokens` beyond the room left. It is cut otherwise,
                because agents send the same large number with every request.

        Raises:
            ContextLengthExceededError: The answer that the request asks for does not fit.
        """
        ending, left = self._ending, self._length - prompt_tokens
        # The prompt was truncated to make room for the answer: if there is none, it cannot fit.
        for_answer = self._truncation is not None and self._truncation.tokens is None
        if ending.max_tokens is not None and ending.max_tokens > left and (strict or for_answer):
            self._check_beam_width(prompt_tokens + ending.max_tokens)
            raise ContextLengthExceededError.of_answer(
                ending.max_tokens_field, ending.max_tokens, prompt_tokens, self._length
            )
        if ending.min_tokens > left:
            raise ContextLengthExceededError.of_answer(
                FieldPath.of("min_tokens"), ending.min_tokens, prompt_tokens, self._length
            )
        if ending.max_tokens is not None:
            return min(ending.max_tokens, left)
        # The model's default is a preference and never makes a request fail.
        return min(max(self._default_max_tokens or left, ending.min_tokens), left)

    def _check_beam_width(self, tokens: int) -> None:
        """Refuse the width of a search in which `tokens` do not fit, where a narrower one would do.

        Raises:
            ContextLengthExceededError: Names the width that would do.
        """
        beams = self._beams
        if beams is None:
            return
        lengths = self._search_lengths[: beams.width]
        if fitting := sum(length >= tokens for length in lengths):
            raise ContextLengthExceededError.of_search(
                beams.field, beams.width, fitting, lengths[-1]
            )
