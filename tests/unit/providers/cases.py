"""Requests to be written in a provider's API: the table's, and whole conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.rest.openai.codec import read_chat, read_text
from tests.parameters import checks
from tests.parameters.case import Fields, said, written
from tests.parameters.endpoints import USER, WEATHER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest

READERS = {"chat": read_chat, "text": read_text}
# What neither OpenAI's nor Anthropic's API can say, by what callers call it.
VLLMS = {
    "min_p",
    "repetition_penalty",
    "allowed_token_ids",
    "bad_words",
    "min_tokens",
    "ignore_eos",
    "stop_token_ids",
    "include_stop_str_in_output",
    "skip_special_tokens",
    "truncate_prompt_tokens",
    "truncation_side",
    "prompt_logprobs",
    "priority",
    "cache_salt",
    "use_beam_search",
    "best_of",
    "echo",
    "thinking_token_budget",
    "chat_template_kwargs",
    "documents",
    "add_generation_prompt",
    "stream_options.continuous_usage_stats",
    "structured_outputs.regex",
    "structured_outputs.choice",
    "structured_outputs.grammar",
    "structured_outputs.structural_tag",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structural_tag",
    "response_format",
    "structured_outputs.json_object",
}
SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}
PIXEL = "data:image/png;base64,iVBORw0KGgo="
TIME: Fields = {"type": "function", "function": {"name": "get_time", "strict": True}}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'},
}
CONVERSATION: list[Fields] = [
    {
        "role": "developer",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    },
    {
        "role": "user",
        "name": "Ann",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": PIXEL}},
            {"type": "image_url", "image_url": {"url": "https://a.b/c.png", "detail": "low"}},
        ],
    },
    {"role": "assistant", "content": "Rome", "reasoning_content": "Old stones."},
    {"role": "user", "content": "And the weather?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    {"role": "tool", "tool_call_id": "call_2", "content": "still sunny"},
]


def _tools(**fields: Any) -> Fields:
    return {**said("Hi"), "tools": [WEATHER, TIME], **fields}


def _form(**described: Any) -> Fields:
    schema = {"schema": SCHEMA, **described}
    return said("Hi", response_format={"type": "json_schema", "json_schema": schema})


WHOLE: dict[str, tuple[str, Fields]] = {
    "conversation": ("chat", {**said("Hi"), "messages": CONVERSATION, "tools": [WEATHER, TIME]}),
    "a tool by name": (
        "chat",
        _tools(tool_choice={"type": "function", "function": {"name": "get_time"}}),
    ),
    "allowed tools": (
        "chat",
        _tools(
            parallel_tool_calls=False,
            tool_choice={
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [TIME | {"function": {"name": "get_time"}}],
                },
            },
        ),
    ),
    "a described schema": ("chat", _form(name="person", description="Of a person", strict=False)),
    "a schema by its name": ("chat", _form(name="person")),
    "an ended conversation": (
        "chat",
        {**said("Hi"), "messages": [USER], "add_generation_prompt": False},
    ),
    "prompts and all that is told of them": (
        "text",
        written(
            [[1, 2], [3]], n=2, echo=True, logprobs=2, prompt_logprobs=1, return_token_ids=True
        ),
    ),
    "a prompt without special tokens": ("text", written(["a", "b"], add_special_tokens=False)),
}


def _fields() -> Iterator[tuple[str, str, Fields]]:
    """Yield each request's name, endpoint and fields."""
    for effect in checks.EFFECTS:
        yield str(effect), effect.endpoint, effect.base | effect.given
    for bound in checks.BOUNDS:
        for value in bound.accepted:
            name = f"{bound} {str(value)[:30]}"
            yield name, bound.endpoint, {**bound.base, bound.name: value}
    for name, (endpoint, fields) in WHOLE.items():
        yield name, endpoint, fields


def read(endpoint: str, fields: Fields) -> ChatRequest | TextRequest:
    """Read a request; unknown fields are refused."""
    return READERS[endpoint](fields, strict=True, limits=DEFAULT_LIMITS)


CASES = [
    pytest.param(endpoint, fields, id=name)
    for name, endpoint, fields in _fields()
    if endpoint in READERS
]
