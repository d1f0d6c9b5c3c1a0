"""Reading the messages of a chat request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from ovchat_server.domain.chat import Message, Role, ToolCall
from ovchat_server.domain.content import IMAGE_TYPES, Image
from ovchat_server.domain.limits import text_deeper, too_many_parts
from ovchat_server.domain.reader import kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ovchat_server.domain.content import Content, ContentPart
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.reader import Reader

# OpenAI's older role of a function's result.
FUNCTION = "function"
# Known to the wire formats, but to no kind of model.
UNSUPPORTED_PARTS = ("video_url", "input_audio", "file")
NO_SUCH_PARTS = "is '{}': models here take no such parts"
# Of what SDKs give back, or say to others, annotations, hints about caching and what they have
# parsed themselves (OpenAI's) or keep of a provider (LiteLLM) change nothing.
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
        "parsed",
        "provider_specific_fields",
    }
)
JSON_PARTS = ("text", "refusal", "image_url")
# JSON has no bytes, so only typed calls send images by value.
PARTS = {
    name: frozenset({"type", name, "prompt_cache_breakpoint", "cache_control"})
    for name in (*JSON_PARTS, "image")
}
IMAGE_KEYS = frozenset({"url", "detail"})
IMAGE_FILE_KEYS = frozenset({"data", "mime_type", "detail"})
# A model sees the image as it is, except in low detail (OpenAI).
ImageDetail: TypeAlias = Literal["auto", "low", "high", "original"]
IMAGE_DETAILS = get_args(ImageDetail)
CALL_KEYS = frozenset({"id", "type", "function", "index", "provider_specific_fields"})
CALLED_FUNCTION_KEYS = frozenset(
    {"name", "arguments", "parsed_arguments", "provider_specific_fields"}
)


def read_messages(request: Reader) -> tuple[Message, ...]:
    """Read the conversation; note what is wrong in the reader."""
    # Many begin with the other API's field.
    elsewhere = ": prompt is for text completions, at /v3/completions"
    if not request.require("messages", elsewhere if request.present("prompt") else ""):
        return ()
    if request.fields["messages"] == []:
        request.refuse("messages", "must contain at least one message")
    if complaint := too_many_parts(_parts(request.fields["messages"]), request.limits):
        request.refuse("messages", complaint)
        return ()
    messages: list[Message] = []
    # The ids of the last calls, by the names of their functions.
    called: dict[str, str] = {}
    readers = request.objects("messages", MESSAGE_KEYS, request.limits.max_messages)
    for number, reader in enumerate(readers):
        if message := _read_message(reader, f"call{number:05}", called):
            messages.append(message)
            called.update((call.name, call.id) for call in message.tool_calls)
    return tuple(messages)


def _parts(messages: JsonValue) -> int:
    """Count the parts and calls of all messages, right ones or not."""
    return sum(
        len(value)
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict)
        for name in ("content", "tool_calls")
        if isinstance(value := message.get(name), list)
    )


def _read_message(reader: Reader, call_id: str, called: Mapping[str, str]) -> Message | None:
    """Read a message.

    Args:
        reader: The message.
        call_id: The id of its call, where that is in OpenAI's older form, which has none.
        called: The ids of the calls before it, by the names of their functions.
    """
    if not reader.require("role"):
        return None
    given = reader.choice("role", [*Role, FUNCTION])
    if given is None:
        return None
    role = Role.TOOL if given == FUNCTION else Role(given)
    tool_calls = _read_tool_calls(reader, role, call_id)
    content = read_content(reader)
    if reader.fields.get("content") in (None, []):
        # Left out, null or without parts: no text, as OVMS takes it.
        refusal = reader.string("refusal") if role is Role.ASSISTANT else None
        content = () if refusal is None else (refusal,)
        if role is not Role.ASSISTANT and reader.present("refusal"):
            reader.refuse("refusal", f"is allowed in an assistant message, not in a {role} message")
    name, tool_call_id = reader.string("name"), reader.string("tool_call_id")
    if given == FUNCTION:
        reader.require("name")
        tool_call_id = called.get(name or "", call_id)
    elif role is Role.TOOL:
        reader.require("tool_call_id")
    reasoning = reader.string("reasoning")
    return Message(
        role=role,
        content=content,
        name=name,
        tool_calls=tool_calls,
        tool_call_id=tool_call_id,
        # vLLM's newer name comes beside the older one, which wins.
        reasoning_content=reader.string("reasoning_content") or reasoning,
    )


def read_content(reader: Reader, keys: Mapping[str, Collection[str]] = PARTS) -> Content:
    """Read a string, or the parts of an array; note what is wrong in the reader.

    Args:
        reader: What has the content.
        keys: The keys of each type of parts that it may have.
    """
    value = reader.fields.get("content")
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        complaint = f"must be a string or an array, not {kind(value)}"
        reader.refuse("content", complaint, "invalid_type")
        return ()
    types = [name for name in JSON_PARTS if name in keys]
    readers = reader.objects("content", keys, reader.limits.max_parts)
    parts = (_read_part(part, types) for part in readers)
    return tuple(part for part in parts if part is not None)


def _read_part(part: Reader, types: Collection[str]) -> ContentPart | None:
    if not part.require("type"):
        return None
    given: JsonValue = part.fields["type"]
    if given in UNSUPPORTED_PARTS:
        part.refuse("type", NO_SUCH_PARTS.format(given), "unsupported_value")
        return None
    if _has_bytes(part.fields.get("image")):
        return _read_image_file(part)
    known = part.choice("type", types)
    if known is None or not part.require(known):
        return None
    return _read_image(part) if known == "image_url" else part.string(known)


def _has_bytes(image: object) -> bool:
    return isinstance(image, dict) and isinstance(image.get("data"), bytes)


def _read_image(part: Reader) -> Image | None:
    image = part.object("image_url", IMAGE_KEYS)
    if image is None or not image.require("url"):
        return None
    url, low_detail = image.string("url"), _low_detail(image)
    return None if url is None else Image(url, low_detail=low_detail, field=part.path("image_url"))


def _read_image_file(part: Reader) -> Image | None:
    image = part.object("image", IMAGE_FILE_KEYS)
    if image is None:
        return None
    data, low_detail = read_image_file(image), _low_detail(image)
    return Image(data=data, low_detail=low_detail, field=part.path("image")) if data else None


def read_image_file(image: Reader) -> bytes:
    """Read an image that is sent by value; note what is wrong in the reader."""
    data = image.binary("data") or b""
    if not data:
        image.refuse("data", "is required", "missing_required_parameter")
    if image.require("mime_type"):
        # Only checked: the content tells what it is.
        image.choice("mime_type", IMAGE_TYPES)
    return data


def _low_detail(image: Reader) -> bool:
    return image.choice("detail", IMAGE_DETAILS) == "low"


def _read_tool_calls(reader: Reader, role: Role, call_id: str) -> tuple[ToolCall, ...]:
    """Read the calls of a message, in either form; `call_id` is for the older one."""
    if reader.present("audio"):
        reader.refuse("audio", "is not supported: models here take no audio", "unsupported_value")
    calls = reader.objects("tool_calls", CALL_KEYS, reader.limits.max_parts)
    older = reader.object("function_call", CALLED_FUNCTION_KEYS)
    if (calls or older) and role is not Role.ASSISTANT:
        name = "tool_calls" if calls else "function_call"
        reader.refuse(name, f"is allowed in an assistant message, not in a {role} message")
        return ()
    if calls and older:
        reader.refuse("function_call", "is the older form of tool_calls: send only one of them")
    read = [_read_tool_call(item) for item in calls]
    if older:
        read.append(_read_function(older, call_id))
    return tuple(filter(None, read))


def _read_tool_call(reader: Reader) -> ToolCall | None:
    given = reader.choice("type", ["function"])
    reader.require("id")
    reader.require("function")
    identifier = reader.string("id")
    function = reader.object("function", CALLED_FUNCTION_KEYS)
    if identifier is None or function is None or (given is None and reader.present("type")):
        return None
    return _read_function(function, identifier)


def _read_function(function: Reader, identifier: str) -> ToolCall | None:
    function.require("name")
    name = function.string("name")
    arguments = function.string("arguments")
    depth = function.limits.max_json_depth
    if arguments and text_deeper(arguments, depth):
        function.refuse("arguments", f"is nested more than {depth} levels deep")
    return None if name is None else ToolCall(identifier, name, arguments or "{}")
