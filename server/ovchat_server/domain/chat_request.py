"""From untrusted fields to a chat request: the rules, the same for both doors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from ovchat_server.domain.chat import CallTags, ChatRequest, PromptEnding, ToolMode
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation_request import (
    MAX_INT32,
    WITH_BEAMS,
    read_generation,
    read_stream_options,
    read_top_logprobs,
    refuse_with_constraint,
)
from ovchat_server.domain.known_keys import ANY_KEYS
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.messages import read_messages
from ovchat_server.domain.parameters import CHAT
from ovchat_server.domain.prediction import read_prediction
from ovchat_server.domain.reader import Reader
from ovchat_server.domain.tools import read_tool_choice, read_tools, refuse_large_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.limits import Limits

# Those without tags are OpenAI's format by other names.
AGENT_FORMATS: Mapping[str, CallTags | None] = {
    "openai": None,
    "codex": None,
    "passthrough": None,
    "qwen3": CallTags.QWEN3,
    "llama3": CallTags.LLAMA3,
}
NAMED_FORMATS = {"qwen": CallTags.QWEN3, "llama": CallTags.LLAMA3}
# OpenAI's newer name comes last: it wins.
MAX_TOKENS_FIELDS = ("max_tokens", "max_completion_tokens")
ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
REASONING_EFFORTS = get_args(ReasoningEffort)
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
        # Jinja's own.
        "cycler",
        "dict",
        "joiner",
        "lipsum",
        "namespace",
        "range",
    }
)


def read_chat_request(
    fields: Mapping[str, JsonValue], *, strict: bool = False, limits: Limits = DEFAULT_LIMITS
) -> ChatRequest:
    """Read a chat request.

    Args:
        fields: OpenAI's request object, from JSON or from the set fields of a message.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    tools = read_tools(reader)
    request = ChatRequest(
        model=reader.string("model") or "",
        messages=read_messages(reader),
        generation=_read_logprobs(reader, _read_generation(reader)),
        tools=tools,
        tool_choice=read_tool_choice(reader, tools),
        call_tags=_read_call_tags(reader),
        include_reasoning=reader.boolean("include_reasoning") is not False,
        reasoning_effort=read_effort(reader),
        thinking_budget=read_thinking_budget(reader),
        template_kwargs=read_template_kwargs(reader),
        documents=read_documents(reader),
        prompt_ending=read_prompt_ending(reader),
        echo=reader.boolean("echo") or False,
        stream=read_stream_options(reader),
        ignored=CHAT.check(reader, strict=strict),
        accepted=CHAT.accepted_in(reader),
    )
    if request.thinking_budget is not None and request.generation.beams:
        reader.refuse("thinking_token_budget", WITH_BEAMS, "unsupported_parameter")
    choice = request.tool_choice
    if choice.forced or choice.allowed is not None:
        refuse_with_constraint(reader, choice.field, request.generation.beams)
    if choice.mode is not ToolMode.NONE:
        refuse_large_schemas(reader, tools, choice)
    return reader.checked(request)


def _read_generation(reader: Reader) -> GenerationParams:
    generation = read_generation(reader, max_tokens_fields=MAX_TOKENS_FIELDS)
    speculation = dataclasses.replace(generation.speculation, prediction=read_prediction(reader))
    return dataclasses.replace(generation, speculation=speculation)


def _read_logprobs(reader: Reader, generation: GenerationParams) -> GenerationParams:
    logprobs = reader.boolean("logprobs") or False
    alternatives = read_top_logprobs(reader, "top_logprobs", generation.beams)
    if alternatives and not logprobs:
        reader.refuse("top_logprobs", "needs logprobs to be true")
    return dataclasses.replace(generation, logprobs=logprobs, top_logprobs=alternatives or 0)


def _read_call_tags(reader: Reader) -> CallTags | None:
    """Read AbstractCore's `agent_format`, which "auto" takes from the model's name."""
    name = reader.choice("agent_format", [*AGENT_FORMATS, "auto"])
    if name == "auto":
        # Of whatever family its models are.
        model = (reader.string("model") or "").lower().removeprefix("ollama/")
        return next((tags for family, tags in NAMED_FORMATS.items() if family in model), None)
    return AGENT_FORMATS.get(name or "openai")


def read_documents(reader: Reader) -> tuple[JsonObject, ...]:
    """Read documents, for templates that know retrieval; note what is wrong in the reader."""
    documents = reader.objects("documents", ANY_KEYS, max_items=reader.limits.max_documents)
    return tuple(dict(item.fields) for item in documents)


def read_prompt_ending(reader: Reader) -> PromptEnding:
    """Read what the prompt is to end with; note what is wrong in the reader."""
    opens = reader.boolean("add_generation_prompt")
    if reader.boolean("continue_final_message"):
        if opens:
            reader.refuse("continue_final_message", "cannot be true with add_generation_prompt")
        return PromptEnding.FINAL_MESSAGE
    return PromptEnding.NOTHING if opens is False else PromptEnding.ASSISTANT_TURN


def read_effort(reader: Reader) -> str | None:
    """Read how long the model is to reason; note what is wrong in the reader."""
    return reader.choice("reasoning_effort", REASONING_EFFORTS)


def read_thinking_budget(reader: Reader) -> int | None:
    """Read how many tokens of reasoning there may be; note what is wrong in the reader."""
    budget = reader.integer("thinking_token_budget", -1, MAX_INT32)
    # vLLM's word for any number.
    return None if budget == -1 else budget


def read_template_kwargs(reader: Reader) -> JsonObject:
    """Read variables for the chat template; note what is wrong in the reader."""
    arguments = dict(reader.json_object("chat_template_kwargs") or {})
    for name in arguments.keys() & RESERVED_TEMPLATE_ARGUMENTS:
        field = FieldPath.of("chat_template_kwargs", name)
        reader.refuse(field, "is set by the server and cannot be overridden")
    return arguments
