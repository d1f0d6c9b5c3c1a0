"""From the items of `input` to the messages of a chat."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_core import from_json, to_json

from ovchat_server.domain.chat import Message, Role, ToolCall
from ovchat_server.domain.content import Image
from ovchat_server.domain.declared import Hosted
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.responses.items import (
    CallOutput,
    CustomCall,
    FunctionCall,
    ImagePart,
    ItemReference,
    MessageItem,
    ReasoningItem,
    TextPart,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.domain.content import Content
    from ovchat_server.domain.responses.items import Item, Part


def messages_of(items: Sequence[Item]) -> tuple[Message, ...]:
    """Return the messages that items are; what one answer consists of is one message.

    Left out is what hosted tools did, and what is referred to.
    """
    messages: list[Message] = []
    for message in _each(items):
        if messages and _continues(message, messages[-1]):
            messages[-1] = _joined(messages[-1], message)
        else:
            messages.append(message)
    return tuple(messages)


def said(answer: Message) -> Message:
    """Return an answer as it is in the conversation that goes on from it; see `messages_of`."""
    calls = tuple(replace(call, arguments=_whole(call.arguments)) for call in answer.tool_calls)
    return replace(answer, tool_calls=calls)


def _each(items: Sequence[Item]) -> Iterator[Message]:
    # The names of the functions, by the ids of their calls.
    called: dict[str, str] = {}
    for index, item in enumerate(items):
        field = FieldPath.of("input", index)
        match item:
            case MessageItem():
                yield Message(Role(item.role), _content(item.content, field / "content"))
            case FunctionCall() | CustomCall():
                called[item.call_id] = item.flat_name
                call = ToolCall(item.call_id, item.flat_name, _arguments(item))
                yield Message(Role.ASSISTANT, tool_calls=(call,))
            case CallOutput():
                yield Message(
                    Role.TOOL,
                    _content(item.output, field / "output"),
                    name=called.get(item.call_id),
                    tool_call_id=item.call_id,
                )
            case ReasoningItem():
                texts = [part.text for part in item.content or item.summary]
                if any(texts):
                    yield Message(Role.ASSISTANT, reasoning_content="\n".join(texts))
            case Hosted() | ItemReference():
                pass


def _arguments(call: FunctionCall | CustomCall) -> str:
    if isinstance(call, FunctionCall):
        return _whole(call.arguments)
    return to_json({"input": call.input}).decode()


def _whole(arguments: str) -> str:
    """Return arguments that were cut as far as they go: many chat templates need an object."""
    if not arguments:
        return "{}"
    with contextlib.suppress(ValueError):
        from_json(arguments)
        return arguments
    with contextlib.suppress(ValueError):
        return to_json(from_json(arguments, allow_partial="trailing-strings")).decode()
    return arguments


def _content(parts: Sequence[Part], field: FieldPath) -> Content:
    return tuple(_part(part, field / index) for index, part in enumerate(parts))


def _part(part: Part, field: FieldPath) -> str | Image:
    match part:
        case TextPart():
            return part.text
        case ImagePart():
            low_detail = part.detail == "low"
            return Image(part.image_url, low_detail=low_detail, field=field / "image_url")
    return part.refusal


def _continues(message: Message, last: Message) -> bool:
    """Return whether a message goes on with the answer that the last one is of.

    An answer is reasoning, then text, then calls.
    """
    if message.role is not Role.ASSISTANT or last.role is not Role.ASSISTANT:
        return False
    return bool(message.tool_calls) or not (last.content or last.tool_calls)


def _joined(last: Message, message: Message) -> Message:
    reasoning = filter(None, (last.reasoning_content, message.reasoning_content))
    return replace(
        last,
        reasoning_content="\n".join(reasoning) or None,
        content=last.content + message.content,
        tool_calls=last.tool_calls + message.tool_calls,
    )
