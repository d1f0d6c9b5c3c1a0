"""The fields of a message as OpenAI's JSON has them.

A field that is not set is absent. Fields keep their names, so the path in an error is the path in
the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ovchat_server.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
    from google.protobuf.message import Message

    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.domain.json_value import JsonObject, JsonValue

# What makes JSON of messages of another shape than their JSON, by their full names. It gets the
# message and its path.
Converters: TypeAlias = Mapping[str, Callable[..., "JsonValue"]]

# Strings that hold JSON, which keeps the order of keys.
_JSON_TEXTS = frozenset(
    {
        "ovchat.v1.CreateChatCompletionRequest.chat_template_kwargs",
        "ovchat.v1.CreateChatCompletionRequest.documents",
        "ovchat.v1.CreateResponseRequest.chat_template_kwargs",
        "ovchat.v1.FunctionDefinition.parameters",
        "ovchat.v1.JsonSchemaFormat.schema",
        "ovchat.v1.ResponseFormat.structural_tag",
        "ovchat.v1.StructuredOutputs.json",
        "ovchat.v1.StructuredOutputs.structural_tag",
        "ovchat.v1.TokenizeRequest.chat_template_kwargs",
        "ovchat.v1.TokenizeRequest.documents",
    }
)


def message_fields(message: Message, path: FieldPath, converters: Converters) -> JsonObject:
    """Return the set fields of a message.

    Args:
        message: The message.
        path: Its path in the request.
        converters: What makes JSON of the messages in it; of others, this function.

    Raises:
        InvalidRequestError: What should be JSON is none.
    """
    return {
        field.name: _value(field, value, path, converters) for field, value in message.ListFields()
    }


def enum_name(enum: EnumDescriptor, number: int) -> str:
    """Return OpenAI's word: ROLE_USER of Role is "user"."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    return value.name.removeprefix(enum_prefix(enum)).lower()


def enum_prefix(enum: EnumDescriptor) -> str:
    """Return what the names of an enum's values begin with: "ROLE_" of Role."""
    return enum.values[0].name.removesuffix("UNSPECIFIED")


def which(message: Message, oneof: str, path: FieldPath) -> str:
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


def _value(
    field: FieldDescriptor,
    value: Any,  # noqa: ANN401
    path: FieldPath,
    converters: Converters,
) -> JsonValue:
    """Return the value of a field of the message at `path`."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {str(key): item for key, item in value.items()}
    convert = _converter(field, converters)
    if convert is None:
        scalars: JsonValue = list(value) if field.is_repeated else value
        return scalars
    path /= field.name
    if field.is_repeated:
        return [convert(item, path / index) for index, item in enumerate(value)]
    return convert(value, path)


def _converter(
    field: FieldDescriptor, converters: Converters
) -> Callable[[Any, FieldPath], JsonValue] | None:
    """Return what makes JSON of a field's value or of each of its values; None: they are JSON."""
    if field.message_type is not None:
        others = partial(message_fields, converters=converters)
        return converters.get(field.message_type.full_name, others)
    if (enum := field.enum_type) is not None:
        return lambda number, _: enum_name(enum, number)
    return _parsed if field.full_name in _JSON_TEXTS else None


def _parsed(text: str, path: FieldPath) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        complaint = f"must be JSON in a string: {error}."
        raise InvalidRequestError.about(path, complaint, "invalid_json") from error
    return value
