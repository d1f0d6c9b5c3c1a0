"""Random bytes to every RPC: none is a fault of the server, none stops it, none hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.api import httpbody_pb2
from google.protobuf import message_factory
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from hypothesis import given
from hypothesis import strategies as st

from ovchat.v1 import (
    chat_service_pb2,
    completion_service_pb2,
    embedding_service_pb2,
    model_service_pb2,
    provider_service_pb2,
    rerank_service_pb2,
    rest_service_pb2,
    server_service_pb2,
    tokenizer_service_pb2,
)
from tests.effort import examples
from tests.fuzz.bodies import bodies
from tests.fuzz.conftest import TIMEOUT
from tests.fuzz.messages import fill, messages, spoiled

if TYPE_CHECKING:
    from google.protobuf.descriptor import MethodDescriptor

    from tests.fuzz.conftest import Target

pytestmark = pytest.mark.slow

SERVICES = [
    service
    for module in (
        chat_service_pb2,
        completion_service_pb2,
        embedding_service_pb2,
        model_service_pb2,
        provider_service_pb2,
        rerank_service_pb2,
        rest_service_pb2,
        server_service_pb2,
        tokenizer_service_pb2,
        health_pb2,
        reflection_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
]
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for service in SERVICES
    for method in service.methods
    # It never ends.
    if method.name != "Watch"
}
ENDPOINTS = {
    "CreateChatCompletion": "chat",
    "StreamChatCompletion": "chat",
    "CreateCompletion": "text",
    "StreamCompletion": "text",
    "CreateResponse": "responses",
    "CountResponseInputTokens": "responses",
    "Tokenize": "tokenize",
    "Detokenize": "detokenize",
    "CreateEmbeddings": "embeddings",
    "Rerank": "rerank",
    "Score": "score",
}
FAULTS = {
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}


@pytest.mark.parametrize("path", METHODS)
def test_messages(target: Target, path: str) -> None:
    method = METHODS[path]

    @examples(60 if method.name in ENDPOINTS else 30)
    @given(data=requests(method))
    def send(data: bytes) -> None:
        assert ask(target.channel, path, method, data) not in FAULTS

    send()


@st.composite
def requests(draw: st.DrawFn, method: MethodDescriptor) -> bytes:
    """The bytes of a request."""
    endpoint = ENDPOINTS.get(method.name)
    request: Any
    if method.input_type.full_name == httpbody_pb2.HttpBody.DESCRIPTOR.full_name:
        kinds = st.sampled_from(["application/json"] * 5 + ["", "text/plain", "\0"])
        request = httpbody_pb2.HttpBody(
            content_type=draw(kinds), data=draw(bodies(endpoint or "chat"))
        )
    elif endpoint:
        request = draw(messages(endpoint))
    else:
        request = message_factory.GetMessageClass(method.input_type)()
        fill(draw, request)
    return draw(spoiled(request.SerializeToString()))


def ask(channel: grpc.Channel, path: str, method: MethodDescriptor, data: bytes) -> grpc.StatusCode:
    """The status of a call; an error says why, but of a service that health does not know."""
    try:
        if method.client_streaming:
            list(channel.stream_stream(path)(iter([data]), timeout=TIMEOUT))
        elif method.server_streaming:
            list(channel.unary_stream(path)(data, timeout=TIMEOUT))
        else:
            channel.unary_unary(path)(data, timeout=TIMEOUT)
    except grpc.RpcError as error:
        silent = not error.details() and path != "/grpc.health.v1.Health/Check"
        return grpc.StatusCode.UNKNOWN if silent else error.code()
    return grpc.StatusCode.OK
