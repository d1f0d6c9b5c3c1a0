"""From a request message to plain fields, in the shape of OpenAI's request object.

The rules live in `api`, once for both doors; here only the shapes differ. A field that is
not set is absent. Fields keep their names, so the path in an error is the path here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat.v1 import chat_pb2, format_pb2, message_pb2, tokenizer_service_pb2, tool_pb2
from ovchat_server.api.errors import InvalidRequestError, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message

    from ovchat_server.api.json_value import JsonObject, JsonValue


def chat_request_fields(request: chat_pb2.CreateChatCompletionRequest) -> JsonObject:
    """The set fields of a chat request.

    Raises:
        InvalidRequestError: A field that holds JSON as text does not.
    """
    return _with_template_arguments(request)


def tokenize_request_fields(request: tokenizer_service_pb2.TokenizeRequest) -> JsonObject:
    """The set fields of a tokenize request.

    Raises:
        InvalidRequestError: A field that holds JSON as text does not.
    """
    return _with_template_arguments(request)


def _with_template_arguments(
    request: chat_pb2.CreateChatCompletionRequest | tokenizer_service_pb2.TokenizeRequest,
) -> JsonObject:
    fields = _fields(request, "")
    if request.HasField("chat_template_kwargs"):
        fields["chat_template_kwargs"] = _parsed(
            request.chat_template_kwargs, "chat_template_kwargs"
        )
    return fields


def _fields(message: Message, path: str) -> JsonObject:
    fields: JsonObject = {}
    for field, value in message.ListFields():
        fields[field.name] = _value(field, value, f"{path}.{field.name}" if path else field.name)
    return fields


def _value(field: FieldDescriptor, value: object, path: str) -> JsonValue:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        pairs: Mapping[str, JsonValue] = value  # type: ignore[assignment]
        return {str(key): item for key, item in pairs.items()}
    if field.is_repeated:
        items: Iterable[object] = value  # type: ignore[assignment]
        return [_single(field, item, f"{path}[{index}]") for index, item in enumerate(items)]
    return _single(field, value, path)


def _single(field: FieldDescriptor, value: object, path: str) -> JsonValue:
    if field.enum_type is not None:
        return _enum_name(field.enum_type, value)  # type: ignore[arg-type]
    if field.message_type is None:
        return value  # type: ignore[return-value]
    convert = _CONVERTERS.get(field.message_type.full_name, _fields)
    return convert(value, path)


def _enum_name(enum: EnumDescriptor, number: int) -> str:
    """OpenAI's word: ROLE_USER of Role is "user"."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    return value.name.removeprefix(enum.values[0].name.removesuffix("UNSPECIFIED")).lower()


def _parsed(text: str, path: str) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"{path} must hold JSON as text: {error}."
        raise InvalidRequestError.of([Violation(path, message, "invalid_json")]) from error
    return value


def _content_part(part: message_pb2.ContentPart, path: str) -> JsonObject:
    kind = part.WhichOneof("part")
    return {} if kind is None else {"type": kind, **_fields(part, path)}


def _tool(tool: tool_pb2.Tool, path: str) -> JsonObject:
    kind = tool.WhichOneof("tool")
    fields = _fields(tool, path)
    function = fields.get("function")
    if isinstance(function, dict) and tool.function.HasField("parameters"):
        function["parameters"] = _parsed(tool.function.parameters, f"{path}.function.parameters")
    return {} if kind is None else {"type": kind, **fields}


def _tool_choice(choice: tool_pb2.ToolChoice, path: str) -> JsonValue:
    match choice.WhichOneof("choice"):
        case "mode":
            return _enum_name(tool_pb2.ToolChoiceMode.DESCRIPTOR, choice.mode)
        case "function_name":
            return {"type": "function", "function": {"name": choice.function_name}}
        case "allowed_tools":
            return {"type": "allowed_tools", "allowed_tools": _fields(choice, path)}
    return {}


def _response_format(form: format_pb2.ResponseFormat, path: str) -> JsonObject:
    kind = form.WhichOneof("format")
    if kind is None:
        return {}
    # Text and any JSON have nothing to say beyond their type.
    fields = _fields(form, path)
    return {"type": kind, **({} if kind in {"text", "json_object"} else fields)}


_CONVERTERS: dict[str, Callable[..., JsonValue]] = {
    message_pb2.ContentPart.DESCRIPTOR.full_name: _content_part,
    tool_pb2.Tool.DESCRIPTOR.full_name: _tool,
    tool_pb2.ToolChoice.DESCRIPTOR.full_name: _tool_choice,
    format_pb2.ResponseFormat.DESCRIPTOR.full_name: _response_format,
}
