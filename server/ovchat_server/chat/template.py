"""A model's chat template, which renders messages as the text of a prompt."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import jinja2
from jinja2 import meta

from ovchat_server.chat.arguments import parse_arguments
from ovchat_server.chat.content_probe import (
    IMAGE_PART,
    ShownContent,
    shown_content,
    text_part,
)
from ovchat_server.chat.template_files import ChatTemplateError, read_template_files
from ovchat_server.chat.template_sandbox import sandbox
from ovchat_server.domain.chat import Message, PromptEnding, Role
from ovchat_server.domain.content import Image, text_of
from ovchat_server.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ovchat_server.domain.chat import Tool, ToolCall
    from ovchat_server.domain.content import Content
    from ovchat_server.domain.json_value import JsonObject, JsonValue

# A sentence of the template's author, who may have put a caller's text into it.
MAX_REASON_CHARACTERS = 200
# What transformers puts behind a message to continue. Some templates know it (LFM2.5's). The
# space at its end shows whether a template strips messages.
CONTINUATION_MARK = "CONTINUE_FINAL_MESSAGE_TAG "


class ChatTemplate:
    """Renders conversations as Hugging Face's transformers does."""

    def __init__(
        self,
        source: str,
        special_tokens: Mapping[str, str],
        tool_source: str | None = None,
        *,
        file: str = "chat_template.jinja",
        tool_file: str | None = None,
    ) -> None:
        """Compile a template.

        Args:
            source: Jinja2, as in `chat_template.jinja`.
            special_tokens: `bos_token`, `eos_token` and the like, which templates refer to.
            tool_source: The template for conversations with tools, if there is one.
            file: The name of the file that the template is in, for errors.
            tool_file: The same of the template for conversations with tools.

        Raises:
            ChatTemplateError: A source does not compile.
        """
        self._template = _compile(source, file, special_tokens)
        self._tool_template = self._template
        if tool_source is not None:
            self._tool_template = _compile(tool_source, tool_file or file, special_tokens)
        self.special_tokens = dict(special_tokens)
        self.end_token = special_tokens.get("eos_token")
        self.default_source = source
        # Of both, because either may show how the model writes calls and reasoning.
        self.source = source + (tool_source or "")
        # Otherwise a model reads of its tools only what the messages say.
        self.knows_tools = tool_source is not None or self._template.knows_tools

    def image_tag(self, *, with_tools: bool = False) -> str:
        """Return what the template writes for an image; "" if it knows only texts."""
        template = self._tool_template if with_tools else self._template
        return template.shown.image_tag

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        arguments: Mapping[str, object] | None = None,
        *,
        documents: Sequence[JsonObject] = (),
        ending: PromptEnding = PromptEnding.ASSISTANT_TURN,
    ) -> str:
        """Render the text of a prompt.

        Args:
            messages: The conversation. Images are left out if the template knows only texts.
            tools: The tools that the model may call; if empty, the template's `tools` is unset.
            arguments: Further variables (`chat_template_kwargs`).
            documents: The documents for retrieval; if empty, `documents` is unset.
            ending: How the prompt ends. Some templates support one ending only.

        Raises:
            InvalidRequestError: The template refuses the conversation, with its own message, or
                does not render the final message that is to be continued.
        """
        template = self._tool_template if tools else self._template
        conversation = [_message(message, template) for message in messages]
        variables: dict[str, object] = {
            **self.special_tokens,
            **(arguments or {}),
            "messages": conversation,
            "tools": [tool_fields(tool) for tool in tools] or None,
            "documents": list(documents) or None,
            "add_generation_prompt": ending is PromptEnding.ASSISTANT_TURN,
        }
        if ending is not PromptEnding.FINAL_MESSAGE:
            return template.render(variables)
        content = messages[-1].content if messages else ()
        if not template.takes_parts(content):
            content = (text_of(content),)
        marked, final = _marked(content)
        if not final:
            raise _refusal("cannot be continued: the final one has no content.")
        conversation[-1]["content"] = _content(marked, template)
        return _cut(template.render(variables), final)


def load_chat_template(directory: Path) -> ChatTemplate:
    """Load the chat template of a model's folder, from where Hugging Face's transformers reads it.

    Raises:
        ChatTemplateError: There is none, it cannot be read, or it does not compile.
    """
    files = read_template_files(directory)
    return ChatTemplate(
        files.source,
        files.special_tokens,
        files.tool_source,
        file=files.file,
        tool_file=files.tool_file,
    )


@dataclass(frozen=True, slots=True)
class _Template:
    compiled: jinja2.Template
    knows_developer: bool
    knows_tools: bool
    shown: ShownContent

    def takes_parts(self, content: Content) -> bool:
        """Return whether it is given a content as parts, because one text would not do."""
        has_images = any(isinstance(part, Image) for part in content)
        return self.shown.needs_parts or (has_images and self.shown.image_tag != "")

    def render(self, variables: Mapping[str, object]) -> str:
        try:
            return self.compiled.render(variables)
        except jinja2.TemplateError as error:
            reason = str(error)
        except Exception:  # noqa: BLE001  a template is foreign code: anything may come
            # Python's words are for nobody who wrote neither it nor the template.
            reason = "it fails on what it was given."
        complaint = "cannot be put into the model's chat template: "
        raise _refusal(complaint + _readable(reason))


def _compile(source: str, file: str, special_tokens: Mapping[str, str]) -> _Template:
    try:
        environment = sandbox()
        compiled = environment.from_string(source)
        variables = meta.find_undeclared_variables(environment.parse(source))
    except jinja2.TemplateSyntaxError as error:
        raise ChatTemplateError(
            f"the chat template in {file} does not compile: line {error.lineno}: {error.message}"
        ) from error
    # Jinja leaves it to Python to complain of a `break` outside a loop; the line is not ours.
    except (jinja2.TemplateError, SyntaxError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise ChatTemplateError(
            f"the chat template in {file} does not compile: {reason}"
        ) from error
    # As a word of its prose it says nothing about roles.
    knows_developer = re.search(r"""(["'])developer\1""", source) is not None
    template = _Template(compiled, knows_developer, "tools" in variables, ShownContent())
    show = partial(_shown, template, special_tokens)
    return dataclasses.replace(template, shown=shown_content(show))


def _shown(template: _Template, special_tokens: Mapping[str, str], content: JsonValue) -> str:
    """Return how a template shows a user's message; "" if it refuses that alone."""
    messages = [{"role": "user", "content": content}]
    try:
        return template.render(
            {**special_tokens, "messages": messages, "add_generation_prompt": True}
        )
    except InvalidRequestError:
        return ""


def _marked(content: Content) -> tuple[Content, str]:
    """Return a content with the mark at the end of its last text, and that text; "" for none."""
    for place, part in reversed([*enumerate(content)]):
        if isinstance(part, str):
            return (*content[:place], part + CONTINUATION_MARK, *content[place + 1 :]), part
    return content, ""


def _cut(text: str, final: str) -> str:
    """Cut the prompt at the end of the final message's text, where the mark is."""
    end = text.rfind(CONTINUATION_MARK.strip())
    if end < 0 or final.strip() not in text:
        complaint = "cannot be continued: the model's chat template changes the final one."
        raise _refusal(complaint)
    stripped = not text.startswith(CONTINUATION_MARK, end)
    return text[:end].rstrip() if stripped else text[:end]


def _readable(reason: str) -> str:
    """Remove control characters, and the marks that keep callers' special tokens text."""
    text = "".join(filter(str.isprintable, " ".join(reason.split())))
    return text if len(text) <= MAX_REASON_CHARACTERS else text[:MAX_REASON_CHARACTERS] + "..."


def _refusal(complaint: str) -> InvalidRequestError:
    return InvalidRequestError.about("messages", complaint)


def _message(message: Message, template: _Template) -> JsonObject:
    role = message.role
    if role is Role.DEVELOPER and not template.knows_developer:
        role = Role.SYSTEM
    fields: JsonObject = {"role": str(role), "content": _content(message.content, template)}
    if message.name is not None:
        fields["name"] = message.name
    if message.tool_calls:
        fields["tool_calls"] = [call_fields(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    if message.reasoning_content is None:
        return fields
    # transformers gives reasoning by both names that templates know, in this order.
    reasoning = message.reasoning_content
    return {"thinking": reasoning, **fields, "reasoning_content": reasoning}


def _content(content: Content, template: _Template) -> JsonValue:
    """Return a content as templates get it: one text, or the parts that transformers gives."""
    if not template.takes_parts(content):
        return text_of(content)
    return [IMAGE_PART if isinstance(part, Image) else text_part(part) for part in content]


def tool_fields(tool: Tool) -> JsonObject:
    """Return a tool as templates get it."""
    function: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }
    given: JsonObject = {key: value for key, value in function.items() if value is not None}
    return {"type": "function", "function": given}


def call_fields(call: ToolCall) -> JsonObject:
    """Return a call as templates get it."""
    # Templates iterate over the arguments, so they get an object where there is one.
    arguments = parse_arguments(call.arguments)
    function: JsonObject = {
        "name": call.name,
        "arguments": call.arguments if arguments is None else arguments,
    }
    return {"id": call.id, "type": "function", "function": function}
