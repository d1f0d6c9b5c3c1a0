"""Texts that mean something to a tokenizer, and how they stay text where a caller wrote them.

A tokenizer turns the text of a special token, such as `<|im_end|>`, into the token wherever
it stands. Written by a caller it is split by a mark that is not a character, at which the
rendered prompt is cut.
"""

from __future__ import annotations

import dataclasses
import json
import re
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.chat.arguments import parse_arguments
from ovchat_server.domain.chat import Role
from ovchat_server.domain.content import text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ovchat_server.chat.prompt import Conversation
    from ovchat_server.domain.chat import Message, Tool, ToolCall
    from ovchat_server.domain.content import Content
    from ovchat_server.domain.json_value import JsonObject, JsonValue


class SpecialTexts:
    """Finds and splits special texts in conversations."""

    def __init__(self, control: Collection[str], markup: Collection[str]) -> None:
        """Split `control` in all messages; `markup` in all but an assistant's own text."""
        self._control = _pattern({*control})
        self._all = _pattern({*control, *markup})

    def stand_in(self, strings: Iterable[str]) -> bool:
        """Return whether there is one in any of some strings."""
        return any(self._all.search(text) for text in strings)

    def disarm(self, conversation: Conversation, mark: str) -> Conversation:
        """Return a conversation with `mark` inside each."""
        return dataclasses.replace(
            conversation,
            messages=[self._disarm_message(message, mark) for message in conversation.messages],
            tools=[self._disarm_tool(tool, mark) for tool in conversation.tools],
            arguments=self._disarm_object(conversation.arguments, mark),
            documents=[self._disarm_object(item, mark) for item in conversation.documents],
        )

    def _disarm_message(self, message: Message, mark: str) -> Message:
        # An assistant's turn is the model's own text, where markup is what it was.
        pattern = self._control if message.role is Role.ASSISTANT else self._all
        return dataclasses.replace(
            message,
            content=_disarm_content(message.content, pattern, mark),
            name=_split(message.name, self._all, mark),
            tool_call_id=_split(message.tool_call_id, self._all, mark),
            reasoning_content=_split(message.reasoning_content, self._all, mark),
            tool_calls=tuple(self._disarm_call(call, mark) for call in message.tool_calls),
        )

    def _disarm_call(self, call: ToolCall, mark: str) -> ToolCall:
        # Escaped in the JSON a token does not show, but the template gets the object.
        arguments = parse_arguments(call.arguments)
        return dataclasses.replace(
            call,
            id=self._all.sub(partial(_with_mark, mark), call.id),
            name=self._all.sub(partial(_with_mark, mark), call.name),
            arguments=self._all.sub(partial(_with_mark, mark), call.arguments)
            if arguments is None
            else json.dumps(self._disarm_json(arguments, mark)),
        )

    def _disarm_tool(self, tool: Tool, mark: str) -> Tool:
        parameters = tool.parameters
        return dataclasses.replace(
            tool,
            description=_split(tool.description, self._all, mark),
            parameters=None if parameters is None else self._disarm_object(parameters, mark),
        )

    def _disarm_object(self, value: JsonObject, mark: str) -> JsonObject:
        return {
            self._all.sub(partial(_with_mark, mark), key): self._disarm_json(item, mark)
            for key, item in value.items()
        }

    def _disarm_json(self, value: JsonValue, mark: str) -> JsonValue:
        match value:
            case str():
                return self._all.sub(partial(_with_mark, mark), value)
            case list():
                return [self._disarm_json(item, mark) for item in value]
            case dict():
                return self._disarm_object(value, mark)
        return value


def _pattern(tokens: Collection[str]) -> re.Pattern[str]:
    # Without alternatives the pattern would match everywhere; (?!) matches nowhere.
    longest_first = sorted((token for token in tokens if len(token) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def _with_mark(mark: str, match: re.Match[str]) -> str:
    token = match.group()
    # There may be more in it: Qwen's tag of an image is three tokens.
    return token[0] + mark + match.re.sub(partial(_with_mark, mark), token[1:])


def _split(text: str | None, pattern: re.Pattern[str], mark: str) -> str | None:
    return None if text is None else pattern.sub(partial(_with_mark, mark), text)


def _disarm_content(content: Content, pattern: re.Pattern[str], mark: str) -> Content:
    split = partial(pattern.sub, partial(_with_mark, mark))
    parts = tuple(split(part) if isinstance(part, str) else part for part in content)
    if not any(pattern.search(text) for text in _joined(parts)):
        return parts
    # One begins in a text and ends in another.
    return tuple(mark + part if isinstance(part, str) else part for part in parts)


def _joined(content: Content) -> Iterator[str]:
    """Yield the texts of a content in the ways in which templates may show them joined."""
    yield text_of(content)
    if len(content) > 1:
        # Templates may strip texts, and show images in another place than between them.
        yield "".join(part.strip() for part in content if isinstance(part, str))


def callers_strings(conversation: Conversation) -> Iterator[str]:
    """Yield all text that comes from the caller."""
    for message in conversation.messages:
        yield from _strings_of_message(message)
    for tool in conversation.tools:
        yield tool.description or ""
        yield from _strings_of_json(tool.parameters)
    yield from _strings_of_json(conversation.arguments)
    for document in conversation.documents:
        yield from _strings_of_json(document)


def _strings_of_message(message: Message) -> Iterator[str]:
    yield from filter(
        None,
        (
            *_joined(message.content),
            message.name,
            message.tool_call_id,
            message.reasoning_content,
        ),
    )
    for call in message.tool_calls:
        yield from (call.id, call.name, call.arguments)
        yield from _strings_of_json(parse_arguments(call.arguments))


def _strings_of_json(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings_of_json(item)
        case dict():
            for key, item in value.items():
                yield key
                yield from _strings_of_json(item)
