"""From a conversation to the tokens of a prompt, in which nobody can forge a turn.

A tokenizer turns the text of a control token, such as `<|im_end|>`, into the token wherever
it stands. Written by a caller it must stay text, so it is split by a mark that is no
character; the rendered prompt is cut at the marks and each piece tokenised by itself.
Nothing else about the tokens changes.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ovchat_server.api.chat import Role
from ovchat_server.api.errors import ContextLengthExceededError, InvalidRequestError, Violation
from ovchat_server.chat.arguments import parse_arguments

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ovchat_server.api.chat import Message, Tool, ToolCall
    from ovchat_server.api.json_value import JsonValue
    from ovchat_server.chat.template import ChatTemplate

# Unicode's noncharacters: never part of text that is meant to be exchanged.
MARKS = tuple(chr(code) for code in range(0xFDD0, 0xFDF0))


class PromptTokenizer(Protocol):
    """What rendering needs of a tokenizer."""

    @property
    def control_tokens(self) -> Collection[str]:
        """Tokens that structure the conversation and never show in text."""
        ...

    @property
    def markup_tokens(self) -> Collection[str]:
        """Tokens of their own that may show in text, such as `<tool_call>`."""
        ...

    def encode(self, text: str) -> list[int]:
        """The tokens of `text`, nothing added."""
        ...

    def fewest_tokens(self, text: str) -> int:
        """How many tokens `text` has at the least."""
        ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation."""

    text: str
    tokens: tuple[int, ...]


class PromptRenderer:
    """Renders conversations for one model."""

    def __init__(self, template: ChatTemplate, tokenizer: PromptTokenizer) -> None:
        """Render with `template`, tokenise with `tokenizer`."""
        self._template = template
        self._tokenizer = tokenizer
        control = set(tokenizer.control_tokens)
        self._control = _pattern(control)
        self._all = _pattern(control | set(tokenizer.markup_tokens))

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        arguments: Mapping[str, JsonValue] | None = None,
        most_tokens: int = sys.maxsize,
    ) -> Prompt:
        """The prompt of a conversation.

        Args:
            messages: The conversation.
            tools: What the model may call.
            arguments: Further variables of the template.
            most_tokens: A text that surely has more is not tokenised.

        Raises:
            ContextLengthExceededError: The prompt surely has more than `most_tokens`.
            InvalidRequestError: The template refuses it, or it is nested too deeply.
        """
        try:
            pieces = self._render(messages, tools, arguments or {})
        except RecursionError as error:
            complaint = "messages, tools or chat_template_kwargs are nested too deeply."
            raise InvalidRequestError.of([Violation("tools", complaint)]) from error
        fewest = sum(map(self._tokenizer.fewest_tokens, pieces))
        if fewest > most_tokens:
            raise ContextLengthExceededError.of_messages(fewest, most_tokens)
        tokens = (token for piece in pieces for token in self._tokenizer.encode(piece))
        return Prompt("".join(pieces), tuple(tokens))

    def _render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        arguments: Mapping[str, JsonValue],
    ) -> list[str]:
        """The text of the prompt, cut where a caller wrote a control token."""
        strings = list(_strings(messages, tools, arguments))
        if not any(self._all.search(text) for text in strings):
            return [self._template.render(messages, tools, arguments)]
        mark = next((mark for mark in MARKS if not any(mark in text for text in strings)), None)
        if mark is None:
            complaint = "messages hold control tokens and every Unicode noncharacter."
            raise InvalidRequestError.of([Violation("messages", complaint)])
        text = self._template.render(
            [self._disarm_message(message, mark) for message in messages],
            [self._disarm_tool(tool, mark) for tool in tools],
            {name: self._disarm_json(value, mark) for name, value in arguments.items()},
        )
        return text.split(mark)

    def _disarm_message(self, message: Message, mark: str) -> Message:
        # An assistant's turn is the model's own text, where markup is what it was.
        pattern = self._control if message.role is Role.ASSISTANT else self._all
        return dataclasses.replace(
            message,
            content=_split(message.content, pattern, mark),
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
        parameters = self._disarm_json(tool.parameters, mark)
        return dataclasses.replace(
            tool,
            description=_split(tool.description, self._all, mark),
            parameters=parameters if isinstance(parameters, dict) else None,
        )

    def _disarm_json(self, value: JsonValue, mark: str) -> JsonValue:
        match value:
            case str():
                return self._all.sub(partial(_with_mark, mark), value)
            case list():
                return [self._disarm_json(item, mark) for item in value]
            case dict():
                return {
                    self._all.sub(partial(_with_mark, mark), key): self._disarm_json(item, mark)
                    for key, item in value.items()
                }
        return value


def _pattern(tokens: Collection[str]) -> re.Pattern[str]:
    # Without alternatives the pattern would match everywhere; (?!) matches nowhere.
    longest_first = sorted((token for token in tokens if len(token) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


def _with_mark(mark: str, match: re.Match[str]) -> str:
    token = match.group()
    return token[0] + mark + token[1:]


def _split(text: str | None, pattern: re.Pattern[str], mark: str) -> str | None:
    return None if text is None else pattern.sub(partial(_with_mark, mark), text)


def _strings(
    messages: Sequence[Message], tools: Sequence[Tool], arguments: Mapping[str, JsonValue]
) -> Iterator[str]:
    """All text that comes from the caller."""
    for message in messages:
        yield from _strings_of_message(message)
    for tool in tools:
        yield tool.description or ""
        yield from _strings_of_json(tool.parameters)
    yield from _strings_of_json(dict(arguments))


def _strings_of_message(message: Message) -> Iterator[str]:
    yield from filter(
        None, (message.content, message.name, message.tool_call_id, message.reasoning_content)
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
