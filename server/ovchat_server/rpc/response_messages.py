"""From OpenAI's objects to messages: responses and the events that build them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor

from ovchat.v1 import response_event_pb2, response_pb2
from ovchat_server.rpc.message_fields import enum_prefix

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.responses.request import ResponsesRequest

# What is always the same: messages do not have it.
CONSTANT = frozenset({"object", "annotations", "cache_write_tokens"})


def as_told(request: ResponsesRequest) -> ResponsesRequest:
    """Return a request of which a response repeats what the message has: the caller knows it."""
    told: JsonObject = {
        "instructions": request.instructions,
        "previous_response_id": request.previous_response_id,
        "metadata": request.repeated.get("metadata"),
    }
    return replace(request, repeated=told)


def response_message(response: JsonObject) -> response_pb2.Response:
    """Return a response; its request was `as_told`."""
    return response_pb2.Response(**_converted(response, response_pb2.Response.DESCRIPTOR))


def event_message(event: JsonObject) -> response_event_pb2.ResponseEvent:
    """Return an event; the request of its response was `as_told`."""
    kind = str(event["type"]).removeprefix("response.").replace(".", "_")
    fields: JsonObject = {**event, "type": kind}
    number: Any = fields.pop("sequence_number")
    converted = _converted(fields, response_event_pb2.ResponseEvent.DESCRIPTOR)
    return response_event_pb2.ResponseEvent(sequence_number=number, **converted)


def _converted(fields: JsonObject, descriptor: Descriptor) -> dict[str, Any]:
    """Return the fields of a message. What OpenAI tells by a key `type` is a oneof there.

    Raises:
        KeyError: The message lacks one of them.
    """
    if "type" not in fields:
        return {
            name: _value(value, descriptor.fields_by_name[name])
            for name, value in fields.items()
            if value is not None and name not in CONSTANT
        }
    kind = str(fields["type"])
    inner = {name: value for name, value in fields.items() if name != "type"}
    field = descriptor.fields_by_name[kind]
    return {kind: inner["text"] if field.message_type is None else _value(inner, field)}


def _value(value: Any, field: FieldDescriptor) -> Any:  # noqa: ANN401  any of JSON, any of protobuf
    if field.message_type is not None and not field.message_type.GetOptions().map_entry:
        if field.is_repeated:
            return [_converted(item, field.message_type) for item in value]
        return _converted(value, field.message_type)
    if field.enum_type is not None:
        return f"{enum_prefix(field.enum_type)}{value.upper()}"
    return bytes(value) if field.type == FieldDescriptor.TYPE_BYTES else value
