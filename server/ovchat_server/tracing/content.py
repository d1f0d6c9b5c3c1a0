"""What was asked and answered, as the JSON of OpenTelemetry's conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.content import Image

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.recorded_content import RecordedContent

# Of the texts of one attribute, in characters.
MOST: Final = 64 << 10
# What stands around each of them.
AROUND: Final = 64
CUT: Final = "[cut]"
IMAGE: Final = "[image]"


def content_attributes(content: RecordedContent) -> dict[str, str]:
    """Return the attributes that have prompts and answers."""
    found = {}
    if content.request is not None:
        # The last messages are what was asked now: of a long conversation they are kept.
        room = _Room()
        asked = [room.message(item) for item in reversed(_messages(content.request)) if room.left]
        found["gen_ai.input.messages"] = _json(asked[::-1])
    if content.choices:
        room, choices = _Room(), content.choices.items()
        found["gen_ai.output.messages"] = _json(
            [
                room.message(choice.message)
                # A choice that did not end was broken off.
                | {"finish_reason": choice.finish_reason if index in content.ended else "error"}
                for index, collector in sorted(choices)
                for choice in [collector.choice()]
                if room.left
            ]
        )
    return found


def _messages(request: ChatRequest | TextRequest) -> Sequence[Message]:
    if isinstance(request, ChatRequest):
        return request.messages
    texts = (item if isinstance(item, str) else f"[{len(item)} tokens]" for item in request.prompts)
    return [Message(Role.USER, (text,)) for text in texts]


def _json(messages: Sequence[dict[str, Any]]) -> str:
    return msgspec.json.encode(messages).decode()


class _Room:
    """Writes messages as long as there is room in their attribute.

    Attributes:
        left: How many characters there is room for.
    """

    def __init__(self) -> None:
        self.left = MOST

    def message(self, message: Message) -> dict[str, Any]:
        """Return a message, of which the end may be cut."""
        return {"role": message.role, "parts": [*self._parts(message)]}

    def _parts(self, message: Message) -> Iterator[dict[str, Any]]:
        if message.role is Role.TOOL:
            said = {"id": message.tool_call_id, "response": self._cut(message.text)}
            yield {"type": "tool_call_response", **said}
            return
        if message.reasoning_content:
            yield {"type": "reasoning", "content": self._cut(message.reasoning_content)}
        for part in message.content:
            if self.left:
                text = IMAGE if isinstance(part, Image) else part
                yield {"type": "text", "content": self._cut(text)}
        for call in message.tool_calls:
            if self.left:
                called = {"id": call.id, "name": call.name, "arguments": self._cut(call.arguments)}
                yield {"type": "tool_call", **called}

    def _cut(self, text: str) -> str:
        """Return a text, or its beginning with a mark; then there is no room for another."""
        if (left := self.left - AROUND - len(text)) > 0:
            self.left = left
            return text
        kept, self.left = text[: self.left], 0
        return kept + CUT
