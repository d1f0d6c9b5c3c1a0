"""Writing the messages of a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import Role
from ovchat_server.domain.content import Image
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.openai.image_part import image_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import Message, ToolCall
    from ovchat_server.domain.content import ContentPart
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.providers.body import Body


def add_messages(body: Body, messages: Sequence[Message]) -> None:
    """Add the conversation."""
    body.add({"messages": [_message(body, index, item) for index, item in enumerate(messages)]})


def _message(body: Body, index: int, message: Message) -> JsonObject:
    # OpenAI's models take either for the other, and others know no developer.
    role = Role.SYSTEM if message.role is Role.DEVELOPER else message.role
    fields: JsonObject = {"role": str(role), "content": _content(body, message)}
    if message.name is not None:
        fields["name"] = message.name
    if message.tool_calls:
        fields["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    if body.vllm_parameters and message.reasoning_content is not None:
        fields["reasoning_content"] = message.reasoning_content
    else:
        reasoning = FieldPath.of("messages", index, "reasoning_content")
        body.ignore({str(reasoning): message.reasoning_content})
    return fields


def _content(body: Body, message: Message) -> JsonValue:
    """Return a string where it is one: some servers take nothing else."""
    match message.content:
        case ():
            return None if message.tool_calls else ""
        case (str(text),):
            return text
    return [_part(body, part) for part in message.content]


def _part(body: Body, part: ContentPart) -> JsonObject:
    if isinstance(part, Image):
        return image_part(body, part)
    return {"type": "text", "text": part}


def _call(call: ToolCall) -> JsonObject:
    function: JsonObject = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
