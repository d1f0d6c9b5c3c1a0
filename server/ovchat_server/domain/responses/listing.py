"""What a response tells of its request: its fields, and the items of its input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.responses.item_ids import new_item_id
from ovchat_server.domain.responses.items import with_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.json_value import JsonObject, JsonValue

# What parts of items have that SDKs tell them by, where it was left out.
PART_DEFAULTS: Mapping[str, JsonObject] = {
    "input_image": {"detail": "auto"},
    "output_text": {"annotations": []},
}
# The fields that are repeated as they are, with OpenAI's defaults.
AS_GIVEN: Mapping[str, JsonValue] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "store": True,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "truncation": "disabled",
    "presence_penalty": 0,
    "frequency_penalty": 0,
}
# Those that change nothing and are not checked, with OpenAI's types: others are not repeated.
OF_TYPE: Mapping[str, type] = {
    "max_tool_calls": int,
    "prompt_cache_key": str,
    "safety_identifier": str,
    "user": str,
}


def repeated(fields: Mapping[str, JsonValue]) -> JsonObject:
    """Return the fields that a response repeats of a request, which was read without faults."""
    reasoning, text = _object(fields, "reasoning"), _object(fields, "text")
    tools = fields.get("tools")
    return {
        **{name: _or(fields.get(name), default) for name, default in AS_GIVEN.items()},
        **{name: _of_type(fields.get(name), kind) for name, kind in OF_TYPE.items()},
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
    """Return the items of an `input` that was read without faults, each with an id of its own."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    items = value if isinstance(value, list) else []
    listed: dict[str, JsonObject] = {}
    for item in map(with_type, items):
        if isinstance(item, dict):
            identifier = item.get("id")
            # By its id, a page begins after an item.
            if not isinstance(identifier, str) or not identifier or identifier in listed:
                identifier = new_item_id(str(item["type"]))
            listed[identifier] = {**_listed(item), "id": identifier}
    return tuple(listed.values())


def _listed(item: JsonObject) -> JsonObject:
    content = item.get("content")
    if isinstance(content, str):
        part = "output_text" if item.get("role") == "assistant" else "input_text"
        item = {**item, "content": [{"type": part, "text": content}]}
    for name in ("content", "output"):
        if isinstance(parts := item.get(name), list):
            item = {**item, name: [_part(part) for part in parts]}
    return _without_nulls(item)


def _part(part: JsonValue) -> JsonValue:
    if not isinstance(part, dict):
        return part
    return {**PART_DEFAULTS.get(str(part.get("type")), {}), **_without_nulls(part)}


def _without_nulls(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _tool(tool: JsonValue) -> JsonValue:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None, **tool}


def _object(fields: Mapping[str, JsonValue], name: str) -> JsonObject:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _of_type(value: JsonValue, kind: type) -> JsonValue:
    # True is an int, too.
    return value if type(value) is kind else None


def _or(value: JsonValue, default: JsonValue) -> JsonValue:
    return default if value is None else value
