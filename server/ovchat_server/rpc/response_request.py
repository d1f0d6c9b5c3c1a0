"""From a request message for a response to the domain, by way of OpenAI's request object."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from ovchat.v1 import format_pb2, message_pb2, response_item_pb2, response_pb2, response_tool_pb2
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.limits import DEFAULT_LIMITS, too_many_parts
from ovchat_server.domain.messages import read_image_file
from ovchat_server.domain.reader import Reader
from ovchat_server.domain.responses.reading import read_responses_request
from ovchat_server.rpc.contract_paths import contract_paths
from ovchat_server.rpc.message_fields import message_fields, which
from ovchat_server.rpc.request import structured_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.responses.request import ResponsesRequest
    from ovchat_server.rpc.message_fields import Converters


def response_request(
    request: response_pb2.CreateResponseRequest, *, stream: bool, limits: Limits = DEFAULT_LIMITS
) -> ResponsesRequest:
    """Read the request in a message.

    Raises:
        InvalidRequestError: With every fault found, and the contract's paths.
    """
    # Before each of them becomes a mapping.
    if complaint := too_many_parts(sum(map(_parts, request.input)), limits):
        raise InvalidRequestError.about("input", f"{complaint}.")
    fields = _fields(request, FieldPath())
    with contract_paths(request):
        return read_responses_request({**fields, "stream": stream}, strict=True, limits=limits)


def _parts(item: response_item_pb2.ResponseItem) -> int:
    kind = item.WhichOneof("item")
    fields = getattr(item, kind).ListFields() if kind else ()
    return sum(len(value) for field, value in fields if field.is_repeated)


def _fields(message: Message, path: FieldPath) -> JsonObject:
    return message_fields(message, path, _CONVERTERS)


def _by_type(oneof: str) -> Callable[[Message, FieldPath], JsonObject]:
    """Return what makes an object with a key `type` of a message with a oneof."""

    def convert(message: Message, path: FieldPath) -> JsonObject:
        kind = which(message, oneof, path)
        value: Any = _fields(message, path)[kind]
        if isinstance(value, str):
            value = {"refusal" if kind == "refusal" else "text": value}
        return {"type": kind, **value}

    return convert


def _tool_choice(choice: response_tool_pb2.ResponseToolChoice, path: FieldPath) -> JsonValue:
    if choice.HasField("mode"):
        return _fields(choice, path)["mode"]
    return _by_type("choice")(choice, path)


def _message(message: response_item_pb2.ResponseMessage, path: FieldPath) -> JsonObject:
    return {"content": [], **_fields(message, path)}


def _call_output(output: response_item_pb2.ResponseCallOutput, path: FieldPath) -> JsonObject:
    return {"output": [], **_fields(output, path)}


def _output_text(part: response_item_pb2.ResponseOutputText, _: FieldPath) -> JsonObject:
    # Its log probabilities are nothing to the model.
    return {"text": part.text, "annotations": []}


def _image(image: message_pb2.Image, path: FieldPath) -> JsonObject:
    reader = Reader(message_fields(image, path, {}), [], path)
    data = reader.checked(read_image_file(reader))
    # A request that is kept is listed in JSON, which has no bytes.
    url = f"data:{image.mime_type};base64,{base64.b64encode(data).decode()}"
    detail: JsonObject = {"detail": image.detail} if image.HasField("detail") else {}
    return {"type": "input_image", "image_url": url, **detail}


_CONVERTERS: Converters = {
    format_pb2.StructuredOutputs.DESCRIPTOR.full_name: structured_outputs,
    message_pb2.Image.DESCRIPTOR.full_name: _image,
    response_item_pb2.ResponseItem.DESCRIPTOR.full_name: _by_type("item"),
    response_item_pb2.ResponseMessage.DESCRIPTOR.full_name: _message,
    response_item_pb2.ResponseCallOutput.DESCRIPTOR.full_name: _call_output,
    response_item_pb2.ResponseContentPart.DESCRIPTOR.full_name: _by_type("part"),
    response_item_pb2.ResponseOutputText.DESCRIPTOR.full_name: _output_text,
    response_pb2.ResponseTextFormat.DESCRIPTOR.full_name: _by_type("format"),
    response_tool_pb2.ResponseTool.DESCRIPTOR.full_name: _by_type("tool"),
    response_tool_pb2.ResponseToolFormat.DESCRIPTOR.full_name: _by_type("format"),
    response_tool_pb2.ResponseToolChoice.DESCRIPTOR.full_name: _tool_choice,
    response_tool_pb2.ResponseAllowedTool.DESCRIPTOR.full_name: _by_type("tool"),
}
