"""Tools on models whose chat template knows none: described to the model in the messages.

Description, calls and results are written as Qwen's templates write them, which is Hermes's form;
so all of it is text of the messages, and a model calls as it has read.
"""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.chat.content_probe import PROBE
from ovchat_server.chat.dialects import hermes
from ovchat_server.chat.template import call_fields, tool_fields
from ovchat_server.chat.template_sandbox import tojson
from ovchat_server.domain.chat import SYSTEM_ROLES, Message, PromptEnding, Role, first_turn
from ovchat_server.domain.content import text_of
from ovchat_server.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ovchat_server.chat.dialects.registry import Dialects
    from ovchat_server.chat.prompt import Conversation
    from ovchat_server.chat.template import ChatTemplate
    from ovchat_server.domain.chat import Tool
    from ovchat_server.domain.content import Content, ContentPart

DESCRIPTION = """\
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
BLANK_LINE = ("",)


def tool_description(
    template: ChatTemplate, dialects: Dialects
) -> Callable[[Conversation], Conversation] | None:
    """Return what describes tools to a model; None if its template does, or it calls otherwise."""
    if template.knows_tools or dialects.tools is not hermes.DIALECT:
        return None
    return partial(_described, in_system=_renders_system(template))


def _renders_system(template: ChatTemplate) -> bool:
    """Return whether a template neither refuses nor drops a system message."""
    try:
        text = template.render([Message(Role.SYSTEM, (PROBE,)), Message(Role.USER, ("Hi",))])
    except InvalidRequestError:
        return False
    return PROBE in text


def _described(conversation: Conversation, *, in_system: bool) -> Conversation:
    """Return a conversation without tools, calls and results that says the same in its text."""
    messages = list(conversation.messages)
    if conversation.ending is PromptEnding.FINAL_MESSAGE and messages:
        # Its text is continued: what would stand behind it is cut off, whoever writes it.
        messages[-1] = dataclasses.replace(messages[-1], tool_calls=())
    messages = _without_results(map(_without_calls, messages))
    if conversation.tools:
        description = _description(conversation.tools)
        messages = (_in_system if in_system else _in_first_turn)(messages, description)
    return dataclasses.replace(conversation, messages=messages, tools=())


def _description(tools: Iterable[Tool]) -> str:
    return DESCRIPTION.format(tools="\n".join(tojson(tool_fields(tool)) for tool in tools))


def _without_calls(message: Message) -> Message:
    """Return a message with its calls in its text."""
    calls = [
        f"{hermes.OPEN}\n{tojson(call_fields(call)['function'])}\n{hermes.CLOSE}"
        for call in message.tool_calls
    ]
    return _written(message, message.content, tuple(calls)) if calls else message


def _without_results(messages: Iterable[Message]) -> list[Message]:
    """Return messages with the results of calls as a user's.

    Results that follow each other, and what the user says to them, are one message: there are
    templates in which users and assistants must take turns.
    """
    turns: list[Message] = []
    after_result = False
    for message in messages:
        turn, is_result = message, message.role is Role.TOOL
        if is_result:
            content = ("<tool_response>", *(message.content or ("",)), "</tool_response>")
            turn = Message(Role.USER, _in_rows(content))
        if after_result and turn.role is Role.USER:
            turn = _written(turn, turns.pop().content, turn.content)
        turns.append(turn)
        after_result = is_result
    return turns


def _in_system(messages: Sequence[Message], description: str) -> list[Message]:
    """Return messages that begin with a system message with the description."""
    if messages and messages[0].role in SYSTEM_ROLES:
        system = _written(messages[0], messages[0].content, (description,), between=BLANK_LINE)
        return [system, *messages[1:]]
    return [Message(Role.SYSTEM, (description,)), *messages]


def _in_first_turn(messages: Sequence[Message], description: str) -> list[Message]:
    """Return messages whose first turn is a user's that begins with the description."""
    # A system message stays, for the template to refuse.
    first = first_turn(messages)
    before, after = messages[:first], messages[first:]
    if after and after[0].role is Role.USER:
        turn = _written(after[0], (description,), after[0].content, between=BLANK_LINE)
        return [*before, turn, *after[1:]]
    return [*before, Message(Role.USER, (description,)), *after]


def _written(message: Message, *contents: Content, between: Content = ()) -> Message:
    """Return a message with several contents, empty ones left out, and which makes no calls."""
    parts: list[ContentPart] = []
    for content in filter(any, contents):
        parts += (*between, *content) if parts else content
    return dataclasses.replace(message, content=_in_rows(parts), tool_calls=())


def _in_rows(parts: Iterable[ContentPart]) -> Content:
    """Return texts that follow each other as one: templates may show parts without line breaks."""
    rows: list[ContentPart] = []
    for is_text, group in itertools.groupby(parts, lambda part: isinstance(part, str)):
        row = tuple(group)
        rows += (text_of(row),) if is_text else row
    return tuple(rows)
