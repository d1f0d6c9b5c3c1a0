"""Writing the messages of a chat, as turns of the user and of the assistant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.chat import SYSTEM_ROLES, Role
from ovchat_server.domain.content import Image
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.anthropic.images import image_block

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.domain.chat import Message, ToolCall
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.providers.body import Body


def add_messages(body: Body, messages: Sequence[Message]) -> None:
    """Add the conversation.

    All system messages stand before it, wherever they stood: older models know no others, and
    what a user says has less weight. So do Anthropic's own endpoint of OpenAI's API and LiteLLM.
    """
    system: list[JsonValue] = []
    turns: list[tuple[str, list[JsonValue]]] = []
    for index, message in enumerate(messages):
        path = FieldPath.of("messages", index)
        _ignore(body, path, message)
        blocks: list[JsonValue] = [*_blocks(body, path, message)]
        if message.role in SYSTEM_ROLES:
            system += blocks
            continue
        role = str(Role.ASSISTANT if message.role is Role.ASSISTANT else Role.USER)
        if turns and turns[-1][0] == role:
            # The results of several calls have to be in one turn.
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    if not turns:
        body.refuse("messages", "must say something, besides what the system says, to be answered")
    written: list[JsonValue] = [{"role": role, "content": blocks} for role, blocks in turns]
    body.add({"system": system or None, "messages": written})


def _ignore(body: Body, path: FieldPath, message: Message) -> None:
    # Reasoning is taken back only with a signature, which OpenAI's API has no place for.
    reasoning, name = path / "reasoning_content", path / "name"
    # Of a tool it is the function's, which its call tells.
    author = None if message.role is Role.TOOL else message.name
    body.ignore({str(reasoning): message.reasoning_content, str(name): author})


def _blocks(body: Body, path: FieldPath, message: Message) -> Iterator[JsonObject]:
    content = list(_content(body, message))
    if message.role is not Role.TOOL:
        yield from content
    else:
        result: JsonObject = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        yield {**result, "content": [*content]} if content else result
    for number, call in enumerate(message.tool_calls):
        yield _call(body, path / "tool_calls" / number, call)


def _content(body: Body, message: Message) -> Iterator[JsonObject]:
    for part in message.content:
        if isinstance(part, Image):
            if message.role not in (Role.USER, Role.TOOL):
                complaint = f"cannot be seen in a message of the {message.role}"
                body.refuse(part.field, complaint, "unsupported_value")
            yield image_block(body, part)
        elif part:
            # It takes no empty texts.
            yield {"type": "text", "text": part}


def _call(body: Body, path: FieldPath, call: ToolCall) -> JsonObject:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": _arguments(body, path / "function" / "arguments", call.arguments),
    }


def _arguments(body: Body, path: FieldPath, text: str) -> JsonObject:
    try:
        return msgspec.json.decode(text, type=dict)
    except (msgspec.DecodeError, RecursionError):
        body.refuse(path, "must be the text of a JSON object to be understood", "invalid_value")
        return {}
