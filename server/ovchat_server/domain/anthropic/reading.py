"""From untrusted fields to requests of the Messages API."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.domain.anthropic.body import Body
from ovchat_server.domain.anthropic.conversation import ending_of, messages_of
from ovchat_server.domain.anthropic.output import read_output
from ovchat_server.domain.anthropic.parameters import GENERATION, MESSAGES
from ovchat_server.domain.anthropic.request import MESSAGE, MessagesRequest
from ovchat_server.domain.anthropic.thinking import read_thinking
from ovchat_server.domain.anthropic.tools import read_tool_choice, read_tools
from ovchat_server.domain.chat import THINKING, ChatRequest, ToolMode, first_turn
from ovchat_server.domain.chat_request import read_template_kwargs
from ovchat_server.domain.declared import Hosted, read_declared
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.generation_request import read_generation, refuse_with_constraint
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.reader import Reader
from ovchat_server.domain.tools import refuse_large_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.limits import Limits


def read_messages_request(
    fields: Mapping[str, JsonValue],
    *,
    strict: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    keep_billing_header: bool = False,
) -> MessagesRequest:
    """Read a request for an answer.

    Args:
        fields: Anthropic's request object.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.
        keep_billing_header: Keep the first line of the system's text that Claude Code writes about
            itself.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    reader.require("max_tokens")
    return _read(reader, strict=strict, keep_billing_header=keep_billing_header)


def read_count_request(
    fields: Mapping[str, JsonValue],
    *,
    strict: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    keep_billing_header: bool = False,
) -> MessagesRequest:
    """Read a request to count the tokens of a prompt; see read_messages_request."""
    reader = Reader.of_request(fields, limits)
    return _read(reader, strict=strict, keep_billing_header=keep_billing_header)


def _read(reader: Reader, *, strict: bool, keep_billing_header: bool) -> MessagesRequest:
    reader.require("messages")
    body = read_declared(reader, Body)
    # Where it cannot be read, its defaults stand in for it, until all else is read.
    told = body or Body.model_construct()
    messages = messages_of(told.system, told.messages, keep_billing_header=keep_billing_header)
    if told.messages and first_turn(messages) == len(messages):
        complaint = "must say something, besides what the system says, to be answered"
        reader.refuse("messages", complaint)
    tools = read_tools(reader, told.tools)
    choice = read_tool_choice(reader, tools)
    thinking = read_thinking(reader)
    generation = _read_generation(reader)
    effort, constraint = read_output(reader, generation.constraint)
    arguments = read_template_kwargs(reader)
    chat = ChatRequest(
        model=reader.string("model") or "",
        messages=messages,
        generation=replace(generation, constraint=constraint),
        tools=tools,
        tool_choice=choice,
        # Who asked for none expects the answer in the first block.
        include_reasoning=any(arguments.get(name, thinking.enabled) for name in THINKING),
        reasoning_effort=effort,
        thinking=thinking.enabled,
        thinks_by_itself=False,
        thinking_budget=thinking.budget,
        template_kwargs=arguments,
        prompt_ending=ending_of(messages),
        # There is always usage at the end of a stream.
        stream=StreamOptions(include_usage=True) if reader.boolean("stream") else None,
        id_prefix=MESSAGE,
    )
    if choice.forced:
        refuse_with_constraint(reader, choice.field, None)
    if choice.mode is not ToolMode.NONE:
        refuse_large_schemas(reader, tools, choice)
    unknown = MESSAGES.check(reader, strict=strict)
    accepted = MESSAGES.accepted_in(reader)
    return MessagesRequest(
        chat=replace(reader.checked(chat), ignored=(*unknown, *_ignored(told)), accepted=accepted),
        shows_thinking=thinking.shown,
    )


def _read_generation(reader: Reader) -> GenerationParams:
    shared = {name: value for name, value in reader.fields.items() if name in GENERATION}
    shared["stop"] = reader.fields.get("stop_sequences")
    return read_generation(
        Reader(shared, reader.violations, unknown=reader.unknown, limits=reader.limits)
    )


def _ignored(body: Body) -> list[str]:
    """Return the paths of blocks and tools of Anthropic's service, which do not act."""
    blocks = [
        FieldPath.of("messages", index, "content", number)
        for index, item in enumerate(body.messages)
        for number, block in enumerate(item.content)
        if isinstance(block, Hosted)
    ]
    tools = [
        FieldPath.of("tools", index)
        for index, tool in enumerate(body.tools)
        if isinstance(tool, Hosted)
    ]
    return [str(path) for path in (*blocks, *tools)]
