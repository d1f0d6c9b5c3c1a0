"""grpc.reflection, v1 and v1alpha: what tools that have no proto files ask first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio
from google.protobuf import descriptor_pool, text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_reflection.v1alpha import reflection, reflection_pb2

from ovchat_server.resources import resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable

    from ovchat_server.rpc.middleware import Context

V1ALPHA = reflection.SERVICE_NAME
# The same messages under another name; newer tools ask for it first.
V1 = V1ALPHA.replace("v1alpha", "v1")
CONTRACT = "ovchat.v1"


def add_reflection(services: Iterable[str], server: grpc.aio.Server) -> None:
    """Let a server tell of some services, and of reflection itself.

    Raises:
        FileNotFoundError: The installation comes without the descriptor set.
    """
    _describe_v1()
    method = grpc.stream_stream_rpc_method_handler(
        _Reflection((*services, V1ALPHA, V1)).answer,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    handlers = {"ServerReflectionInfo": method}
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(name, handlers) for name in (V1ALPHA, V1)]
    )


class _Reflection:
    """grpcio-reflection's answers, with the contract's comments.

    It answers from generated code, which does not keep them.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._servicer = reflection.aio.ReflectionServicer(services)
        contract = FileDescriptorSet.FromString(resource("gen/ovchat.binpb").read_bytes())
        self._commented = {
            file.name: file.SerializeToString()
            for file in contract.file
            if file.package == CONTRACT
        }

    async def answer(
        self,
        requests: AsyncIterable[reflection_pb2.ServerReflectionRequest],
        context: Context,
    ) -> AsyncIterator[reflection_pb2.ServerReflectionResponse]:
        # Its type is published as that of a coroutine.
        responses: AsyncIterable[reflection_pb2.ServerReflectionResponse] = (
            self._servicer.ServerReflectionInfo(requests, context)  # type: ignore[assignment]
        )
        async for response in responses:
            if response.HasField("file_descriptor_response"):
                files = response.file_descriptor_response.file_descriptor_proto
                files[:] = [
                    self._commented.get(FileDescriptorProto.FromString(file).name, file)
                    for file in files
                ]
            yield response


def _describe_v1() -> None:
    """Add v1's file, which grpcio-reflection does not ship, to the pool that it answers from."""
    file = FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(file)
    text = text_format.MessageToString(file).replace("v1alpha", "v1")
    descriptor_pool.Default().Add(text_format.Parse(text, FileDescriptorProto()))
