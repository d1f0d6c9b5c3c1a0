"""A model's chat template: from messages to the text of the prompt."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ovchat_server.api.chat import PromptEnding, Role
from ovchat_server.api.errors import InvalidRequestError, Violation, shortened
from ovchat_server.chat.arguments import parse_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jinja2.nodes import Node
    from jinja2.parser import Parser

    from ovchat_server.api.chat import Message, Tool, ToolCall
    from ovchat_server.api.json_value import JsonObject


class ChatTemplateError(Exception):
    """A model's folder has no chat template, or one that does not compile."""


class ChatTemplate:
    """Renders conversations as Hugging Face does, in Jinja's sandbox.

    What a template may do is decided by its author, who is not trusted: the sandbox keeps
    it from attributes and from changing what it was given.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """Compile a template.

        Args:
            source: Jinja2, as in `chat_template.jinja`.
            special_tokens: `bos_token`, `eos_token` and the like, which templates refer to.

        Raises:
            ChatTemplateError: The source does not compile.
        """
        try:
            self._template = _environment().from_string(source)
        except jinja2.TemplateError as error:
            raise ChatTemplateError(f"the chat template does not compile: {error}") from error
        self._special_tokens = dict(special_tokens)
        self._knows_developer = "developer" in source
        self.end_token = special_tokens.get("eos_token")
        self.thinks = "<think>" in source or "</think>" in source
        self.calls_tools = "<tool_call>" in source

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        arguments: Mapping[str, object] | None = None,
        *,
        documents: Sequence[JsonObject] = (),
        ending: PromptEnding = PromptEnding.ASSISTANT_TURN,
    ) -> str:
        """The prompt, ending in the opening of an assistant's turn.

        Args:
            messages: The conversation.
            tools: What the model may call; none leaves the template's `tools` unset.
            arguments: Further variables (`chat_template_kwargs`).
            documents: For templates that know retrieval.
            ending: What the prompt ends with.

        Raises:
            InvalidRequestError: The template refuses the conversation, with its own words.
        """
        variables: dict[str, object] = {
            **self._special_tokens,
            **(arguments or {}),
            "messages": [self._message(message) for message in messages],
            "tools": [_tool(tool) for tool in tools] or None,
            "documents": list(documents) or None,
            "add_generation_prompt": ending is PromptEnding.ASSISTANT_TURN,
        }
        try:
            return self._template.render(variables)
        except jinja2.TemplateError as error:
            reason = shortened(str(error))
        except Exception as error:  # noqa: BLE001  a template is foreign code: anything may come
            reason = shortened(f"{type(error).__name__}: {error}")
        message = f"messages cannot be put into the model's chat template: {reason}"
        raise InvalidRequestError.of([Violation("messages", message)])

    def _message(self, message: Message) -> JsonObject:
        role = message.role
        if role is Role.DEVELOPER and not self._knows_developer:
            role = Role.SYSTEM
        fields: JsonObject = {"role": str(role), "content": message.content or ""}
        if message.name is not None:
            fields["name"] = message.name
        if message.tool_calls:
            fields["tool_calls"] = [_call(call) for call in message.tool_calls]
        if message.tool_call_id is not None:
            fields["tool_call_id"] = message.tool_call_id
        if message.reasoning_content is not None:
            fields["reasoning_content"] = message.reasoning_content
        return fields


def load_chat_template(directory: Path) -> ChatTemplate:
    """The chat template of a model's folder, found in Hugging Face's order.

    Raises:
        ChatTemplateError: There is none, or it cannot be read.
    """
    config = _read_json(directory / "tokenizer_config.json")
    source: object = None
    jinja = directory / "chat_template.jinja"
    if jinja.is_file():
        try:
            source = jinja.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ChatTemplateError(f"{jinja.name} is not UTF-8") from error
    for name in ("chat_template.json", "processor_config.json", "tokenizer_config.json"):
        source = source or _read_json(directory / name).get("chat_template")
    if isinstance(source, list):
        # Several named templates: the default one is for chats.
        items = [item for item in source if isinstance(item, dict)]
        named = {str(item.get("name")): item.get("template") for item in items}
        source = named.get("default")
    if not isinstance(source, str):
        raise ChatTemplateError("there is no chat template (chat_template.jinja)")
    return ChatTemplate(source, _special_tokens(config))


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    tokens = {}
    for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
        value = config.get(name)
        if isinstance(value, dict):
            value = value.get("content")
        if isinstance(value, str):
            tokens[name] = value
    return tokens


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ChatTemplateError(f"{path.name} is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}


def _tool(tool: Tool) -> JsonObject:
    function: JsonObject = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _call(call: ToolCall) -> JsonObject:
    # Templates iterate over the arguments, so they get an object where there is one.
    arguments = parse_arguments(call.arguments)
    function: JsonObject = {
        "name": call.name,
        "arguments": call.arguments if arguments is None else arguments,
    }
    return {"id": call.id, "type": "function", "function": function}


class _GenerationTag(Extension):
    """`{% generation %}`: marks the assistant's words for training; here only its body counts."""

    tags = {"generation"}  # noqa: RUF012  Jinja's own declaration

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> jinja2.Environment:
    # The settings of transformers' apply_chat_template, which templates are written for.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _GenerationTag]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002  templates call it so
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    # Jinja's own filter escapes for HTML, which would change the prompt.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)
