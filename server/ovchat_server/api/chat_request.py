"""From untrusted fields to a chat request: the rules, the same for both doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.api import parameters
from ovchat_server.api.chat import ChatRequest, SamplingParams
from ovchat_server.api.errors import InvalidRequestError, Violation
from ovchat_server.api.messages import read_messages
from ovchat_server.api.reader import Reader
from ovchat_server.api.tools import read_tool_mode, read_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.api.json_value import JsonObject, JsonValue

MAX_UINT32 = 2**32 - 1
# OVMS's limit; OpenAI's is 4.
MAX_STOP_STRINGS = 16
REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# What we hand to the template ourselves: a caller's value would forge it.
RESERVED_TEMPLATE_ARGUMENTS = frozenset(
    {
        "messages",
        "tools",
        "documents",
        "add_generation_prompt",
        "continue_final_message",
        "chat_template",
        "tokenize",
        "bos_token",
        "eos_token",
        "pad_token",
        "unk_token",
        "raise_exception",
        "strftime_now",
    }
)


def read_chat_request(fields: Mapping[str, JsonValue]) -> ChatRequest:
    """The request that `fields` make.

    Args:
        fields: OpenAI's request object, from JSON or from the set fields of a message.

    Raises:
        InvalidRequestError: With every fault found.
    """
    violations: list[Violation] = []
    reader = Reader(fields, violations)
    reader.require("model")
    tools = read_tools(reader)
    stream = reader.boolean("stream") or False
    request = ChatRequest(
        model=reader.string("model") or "",
        messages=read_messages(reader),
        sampling=_read_sampling(reader),
        max_tokens=_read_max_tokens(reader),
        stop=_read_stop(reader),
        tools=tools,
        tool_mode=read_tool_mode(reader, tools),
        template_arguments=read_template_arguments(reader),
        stream=stream,
        include_usage=_read_include_usage(reader, stream=stream),
        ignored=parameters.unknown(fields),
    )
    parameters.refuse_unsupported(reader)
    if violations:
        raise InvalidRequestError.of(violations)
    return request


def _read_sampling(reader: Reader) -> SamplingParams:
    return SamplingParams(
        temperature=reader.number("temperature", 0, 2),
        top_p=reader.number("top_p", 0, 1, above_minimum=True),
        top_k=reader.integer("top_k", -1, 2**31 - 1),
        seed=reader.integer("seed", 0, MAX_UINT32),
    )


def _read_max_tokens(reader: Reader) -> int | None:
    older = reader.integer("max_tokens", 1, MAX_UINT32)
    newer = reader.integer("max_completion_tokens", 1, MAX_UINT32)
    return older if newer is None else newer


def _read_stop(reader: Reader) -> tuple[str, ...]:
    value = reader.fields.get("stop")
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        reader.refuse("stop", "must be a string or an array of strings", "invalid_type")
        return ()
    if len(value) > MAX_STOP_STRINGS:
        reader.refuse("stop", f"must hold at most {MAX_STOP_STRINGS} strings, got {len(value)}")
    strings = []
    for index, item in enumerate(value):
        name = "stop" if isinstance(reader.fields["stop"], str) else f"stop[{index}]"
        if not isinstance(item, str):
            reader.refuse(name, "must be a string", "invalid_type")
        elif not item:
            reader.refuse(name, "must not be empty")
        else:
            strings.append(item)
    return tuple(strings)


def read_template_arguments(reader: Reader) -> JsonObject:
    """Variables for the chat template; what is wrong with them is noted in the reader."""
    arguments = dict(reader.json_object("chat_template_kwargs") or {})
    for name in arguments.keys() & RESERVED_TEMPLATE_ARGUMENTS:
        reader.refuse(f"chat_template_kwargs.{name}", "is set by the server and cannot be given")
    effort = reader.choice("reasoning_effort", REASONING_EFFORTS)
    if effort is not None:
        # As vLLM: models that know no effort at least know on and off.
        arguments.setdefault("reasoning_effort", effort)
        arguments.setdefault("enable_thinking", effort != "none")
    return arguments


def _read_include_usage(reader: Reader, *, stream: bool) -> bool:
    options = reader.object("stream_options")
    if options is None:
        return False
    if not stream:
        reader.refuse("stream_options", "needs a stream; leave it out")
    if options.boolean("continuous_usage_stats"):
        options.refuse("continuous_usage_stats", "is not supported", "unsupported_parameter")
    return options.boolean("include_usage") or False
