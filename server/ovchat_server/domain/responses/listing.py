"""What a response tells of its request: its fields, and the items of its input."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from ovchat_server.domain.responses.items import with_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.json_value import JsonObject, JsonValue

# What OpenAI's ids of items begin with.
PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}
# The fields that are repeated as they are, with OpenAI's defaults.
AS_GIVEN: Mapping[str, JsonValue] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "store": True,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "truncation": "disabled",
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "user": None,
}


def repeated(fields: Mapping[str, JsonValue]) -> JsonObject:
    """Return the fields that a response repeats of a request, which was read without faults."""
    reasoning, text = _object(fields, "reasoning"), _object(fields, "text")
    tools = fields.get("tools")
    return {
        **{name: _or(fields.get(name), default) for name, default in AS_GIVEN.items()},
        "background": False,
        "service_tier": "default",
        "reasoning": {
            "effort": reasoning.get("effort"),
            "summary": _or(reasoning.get("summary"), reasoning.get("generate_summary")),
        },
        "text": {
            "format": _or(text.get("format"), {"type": "text"}),
            "verbosity": _or(text.get("verbosity"), "medium"),
        },
        "tools": [_tool(tool) for tool in tools] if isinstance(tools, list) else [],
    }


def listed_items(value: JsonValue) -> tuple[JsonObject, ...]:
    """Return the items of an `input` that was read without faults, each with an id."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    items = value if isinstance(value, list) else []
    return tuple(_listed(item) for item in map(with_type, items) if isinstance(item, dict))


def _listed(item: JsonObject) -> JsonObject:
    content = item.get("content")
    if isinstance(content, str):
        part = "output_text" if item.get("role") == "assistant" else "input_text"
        annotations: JsonObject = {"annotations": []} if part == "output_text" else {}
        item = {**item, "content": [{"type": part, "text": content, **annotations}]}
    identifier = item.get("id")
    if not isinstance(identifier, str):
        identifier = f"{PREFIXES.get(str(item['type']), 'item')}_{uuid4().hex}"
    return {**item, "id": identifier}


def _tool(tool: JsonValue) -> JsonValue:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None, **tool}


def _object(fields: Mapping[str, JsonValue], name: str) -> JsonObject:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _or(value: JsonValue, default: JsonValue) -> JsonValue:
    return default if value is None else value
