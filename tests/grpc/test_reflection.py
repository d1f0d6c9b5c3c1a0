"""grpc.reflection: what tools learn of the server that have no proto files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2

if TYPE_CHECKING:
    from tests.grpc.conftest import Client

SERVICES = {
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "ovchat.v1.ChatService",
    "ovchat.v1.CompletionService",
    "ovchat.v1.EmbeddingService",
    "ovchat.v1.ModelService",
    "ovchat.v1.ProviderService",
    "ovchat.v1.RerankService",
    "ovchat.v1.ResponseService",
    "ovchat.v1.RestService",
    "ovchat.v1.ServerService",
    "ovchat.v1.TokenizerService",
}


@pytest.fixture(params=["v1", "v1alpha"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def asked(
    client: Client, version: str, *questions: dict[str, Any]
) -> list[reflection_pb2.ServerReflectionResponse]:
    """What is answered on one stream."""
    call = client.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    requests = [reflection_pb2.ServerReflectionRequest(**fields) for fields in questions]
    return [answer async for answer in call(iter(requests))]


def files(answer: reflection_pb2.ServerReflectionResponse) -> list[FileDescriptorProto]:
    """The files of an answer."""
    return [
        FileDescriptorProto.FromString(data)
        for data in answer.file_descriptor_response.file_descriptor_proto
    ]


async def test_lists_all_services(client: Client, version: str) -> None:
    [answer] = await asked(client, version, {"list_services": ""})

    assert {service.name for service in answer.list_services_response.service} == SERVICES


@pytest.mark.parametrize("service", sorted(SERVICES))
async def test_what_it_tells_is_enough_to_call(client: Client, version: str, service: str) -> None:
    [answer] = await asked(client, version, {"file_containing_symbol": service})

    told = {file.name: file for file in files(answer)}
    pool = DescriptorPool()

    def add(name: str) -> None:
        # Each once, behind what it imports.
        file = told.pop(name, None)
        if file is not None:
            for imported in file.dependency:
                add(imported)
            pool.Add(file)  # type: ignore[no-untyped-call]

    add(files(answer)[0].name)
    assert not told
    for method in pool.FindServiceByName(service).methods:
        GetMessageClass(method.input_type)()


async def test_tells_the_comments(client: Client, version: str) -> None:
    [answer] = await asked(client, version, {"file_containing_symbol": "ovchat.v1.ChatService"})

    told = [
        location.leading_comments
        for file in files(answer)
        for location in file.source_code_info.location
    ]
    assert any("Generates chat completions." in comment for comment in told)
    assert any("A message of a conversation." in comment for comment in told)


async def test_what_is_not_there_is_an_answer_and_the_stream_goes_on(
    client: Client, version: str
) -> None:
    wrong, right = await asked(
        client, version, {"file_containing_symbol": "ovchat.v1.Nothing"}, {"list_services": ""}
    )

    assert wrong.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    assert right.list_services_response.service
