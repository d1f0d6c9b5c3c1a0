"""What was asked and answered, as the JSON of OpenTelemetry's conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.content import Image
from ovchat_server.serving.recorded_content import CUT, MOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.recorded_content import RecordedContent

# What stands around each text, and each message, in characters.
AROUND: Final = 64
# Of a stop sequence, in characters.
MOST_OF_STOP: Final = 200
IMAGE: Final = "[image]"


def content_attributes(content: RecordedContent) -> dict[str, str | tuple[str, ...]]:
    """Return the attributes that have prompts and answers."""
    found: dict[str, str | tuple[str, ...]] = {}
    if content.request is not None:
        # The last messages are what was asked now: of a long conversation they are kept.
        room = _Room()
        asked = [room.message(item) for item in reversed(_messages(content.request)) if room.left]
        found["gen_ai.input.messages"] = _json(asked[::-1])
        if stop := content.request.generation.ending.stop:
            found["gen_ai.request.stop_sequences"] = tuple(text[:MOST_OF_STOP] for text in stop)
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
        self.left = max(0, self.left - AROUND)
        return {"role": message.role, "parts": [*self._parts(message)]}

    def _parts(self, message: Message) -> Iterator[dict[str, Any]]:
        if message.role is Role.TOOL:
            answered = self._cut(id=message.tool_call_id or "", response=message.text)
            yield {"type": "tool_call_response", **answered}
            return
        if message.reasoning_content:
            yield {"type": "reasoning", **self._cut(content=message.reasoning_content)}
        for part in message.content:
            if self.left:
                text = IMAGE if isinstance(part, Image) else part
                yield {"type": "text", **self._cut(content=text)}
        for call in message.tool_calls:
            if self.left:
                called = self._cut(id=call.id, name=call.name, arguments=call.arguments)
                yield {"type": "tool_call", **called}

    def _cut(self, **texts: str) -> dict[str, str]:
        """Return texts, or their beginning with a mark; then there is no room for another."""
        return {name: self._cut_text(text) for name, text in texts.items()}

    def _cut_text(self, text: str) -> str:
        if (left := self.left - AROUND - len(text)) > 0:
            self.left = left
            return text
        kept, self.left = text[: self.left], 0
        return kept + CUT
