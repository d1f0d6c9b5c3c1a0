"""Rendering a conversation as the tokens of a prompt, in which no caller can forge a message.

A tokenizer turns the text of a special token, such as `<|im_end|>`, into the token wherever
it stands. Written by a caller it must stay text, so it is split by a mark that is not a
character; the rendered prompt is cut at the marks and each piece tokenized by itself.
Nothing else about the tokens changes.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ovchat_server.chat.arguments import parse_arguments
from ovchat_server.domain.chat import PromptEnding, Role
from ovchat_server.domain.content import text_of
from ovchat_server.domain.errors import ContextLengthExceededError, InvalidRequestError, Violation
from ovchat_server.domain.field_path import ErrorText, FieldPath

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ovchat_server.chat.template import ChatTemplate
    from ovchat_server.domain.chat import Message, Tool, ToolCall
    from ovchat_server.domain.content import Content, ContentPart
    from ovchat_server.domain.json_value import JsonObject, JsonValue

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
        """Return the tokens of `text`, without adding special tokens."""
        ...

    def fewest_tokens(self, text: str) -> int:
        """Return a lower bound of the number of tokens of `text`."""
        ...


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """A rendered conversation."""

    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What to render.

    Attributes:
        tools: The tools that the model may call.
        arguments: Further variables of the template.
        documents: The documents for templates that support retrieval.
        ending: How the prompt ends.
    """

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    arguments: JsonObject = field(default_factory=dict)
    documents: Sequence[JsonObject] = ()
    ending: PromptEnding = PromptEnding.ASSISTANT_TURN


class PromptRenderer:
    """Renders conversations for one model."""

    def __init__(
        self,
        template: ChatTemplate,
        tokenizer: PromptTokenizer,
        rewrite: Callable[[Conversation], Conversation] | None = None,
    ) -> None:
        """Render with `template`, which gets what `rewrite` returns; tokenize with `tokenizer`."""
        self._template = template
        self._tokenizer = tokenizer
        self._rewrite = rewrite
        control = set(tokenizer.control_tokens)
        self._control = _pattern(control)
        self._all = _pattern(control | set(tokenizer.markup_tokens))

    def render(self, conversation: Conversation, most_tokens: int | None = None) -> TokenizedPrompt:
        """Render a conversation and tokenize it.

        Args:
            conversation: What to render.
            most_tokens: The maximum number of tokens. A text that must have more of them is not
                tokenized.

        Raises:
            ContextLengthExceededError: The prompt must have more than `most_tokens`.
            InvalidRequestError: The template refuses it, or it is nested too deeply.
        """
        try:
            pieces = self._render(conversation)
        except RecursionError as error:
            messages, tools, arguments = map(
                FieldPath.of, ("messages", "tools", "chat_template_kwargs")
            )
            text = ErrorText.of(messages, ", ", tools, " or ", arguments, " are nested too deeply.")
            raise InvalidRequestError.of([Violation(tools, text)]) from error
        # A piece is at least one token: a text of nothing but special tokens has many.
        fewest = sum(max(self._tokenizer.fewest_tokens(piece), 1) for piece in pieces if piece)
        if most_tokens is not None and fewest > most_tokens:
            raise ContextLengthExceededError.of_prompt("messages", fewest, most_tokens)
        tokens = (token for piece in pieces for token in self._tokenizer.encode(piece))
        return TokenizedPrompt("".join(pieces), tuple(tokens))

    def _render(self, conversation: Conversation) -> list[str]:
        """Return the text of the prompt, cut where a caller wrote a special token."""
        strings = list(_strings(conversation))
        if not any(self._all.search(text) for text in strings):
            return [self._apply_template(conversation)]
        mark = next((mark for mark in MARKS if not any(mark in text for text in strings)), None)
        if mark is None:
            complaint = "hold control tokens and every Unicode noncharacter."
            raise InvalidRequestError.about("messages", complaint)
        disarmed = Conversation(
            [self._disarm_message(message, mark) for message in conversation.messages],
            [self._disarm_tool(tool, mark) for tool in conversation.tools],
            self._disarm_object(conversation.arguments, mark),
            [self._disarm_object(document, mark) for document in conversation.documents],
            conversation.ending,
        )
        return self._apply_template(disarmed).split(mark)

    def _apply_template(self, conversation: Conversation) -> str:
        if self._rewrite is not None:
            conversation = self._rewrite(conversation)
        return self._template.render(
            conversation.messages,
            conversation.tools,
            conversation.arguments,
            documents=conversation.documents,
            ending=conversation.ending,
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
    return token[0] + mark + token[1:]


def _split(text: str | None, pattern: re.Pattern[str], mark: str) -> str | None:
    return None if text is None else pattern.sub(partial(_with_mark, mark), text)


def _disarm_content(content: Content, pattern: re.Pattern[str], mark: str) -> Content:
    # Texts in a row are joined as the template gets them: a token may have a line break in it.
    parts: list[ContentPart] = []
    for is_text, group in itertools.groupby(content, lambda part: isinstance(part, str)):
        row = tuple(group)
        parts += (pattern.sub(partial(_with_mark, mark), text_of(row)),) if is_text else row
    return tuple(parts)


def _strings(conversation: Conversation) -> Iterator[str]:
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
        None, (message.text, message.name, message.tool_call_id, message.reasoning_content)
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
