"""Envoy's question whether a request has a valid key, before its body is read.

It is the RPC of Envoy's filter ext_authz, asked where the server has keys. The server checks the
key of each call again: what Envoy could not ask about meets that check.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ovchat_server.domain.errors import AuthenticationError
from ovchat_server.rpc.authentication import authenticated
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.message import Message

    from ovchat_server.domain.identity import KeyRing
    from ovchat_server.rpc.middleware import Context

SERVICE: Final = "envoy.service.auth.v3.Authorization"
_STRING: Final = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_INT: Final = descriptor_pb2.FieldDescriptorProto.TYPE_INT32
# Of envoy/service/auth/v3 what is read and written here: fields by message, each with its number.
# The package that has them in full, xds-protos, has files of googleapis-common-protos, too.
_FIELDS: Final[Mapping[str, Mapping[str, tuple[int, Any]]]] = {
    "CheckRequest": {"attributes": (1, "Attributes")},
    "Attributes": {"request": (4, "Request")},
    "Request": {"http": (2, "HttpRequest")},
    "HttpRequest": {"headers": (3, "*Header")},
    # An entry of a map on the wire.
    "Header": {"key": (1, _STRING), "value": (2, _STRING)},
    "CheckResponse": {"status": (1, "Status"), "denied_response": (2, "Denied")},
    "Status": {"code": (1, _INT)},
    "Denied": {"status": (1, "Status"), "headers": (2, "*HeaderOption"), "body": (3, _STRING)},
    "HeaderOption": {"header": (1, "Header")},
}


def authorization(keys: KeyRing) -> grpc.GenericRpcHandler:
    """Return the service that tells Envoy whether a request has one of `keys`."""
    messages = _messages()

    async def check(request: Any, context: Context) -> Message:  # noqa: ANN401, ARG001
        answer: Any = messages["CheckResponse"]()
        sent = {header.key: header.value for header in request.attributes.request.http.headers}
        try:
            if keys.required:
                authenticated(sent, keys)
        except AuthenticationError as error:
            # For the log and the metrics: no other RPC is called for this request.
            current_record().error = error
            answer.status.code = grpc.StatusCode.UNAUTHENTICATED.value[0]
            answer.denied_response.status.code = HTTPStatus.UNAUTHORIZED.value
            answer.denied_response.body = error.message
            added = answer.denied_response.headers.add().header
            added.key, added.value = "www-authenticate", "Bearer"
        else:
            answer.status.code = grpc.StatusCode.OK.value[0]
        return cast("Message", answer)

    method = grpc.unary_unary_rpc_method_handler(
        check,
        request_deserializer=messages["CheckRequest"].FromString,
        response_serializer=messages["CheckResponse"].SerializeToString,
    )
    return grpc.method_handlers_generic_handler(SERVICE, {"Check": method})


def _messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="ext_authz.proto", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    for message, fields in _FIELDS.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            repeated = isinstance(kind, str) and kind.startswith("*")
            added = described.field.add(
                name=name,
                number=number,
                label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL,
            )
            if isinstance(kind, str):
                added.type, added.type_name = field.TYPE_MESSAGE, kind.removeprefix("*")
            else:
                added.type = kind
    # A pool of its own: other programs may have the real ones.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(name) for name in _FIELDS)
    return {kind.name: message_factory.GetMessageClass(kind) for kind in found}
