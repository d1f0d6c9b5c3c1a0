"""Rendering a conversation as the tokens of a prompt, in which no caller can forge a message.

The prompt is cut where a caller wrote a special token (see SpecialTexts) and where an image stands;
each piece is tokenized by itself. Nothing else about the tokens of the text changes.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ovchat_server.chat.special_texts import SpecialTexts, callers_strings
from ovchat_server.domain.chat import PromptEnding
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import ContextLengthExceededError, InvalidRequestError, Violation
from ovchat_server.domain.field_path import ErrorText, FieldPath

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ovchat_server.chat.template import ChatTemplate
    from ovchat_server.domain.chat import Message, Tool
    from ovchat_server.domain.json_value import JsonObject

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
    """A rendered conversation.

    Attributes:
        text: As the template writes it.
        image_starts: Where the tokens of each image begin, in the order of the messages.
    """

    text: str
    tokens: tuple[int, ...]
    image_starts: tuple[int, ...] = ()


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
        image_token: int = 0,
    ) -> None:
        """Make the renderer of a model.

        Args:
            template: The model's.
            tokenizer: The model's.
            rewrite: Changes conversations for the template.
            image_token: What stands for each token of an image.
        """
        self._template = template
        self._tokenizer = tokenizer
        self._rewrite = rewrite
        self._image_token = image_token
        control, markup = tokenizer.control_tokens, tokenizer.markup_tokens
        tags = {template.image_tag(with_tools=with_tools) for with_tools in (False, True)}
        # Only beside an image is its tag more than text.
        self._special = {tag: SpecialTexts({*control, tag.strip()}, markup) for tag in ("", *tags)}

    def render(
        self,
        conversation: Conversation,
        most_tokens: int | None = None,
        image_lengths: Sequence[int] = (),
        most_characters: int | None = None,
    ) -> TokenizedPrompt:
        """Render a conversation and tokenize it.

        Args:
            conversation: What to render.
            most_tokens: The maximum number of tokens. A text that must have more of them is not
                tokenized.
            image_lengths: How many tokens each image of the messages takes, in their order.
            most_characters: A longer text is not tokenized.

        Raises:
            ContextLengthExceededError: The prompt must have more than `most_tokens`, or has more
                than `most_characters`.
            InvalidRequestError: The template refuses it or does not show its images, or it is
                nested too deeply.
        """
        try:
            text, sections = self._render(conversation)
        except RecursionError as error:
            messages, tools, arguments = map(
                FieldPath.of, ("messages", "tools", "chat_template_kwargs")
            )
            said = ErrorText.of(messages, ", ", tools, " or ", arguments, " are nested too deeply.")
            raise InvalidRequestError.of([Violation(tools, said)]) from error
        if most_characters is not None and len(text) > most_characters:
            complaint = f"make a prompt of {len(text)} characters > {most_characters} maximum."
            code = ContextLengthExceededError.code
            raise ContextLengthExceededError.about("messages", complaint, code)
        # A piece is at least one token: a text of nothing but special tokens has many.
        pieces = filter(None, itertools.chain.from_iterable(sections))
        fewest = sum(max(self._tokenizer.fewest_tokens(piece), 1) for piece in pieces)
        fewest += sum(image_lengths)
        if most_tokens is not None and fewest > most_tokens:
            raise ContextLengthExceededError.of_prompt("messages", fewest, most_tokens)
        tokens: list[int] = []
        ends: list[int] = []
        for section, length in zip(sections, (*image_lengths, 0), strict=True):
            for piece in section:
                tokens += self._tokenizer.encode(piece)
            ends.append(len(tokens))
            tokens += [self._image_token] * length
        return TokenizedPrompt(text, tuple(tokens), tuple(ends[:-1]))

    def _render(self, conversation: Conversation) -> tuple[str, list[list[str]]]:
        """Return the text of the prompt, and its sections, between which images stand.

        A section is in pieces, cut where a caller wrote a special token.
        """
        images = [image for message in conversation.messages for image in message.images]
        tag = self._template.image_tag(with_tools=bool(conversation.tools)) if images else ""
        special = self._special[tag]
        strings = list(callers_strings(conversation))
        is_split, is_marked = special.stand_in(strings), len(images) > 0 and not tag
        free = (mark for mark in MARKS if not any(mark in text for text in strings))
        marks = list(itertools.islice(free, is_split + is_marked))
        if len(marks) < is_split + is_marked:
            complaint = "hold every Unicode noncharacter: at least two must not be used."
            raise InvalidRequestError.about("messages", complaint)
        if is_marked:
            tag = marks[-1]
            conversation = _with_images_as(tag, conversation)
        if is_split:
            conversation = special.disarm(conversation, marks[0])
        text = self._apply_template(conversation)
        sections = _cut(text, tag) if images else [text]
        if len(sections) != len(images) + 1:
            raise _unshown(images, len(sections) - 1)
        if not is_split:
            return text, [[section] for section in sections]
        mark = marks[0]
        return text.replace(mark, ""), [section.split(mark) for section in sections]

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


def _with_images_as(text: str, conversation: Conversation) -> Conversation:
    """Return a conversation for a template that knows only texts: each image is one."""
    messages = [
        dataclasses.replace(
            message,
            content=tuple(text if isinstance(part, Image) else part for part in message.content),
        )
        for message in conversation.messages
    ]
    return dataclasses.replace(conversation, messages=messages)


def _cut(text: str, tag: str) -> list[str]:
    """Return what stands between the tags of images; a template may have stripped one."""
    core = tag.strip()
    before, after = map(re.escape, tag.split(core, 1))
    return re.split(f"(?:{before})?{re.escape(core)}(?:{after})?", text)


def _unshown(images: Sequence[Image], shown: int) -> InvalidRequestError:
    # Which images a template shows can be told only if it shows none.
    field = "messages" if shown else images[0].field
    complaint = (
        f"cannot be put into the model's chat template: it shows {shown} of {len(images)} images."
    )
    return InvalidRequestError.about(field, complaint)
