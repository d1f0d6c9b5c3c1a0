"""Reading the messages of a chat request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.api.chat import Message, Role, ToolCall
from ovchat_server.api.limits import text_deeper, too_many_parts
from ovchat_server.api.reader import kind

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonValue
    from ovchat_server.api.reader import Reader

# Known to the wire formats, but not to a model that only reads text.
UNSUPPORTED_PARTS = ("image_url", "video_url", "input_audio", "file")
# Of what SDKs give back, or say to others: annotations and hints about caching change nothing.
MESSAGE_KEYS = frozenset(
    {
        "role",
        "content",
        "name",
        "tool_calls",
        "tool_call_id",
        "reasoning_content",
        "reasoning",
        "refusal",
        "function_call",
        "audio",
        "annotations",
    }
)
PART_KEYS = frozenset(
    {"type", "text", "refusal", *UNSUPPORTED_PARTS, "prompt_cache_breakpoint", "cache_control"}
)
CALL_KEYS = frozenset({"id", "type", "function", "index"})
CALLED_FUNCTION_KEYS = frozenset({"name", "arguments"})


def read_messages(request: Reader) -> tuple[Message, ...]:
    """Read the conversation; note what is wrong in the reader."""
    if not request.require("messages"):
        return ()
    if request.fields["messages"] == []:
        request.refuse("messages", "must hold at least one message")
    if complaint := too_many_parts(_parts(request.fields["messages"]), request.limits):
        request.refuse("messages", complaint)
        return ()
    return tuple(
        message
        for reader in request.objects("messages", max_items=request.limits.max_messages)
        if (message := _read_message(reader))
    )


def _parts(messages: JsonValue) -> int:
    """Count the parts and calls of all messages, right ones or not."""
    return sum(
        len(value)
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict)
        for name in ("content", "tool_calls")
        if isinstance(value := message.get(name), list)
    )


def _read_message(reader: Reader) -> Message | None:
    if not reader.require("role"):
        return None
    name = reader.choice("role", [*Role])
    if name is None:
        return None
    reader.note_unknown(MESSAGE_KEYS)
    role = Role(name)
    tool_calls = _read_tool_calls(reader, role)
    content = _read_content(reader)
    empty = reader.fields.get("content") in (None, [])
    if role is Role.ASSISTANT:
        content = reader.string("refusal") if empty else content
    elif empty and "content" in reader.fields and content is None:
        # OVMS takes null for no text.
        content = ""
    elif empty:
        reader.refuse("content", "is required", "missing_required_parameter")
    if role is Role.TOOL:
        reader.require("tool_call_id")
    return Message(
        role=role,
        content=content,
        name=reader.string("name"),
        tool_calls=tool_calls,
        tool_call_id=reader.string("tool_call_id"),
        # vLLM sends it out as `reasoning`, and clients send back what they got.
        reasoning_content=reader.string("reasoning_content") or reader.string("reasoning"),
    )


def _read_content(reader: Reader) -> str | None:
    """Read the text of a string or of text parts, joined with a line break (OVMS)."""
    value = reader.fields.get("content")
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        complaint = f"must be a string or an array, not {kind(value)}"
        reader.refuse("content", complaint, "invalid_type")
        return None
    return "\n".join(
        _read_part(part) for part in reader.objects("content", max_items=reader.limits.max_parts)
    )


def _read_part(part: Reader) -> str:
    if not part.require("type"):
        return ""
    part.note_unknown(PART_KEYS)
    given: JsonValue = part.fields["type"]
    if given in UNSUPPORTED_PARTS:
        part.refuse("type", f"is {given!r}, but this model takes text only", "unsupported_value")
        return ""
    known = part.choice("type", ["text", "refusal"])
    if known is None or not part.require(known):
        return ""
    return part.string(known) or ""


def _read_tool_calls(reader: Reader, role: Role) -> tuple[ToolCall, ...]:
    if reader.present("audio"):
        reader.refuse("audio", "is not supported: this model takes text only", "unsupported_value")
    if reader.present("function_call"):
        reader.refuse("function_call", "is not supported; use tool_calls", "unsupported_parameter")
    calls = reader.objects("tool_calls", max_items=reader.limits.max_parts)
    if calls and role is not Role.ASSISTANT:
        reader.refuse("tool_calls", f"belongs to an assistant's message, not to a {role} one")
        return ()
    return tuple(call for item in calls if (call := _read_tool_call(item)))


def _read_tool_call(reader: Reader) -> ToolCall | None:
    reader.note_unknown(CALL_KEYS)
    given = reader.choice("type", ["function"])
    reader.require("id")
    reader.require("function")
    identifier, function = reader.string("id"), reader.object("function")
    if identifier is None or function is None or (given is None and reader.present("type")):
        return None
    function.note_unknown(CALLED_FUNCTION_KEYS)
    function.require("name")
    name = function.string("name")
    arguments = function.string("arguments")
    depth = reader.limits.max_json_depth
    if arguments and text_deeper(arguments, depth):
        function.refuse("arguments", f"is nested more than {depth} levels deep")
    return None if name is None else ToolCall(identifier, name, arguments or "{}")
