"""Items whose text is in a part: messages and reasoning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from ovchat_server.responses.items import OutputItem, Status
from ovchat_server.responses.logprobs import token_logprobs

if TYPE_CHECKING:
    from ovchat_server.domain.blocks import Block
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.responses.items import Event


class _OfPart(OutputItem, ABC):
    """An item of one part.

    Attributes:
        part_events: What the types of the events about its part begin with.
        part_index: The name of the part's place in the item.
    """

    part_events: ClassVar[str] = "response.content_part"
    part_index: ClassVar[str] = "content_index"

    def open(self) -> list[Event]:
        """Return the events that begin it and its part."""
        return [*super().open(), self._event(f"{self.part_events}.added", {"part": self._part()})]

    def close(self, status: Status) -> list[Event]:
        """Return the events that end its text, its part and it."""
        text_done, item_done = super().close(status)
        part_done = self._event(f"{self.part_events}.done", {"part": self._part()})
        return [text_done, part_done, item_done]

    @abstractmethod
    def _part(self) -> JsonObject:
        """Return its part as it is now."""

    def _parts(self, status: Status) -> list[JsonValue]:
        # While it is in progress, an event of its own adds the part.
        return [] if status is Status.IN_PROGRESS else [self._part()]

    def _text_fields(self) -> JsonObject:
        return {"text": self._text}

    def _event(self, kind: str, fields: JsonObject) -> Event:
        return super()._event(kind, {self.part_index: 0, **fields})


class OutputMessage(_OfPart):
    """A message."""

    type = "message"
    text_events = "response.output_text"

    def __init__(self, response_id: str, index: int) -> None:
        """Make a message without text; see OutputItem."""
        super().__init__(response_id, index)
        self._logprobs: list[JsonValue] = []

    def add(self, block: Block) -> list[Event]:
        """Add text and its tokens' log probabilities."""
        logprobs = token_logprobs(block.logprobs)
        self._logprobs += logprobs
        return self._add_text(block.text, {"logprobs": logprobs})

    def _fields(self, status: Status) -> JsonObject:
        return {"role": "assistant", "content": self._parts(status)}

    def _text_fields(self) -> JsonObject:
        return {"text": self._text, "logprobs": [*self._logprobs]}

    def _part(self) -> JsonObject:
        return {"type": "output_text", "annotations": [], **self._text_fields()}


class Reasoning(_OfPart):
    """Reasoning as it is."""

    type = "reasoning"
    text_events = "response.reasoning_text"

    def _fields(self, status: Status) -> JsonObject:
        return {"summary": [], "content": self._parts(status)}

    def _part(self) -> JsonObject:
        return {"type": "reasoning_text", "text": self._text}


class SummarizedReasoning(_OfPart):
    """Reasoning where its summary belongs: clients that ask for one show nothing else."""

    type = "reasoning"
    text_events = "response.reasoning_summary_text"
    part_events = "response.reasoning_summary_part"
    part_index = "summary_index"

    def _fields(self, status: Status) -> JsonObject:
        return {"summary": self._parts(status)}

    def _part(self) -> JsonObject:
        return {"type": "summary_text", "text": self._text}
