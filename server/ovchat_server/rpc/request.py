"""From a request message to the domain, by way of OpenAI's request object.

The rules live in `domain`, once for both doors; here only the shapes differ. A field that is
not set is absent. Fields keep their names, so the path in an error is the path here. Only the text
of a structural tag may hold unknown keys, and no header names them here: they are refused.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from ovchat.v1 import (
    chat_pb2,
    completion_pb2,
    format_pb2,
    message_pb2,
    tokenizer_service_pb2,
    tool_pb2,
)
from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.limits import DEFAULT_LIMITS, too_many_parts
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.domain.tokenization_request import read_tokenize_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.domain.tokenization import TokenizeRequest


def chat_request(
    request: chat_pb2.CreateChatCompletionRequest, *, stream: bool, limits: Limits = DEFAULT_LIMITS
) -> ChatRequest:
    """Read the chat request in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _prompt_fields(request, limits)
    with contract_paths(request):
        return read_chat_request({**fields, "stream": stream}, strict=True, limits=limits)


def text_request(
    request: completion_pb2.CreateCompletionRequest,
    *,
    stream: bool,
    limits: Limits = DEFAULT_LIMITS,
) -> TextRequest:
    """Read the text completion request in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _fields(request, FieldPath())
    with contract_paths(request):
        return read_text_request({**fields, "stream": stream}, strict=True, limits=limits)


def tokenize_request(
    request: tokenizer_service_pb2.TokenizeRequest, limits: Limits = DEFAULT_LIMITS
) -> TokenizeRequest:
    """Read the tokenize request in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    fields = _prompt_fields(request, limits)
    with contract_paths(request):
        return read_tokenize_request(fields, limits=limits)


def _prompt_fields(
    request: chat_pb2.CreateChatCompletionRequest | tokenizer_service_pb2.TokenizeRequest,
    limits: Limits,
) -> JsonObject:
    """Return the set fields of a request that a chat template is rendered for."""
    # Before each of them becomes a mapping.
    parts = sum(len(message.content) + len(message.tool_calls) for message in request.messages)
    if complaint := too_many_parts(parts, limits):
        raise InvalidRequestError.about("messages", f"{complaint}.")
    return _fields(request, FieldPath())


@contextlib.contextmanager
def contract_paths(message: Message) -> Iterator[None]:
    """Name faults by the fields of a message: the part of a path that is one."""
    descriptor: Descriptor = message.DESCRIPTOR  # type: ignore[assignment]  # of any runtime
    try:
        yield
    except InvalidRequestError as error:
        error.respell(_with_token_ids, lambda path: _known_part(_with_token_ids(path), descriptor))
        raise


def _with_token_ids(path: FieldPath) -> FieldPath:
    """Return a path in which OpenAI's list of lists of tokens is a list of messages."""
    match path.steps:
        case ("prompt", int() as prompt, int() as token):
            return FieldPath.of("prompt", prompt, "token_ids", "values", token)
    return path


def _known_part(path: FieldPath, descriptor: Descriptor | None) -> FieldPath:
    """Return the beginning of a path, as far as it names fields of a message."""
    known: list[str | int] = []
    for step in path.steps:
        if isinstance(step, str):
            field = descriptor.fields_by_name.get(step) if descriptor else None
            if field is None:
                break
            descriptor = field.message_type
        known.append(step)
    return FieldPath(tuple(known))


def _fields(message: Message, path: FieldPath) -> JsonObject:
    return {field.name: _value(field, value, path) for field, value in message.ListFields()}


def _value(field: FieldDescriptor, value: Any, path: FieldPath) -> JsonValue:  # noqa: ANN401
    """Return the value of a field of the message at `path`."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {str(key): item for key, item in value.items()}
    convert = _converter(field)
    if convert is None:
        scalars: JsonValue = list(value) if field.is_repeated else value
        return scalars
    path /= field.name
    if field.is_repeated:
        return [convert(item, path / index) for index, item in enumerate(value)]
    return convert(value, path)


def _converter(field: FieldDescriptor) -> Callable[[Any, FieldPath], JsonValue] | None:
    """Return what makes JSON of a field's value or of each of its values; None: they are JSON."""
    if field.message_type is not None:
        return _CONVERTERS.get(field.message_type.full_name, _fields)
    if (enum := field.enum_type) is not None:
        return lambda number, _: _enum_name(enum, number)
    return _parsed if field.full_name in _JSON_TEXTS else None


def _enum_name(enum: EnumDescriptor, number: int) -> str:
    """Return OpenAI's word: ROLE_USER of Role is "user"."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    return value.name.removeprefix(enum.values[0].name.removesuffix("UNSPECIFIED")).lower()


def _parsed(text: str, path: FieldPath) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        complaint = f"must be JSON in a string: {error}."
        raise InvalidRequestError.about(path, complaint, "invalid_json") from error
    return value


def _which(message: Message, oneof: str, path: FieldPath) -> str:
    """Return which field of a oneof is set.

    Raises:
        InvalidRequestError: None is.
    """
    kind = message.WhichOneof(oneof)
    if kind is None:
        names = ", ".join(field.name for field in message.DESCRIPTOR.oneofs_by_name[oneof].fields)
        raise InvalidRequestError.about(
            path, f"requires one of: {names}.", "missing_required_parameter"
        )
    return str(kind)


def _content_part(part: message_pb2.ContentPart, path: FieldPath) -> JsonObject:
    return {"type": _which(part, "part", path), **_fields(part, path)}


def _image(image: message_pb2.Image, path: FieldPath) -> JsonObject:
    # The bytes as they are; there even if they are empty, which tells that the caller sent some.
    empty: Any = b""
    return {"data": empty, **_fields(image, path)}


def _prompt(prompt: completion_pb2.Prompt, path: FieldPath) -> JsonValue:
    if _which(prompt, "prompt", path) == "text":
        return prompt.text
    return list(prompt.token_ids.values)


def _tool(tool: tool_pb2.Tool, path: FieldPath) -> JsonObject:
    return {"type": _which(tool, "tool", path), **_fields(tool, path)}


def _tool_choice(choice: tool_pb2.ToolChoice, path: FieldPath) -> JsonValue:
    match _which(choice, "choice", path):
        case "mode":
            return _enum_name(tool_pb2.ToolChoiceMode.DESCRIPTOR, choice.mode)
        case "function_name":
            return {"type": "function", "function": {"name": choice.function_name}}
    allowed = choice.allowed_tools
    return {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": _enum_name(tool_pb2.ToolChoiceMode.DESCRIPTOR, allowed.mode),
            "tools": [
                {"type": "function", "function": {"name": name}} for name in allowed.function_names
            ],
        },
    }


def _response_format(wanted: format_pb2.ResponseFormat, path: FieldPath) -> JsonObject:
    kind = _which(wanted, "format", path)
    described = _fields(wanted, path)[kind]
    match kind:
        case "json_schema":
            return {"type": kind, kind: described}
        case "structural_tag" if isinstance(described, dict):
            # It says its type itself.
            return described
    # Text and any JSON have nothing to say beyond their type; what is no tag has no format.
    return {"type": kind}


def _structured_outputs(outputs: format_pb2.StructuredOutputs, path: FieldPath) -> JsonObject:
    if _which(outputs, "constraint", path) == "choice":
        return {"choice": list(outputs.choice.values)}
    return _fields(outputs, path)


# Strings that hold JSON, which keeps the order of keys.
_JSON_TEXTS = frozenset(
    {
        "ovchat.v1.CreateChatCompletionRequest.chat_template_kwargs",
        "ovchat.v1.CreateChatCompletionRequest.documents",
        "ovchat.v1.FunctionDefinition.parameters",
        "ovchat.v1.JsonSchemaFormat.schema",
        "ovchat.v1.ResponseFormat.structural_tag",
        "ovchat.v1.StructuredOutputs.json",
        "ovchat.v1.StructuredOutputs.structural_tag",
        "ovchat.v1.TokenizeRequest.chat_template_kwargs",
        "ovchat.v1.TokenizeRequest.documents",
    }
)
_CONVERTERS: dict[str, Callable[..., JsonValue]] = {
    message_pb2.ContentPart.DESCRIPTOR.full_name: _content_part,
    message_pb2.Image.DESCRIPTOR.full_name: _image,
    completion_pb2.Prompt.DESCRIPTOR.full_name: _prompt,
    tool_pb2.Tool.DESCRIPTOR.full_name: _tool,
    tool_pb2.ToolChoice.DESCRIPTOR.full_name: _tool_choice,
    format_pb2.ResponseFormat.DESCRIPTOR.full_name: _response_format,
    format_pb2.StructuredOutputs.DESCRIPTOR.full_name: _structured_outputs,
}
