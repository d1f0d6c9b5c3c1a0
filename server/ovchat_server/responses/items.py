"""The items of an output: each grows by a block, and says so in events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ovchat_server.domain.responses.item_ids import item_id

if TYPE_CHECKING:
    from ovchat_server.domain.blocks import Block
    from ovchat_server.domain.json_value import JsonObject

# Its type, and its fields but for the type and the number.
Event: TypeAlias = "tuple[str, JsonObject]"


class Status(StrEnum):
    """How far a response or an item of it is; the values are OpenAI's."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class OutputItem(ABC):
    """An item that grows.

    Attributes:
        type: Its type.
        text_events: What the types of the events about its text begin with.
    """

    type: ClassVar[str]
    text_events: ClassVar[str]

    def __init__(self, response_id: str, index: int) -> None:
        """Make an empty item.

        Args:
            response_id: The id of the response. That of the item follows from it.
            index: Its place in the output.
        """
        self._id = item_id(self.type, response_id, index)
        self._index = index
        self._texts: list[str] = []

    def open(self) -> list[Event]:
        """Return the events that begin it."""
        return [self._item_event("added", Status.IN_PROGRESS)]

    def add(self, block: Block) -> list[Event]:
        """Add what is new, and return the events that say so."""
        return self._add_text(block.text)

    def close(self, status: Status) -> list[Event]:
        """Return the events that end it."""
        return [
            self._event(f"{self.text_events}.done", self._text_fields()),
            self._item_event("done", status),
        ]

    def whole(self, status: Status) -> JsonObject:
        """Return the item as it is now."""
        return {"id": self._id, "type": self.type, "status": status, **self._fields(status)}

    @abstractmethod
    def _fields(self, status: Status) -> JsonObject:
        """Return the fields of this kind of item."""

    @abstractmethod
    def _text_fields(self) -> JsonObject:
        """Return its text for the event that ends it."""

    def _add_text(self, text: str, others: JsonObject | None = None) -> list[Event]:
        if not text:
            return []
        self._texts.append(text)
        return [self._event(f"{self.text_events}.delta", {"delta": text, **(others or {})})]

    @property
    def _text(self) -> str:
        return "".join(self._texts)

    def _event(self, kind: str, fields: JsonObject) -> Event:
        return kind, {"item_id": self._id, "output_index": self._index, **fields}

    def _item_event(self, what: str, status: Status) -> Event:
        fields: JsonObject = {"output_index": self._index, "item": self.whole(status)}
        return f"response.output_item.{what}", fields
