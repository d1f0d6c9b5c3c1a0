"""From the blocks of messages to the messages of a chat."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from pydantic_core import to_json

from ovchat_server.domain.anthropic.blocks import (
    ImageBlock,
    RedactedThinking,
    TextBlock,
    Thinking,
    ToolResult,
    ToolUse,
)
from ovchat_server.domain.chat import Message, PromptEnding, Role, ToolCall
from ovchat_server.domain.content import Image
from ovchat_server.domain.declared import Hosted
from ovchat_server.domain.field_path import FieldPath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ovchat_server.domain.anthropic.blocks import AnyBlock, Shown
    from ovchat_server.domain.anthropic.body import MessageItem
    from ovchat_server.domain.content import Content, ContentPart

# Claude Code's, about itself. It changes with each request, and no prompt would begin as the one
# before it.
BILLING_HEADER = "x-anthropic-billing-header:"
ERROR = "Error: "


def messages_of(
    system: Sequence[TextBlock], items: Sequence[MessageItem], *, keep_billing_header: bool = False
) -> tuple[Message, ...]:
    """Return the messages that blocks are; those of neighbours of one role are one turn.

    Left out is what is empty, what hosted tools did, and what only Anthropic's service can read.

    Args:
        system: What is said before all messages.
        items: The messages.
        keep_billing_header: Whether Claude Code's first line stays.
    """
    first = [_Placed(Role.SYSTEM, FieldPath.of("system"), block) for block in system]
    if first and not keep_billing_header:
        first[0] = _without_billing_header(first[0])
    # The names of the functions, by the ids of their calls.
    called: dict[str, str] = {}
    messages: list[Message] = []
    placed = _reminding(filter(_says, (*first, *_each(items))))
    for role, turn in groupby(placed, lambda block: block.role):
        messages += _turn(role, list(turn), called)
    return tuple(messages)


def ending_of(messages: Sequence[Message]) -> PromptEnding:
    """Return how the prompt is to end: a last text of the assistant's is continued."""
    last = messages[-1] if messages else None
    if last and last.role is Role.ASSISTANT and last.content and not last.tool_calls:
        return PromptEnding.FINAL_MESSAGE
    return PromptEnding.ASSISTANT_TURN


@dataclass(frozen=True, slots=True)
class _Placed:
    role: Role
    field: FieldPath
    block: AnyBlock


def _each(items: Sequence[MessageItem]) -> Iterator[_Placed]:
    last = max((at for at, item in enumerate(items) if item.role == "user"), default=0)
    for index, item in enumerate(items):
        if item.clear_at == "next_user_message" and index < last:
            continue
        field = FieldPath.of("messages", index, "content")
        for number, block in enumerate(item.content):
            yield _Placed(Role(item.role), field / number, block)


def _without_billing_header(first: _Placed) -> _Placed:
    block = first.block
    if not isinstance(block, TextBlock) or not block.text.startswith(BILLING_HEADER):
        return first
    _, _, rest = block.text.partition("\n")
    return _Placed(first.role, first.field, TextBlock(text=rest.lstrip("\n")))


def _reminding(placed: Iterable[_Placed]) -> Iterator[_Placed]:
    """Have the user say what the system says amid the conversation.

    Many chat templates take system messages at the beginning only. The tags are Claude Code's own
    for it.
    """
    begun = False
    for each in placed:
        begun = begun or each.role is not Role.SYSTEM
        if begun and each.role is Role.SYSTEM and isinstance(each.block, TextBlock):
            text = f"<system-reminder>\n{each.block.text}\n</system-reminder>"
            yield _Placed(Role.USER, each.field, TextBlock(text=text))
        else:
            yield each


def _says(placed: _Placed) -> bool:
    match placed.block:
        case TextBlock(text=text) | Thinking(text=text):
            return text != ""
        case RedactedThinking() | Hosted():
            return False
    return True


def _turn(role: Role, turn: Sequence[_Placed], called: dict[str, str]) -> Iterator[Message]:
    """Yield the messages of a turn, the results of calls first.

    Args:
        role: Whose turn it is.
        turn: Its blocks.
        called: The names of the functions called until now; those of the turn are added.
    """
    content: list[ContentPart] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for placed in turn:
        match placed.block:
            case ToolResult() as result:
                yield Message(
                    Role.TOOL,
                    _outcome(result, placed.field / "content"),
                    name=called.get(result.tool_use_id),
                    tool_call_id=result.tool_use_id,
                )
            case ToolUse() as call:
                called[call.id] = call.name
                calls.append(ToolCall(call.id, call.name, to_json(call.input).decode()))
            case Thinking(text=text):
                thoughts.append(text)
            case RedactedThinking() | Hosted():
                pass
            case shown:
                content.append(_part(shown, placed.field))
    if content or calls or thoughts:
        yield Message(
            role,
            tuple(content),
            tool_calls=tuple(calls),
            reasoning_content="\n".join(thoughts) or None,
        )


def _outcome(result: ToolResult, field: FieldPath) -> Content:
    parts = tuple(_parts(result.content, field))
    if not result.is_error:
        return parts
    first = parts[0] if parts and isinstance(parts[0], str) else ""
    if first.startswith(ERROR):
        return parts
    return (ERROR + first, *(parts[1:] if first else parts))


def _parts(blocks: Iterable[Shown], field: FieldPath) -> Iterator[ContentPart]:
    for index, block in enumerate(blocks):
        if part := _part(block, field / index):
            yield part


def _part(block: Shown, field: FieldPath) -> ContentPart:
    if isinstance(block, ImageBlock):
        return Image(block.source.location, field=field / "source")
    return block.text
