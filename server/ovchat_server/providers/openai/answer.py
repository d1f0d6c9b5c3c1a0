"""What reading a chat and reading a text completion have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ovchat_server.domain.completion import FinishReason, Usage
from ovchat_server.providers.error_body import read_error
from ovchat_server.providers.kind import BadAnswerError, ReportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.providers.openai import wire

DONE = b"[DONE]"
# Whatever else ends a choice, the model did. "model_length" is Mistral's.
FINISH_REASONS = {
    "length": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}
DETAILS = ("prompt_tokens_details", "completion_tokens_details")
# What the typed contract can say.
MAX_COUNT = 2**32 - 1
# vLLM's and OpenRouter's.
FAILURES = ("abort", "error")


class OpenAiReader(ABC):
    """Reads one answer; see AnswerReader.

    Attributes:
        usage: The tokens so far.
        ended: Whether the stream said that it has ended.
    """

    def __init__(self, choices: int) -> None:
        """Read an answer of so many choices."""
        self.usage = Usage(0, 0)
        self.ended = False
        self._choices = choices
        self._open = set(range(choices))
        # What ends a choice that does not say why.
        self._default_reason: str | None = None

    @property
    def complete(self) -> bool:
        """See AnswerReader."""
        return not self._open

    def whole(self, body: bytes) -> Iterable[ChunkChoice]:
        """See AnswerReader."""
        self._default_reason = "stop"
        chunks = self._read(body)
        self._end()
        return chunks

    def event(self, data: bytes) -> Iterable[ChunkChoice]:
        """See AnswerReader."""
        if data.strip() == DONE:
            self._end()
            return ()
        return self._read(data)

    @abstractmethod
    def _read(self, data: bytes) -> Sequence[ChunkChoice]:
        """Read the object of an answer, or of a part of one."""

    def _goes_on(self, choice: wire.Choice) -> bool:
        """Say whether there may be something new of a choice.

        Raises:
            BadAnswerError: There is no such choice.
        """
        if not 0 <= choice.index < self._choices:
            raise BadAnswerError(f"choice {choice.index} is not one of {self._choices}")
        return choice.index in self._open

    def _finish(self, choice: wire.Choice, *, called: bool = False) -> FinishReason | None:
        """Return why a choice ended; None if it did not.

        Args:
            choice: The choice.
            called: Whether it has calls: some servers say `stop` then, as OpenAI does behind a
                call by name.

        Raises:
            BadAnswerError: The provider gave the choice up.
        """
        given = choice.finish_reason or self._default_reason
        if not given:
            return None
        if given in FAILURES:
            raise BadAnswerError(f"a choice has the finish_reason {given!r}")
        self._open.discard(choice.index)
        return FINISH_REASONS.get(given, FinishReason.TOOL_CALLS if called else FinishReason.STOP)

    def _end(self) -> None:
        if self._open:
            # Some servers know of no more than one.
            raise BadAnswerError(f"{len(self._open)} of {self._choices} choices have no end")
        self.ended = True

    def _take_usage(self, told: object) -> None:
        if not (told and isinstance(told, dict)):
            return
        prompt, completion = (_inner(told, name) for name in DETAILS)
        self.usage = Usage(
            prompt_tokens=_count(told, "prompt_tokens") or 0,
            completion_tokens=_count(told, "completion_tokens") or 0,
            reasoning_tokens=_count(completion, "reasoning_tokens"),
            cached_tokens=_count(prompt, "cached_tokens"),
            image_tokens=_count(prompt, "image_tokens") or 0,
            accepted_tokens=_count(completion, "accepted_prediction_tokens"),
            rejected_tokens=_count(completion, "rejected_prediction_tokens"),
        )


def refuse_error(data: bytes, answer: wire.ChatAnswer | wire.TextAnswer) -> None:
    """Check that an answer is none of the objects that are errors.

    Raises:
        ReportedError: It is an error.
    """
    nothing = answer.choices is None and answer.usage is None
    # Some servers have an empty one in every answer.
    if answer.error or (nothing and answer.message):
        raise ReportedError(read_error(data).message or "no reason")


def _inner(told: object, name: str) -> object:
    return told.get(name) if isinstance(told, dict) else None


def _count(told: object, name: str) -> int | None:
    """Return a number of tokens; None if it is none."""
    count = _inner(told, name)
    return int(count) if isinstance(count, int | float) and 0 <= count <= MAX_COUNT else None
