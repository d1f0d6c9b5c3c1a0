"""What reading a chat and reading a text completion have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ovchat_server.domain.completion import FinishReason, Usage
from ovchat_server.providers.kind import BadAnswerError, ReportedError
from ovchat_server.providers.openai.errors import read_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.providers.openai import wire

T = TypeVar("T")

DONE = b"[DONE]"
# Whatever else ends a choice, the model did. "model_length" is Mistral's.
FINISH_REASONS = {
    "length": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}
# vLLM's and OpenRouter's.
FAILURES = ("abort", "error")


class OpenAiReader(ABC):
    """Reads one answer; see AnswerReader."""

    def __init__(self, choices: int) -> None:
        """Read an answer of so many choices."""
        self.usage = Usage(0, 0)
        self._open = set(range(choices))
        self._choices = choices
        self._done = False

    @property
    def ended(self) -> bool:
        """See AnswerReader."""
        return self._done and not self._open

    def whole(self, body: bytes) -> Iterable[ChunkChoice]:
        """See AnswerReader. An error in the place of an answer is one, too."""
        chunks = self._read(body)
        self._done = True
        return chunks

    def event(self, data: bytes) -> Iterable[ChunkChoice]:
        """See AnswerReader."""
        if data.strip() == DONE:
            self._done = True
            return ()
        return self._read(data)

    @abstractmethod
    def _read(self, data: bytes) -> Sequence[ChunkChoice]:
        """Read the object of an answer, or of a part of one."""

    def _goes_on(self, choice: wire.Choice) -> bool:
        """Say whether there may be something new of a choice, which ends with its finish reason.

        Raises:
            BadAnswerError: There is no such choice.
        """
        if not 0 <= choice.index < self._choices:
            raise BadAnswerError(f"choice {choice.index} is not one of {self._choices}")
        goes_on = choice.index in self._open
        if choice.finish_reason:
            self._open.discard(choice.index)
        return goes_on

    def _take_usage(self, told: wire.Usage | None) -> None:
        if told is None:
            return
        prompt, completion = told.prompt_tokens_details, told.completion_tokens_details
        self.usage = Usage(
            prompt_tokens=told.prompt_tokens,
            completion_tokens=told.completion_tokens or 0,
            reasoning_tokens=completion.reasoning_tokens if completion else None,
            cached_tokens=prompt.cached_tokens if prompt else None,
            image_tokens=(prompt.image_tokens or 0) if prompt else 0,
            accepted_tokens=completion.accepted_prediction_tokens if completion else None,
            rejected_tokens=completion.rejected_prediction_tokens if completion else None,
        )


def decode(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return what a text in JSON is.

    Raises:
        BadAnswerError: It is something else.
    """
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswerError(str(error).removesuffix(".")) from error


def refuse_error(data: bytes, answer: wire.ChatAnswer | wire.TextAnswer) -> None:
    """Check that an answer is none of the objects that are errors, or nothing at all.

    Raises:
        BadAnswerError: It is nothing.
        ReportedError: It is an error.
    """
    nothing = answer.choices is None and answer.usage is None
    if answer.error is not None or (nothing and answer.message is not None):
        raise ReportedError(read_error(data).message or "no reason")
    if nothing:
        raise BadAnswerError("it has neither choices nor usage")


def finish_reason(given: str | None, *, called: bool) -> FinishReason | None:
    """Return why a choice ended; None if it did not.

    Args:
        given: As the provider has it.
        called: Whether the choice has calls: some servers say `stop` then, as OpenAI does behind
            a call by name.

    Raises:
        BadAnswerError: The provider gave the choice up.
    """
    if not given:
        return None
    if given in FAILURES:
        raise BadAnswerError(f"a choice has the finish_reason {given!r}")
    return FINISH_REASONS.get(given, FinishReason.TOOL_CALLS if called else FinishReason.STOP)
