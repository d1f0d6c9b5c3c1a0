"""Native gRPC on the same port."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.api import httpbody_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ovchat.v1 import chat_pb2, rest_service_pb2_grpc
from tests.rest.envoy.edge import chat_request, chat_stub
from tests.rest.envoy.paths import CHAT
from tests.rest.envoy.scripted import ERROR, MAX_BYTES

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge

STEPWISE = httpbody_pb2.HttpBody(data=b'{"stream": true, "stepwise": true}')


async def test_native_calls_pass_with_their_trailers(gate: Edge) -> None:
    answer = await chat_stub(gate).CreateChatCompletion(chat_request({}))
    assert answer.system_fingerprint == "demo"
    call = chat_stub(gate).StreamChatCompletion(chat_request({}))
    assert [chunk.id async for chunk in call] == ["0", "1"]
    assert dict(await call.trailing_metadata())["x-trailer"] == "kept"


async def test_native_messages_above_the_rest_limit_are_the_servers_to_judge(gate: Edge) -> None:
    large = chat_pb2.CreateChatCompletionRequest(model="x" * (MAX_BYTES + (4 << 20)))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        # The server answers with the model's name, which is more than this client takes.
        await chat_stub(gate).CreateChatCompletion(large)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "Received message larger than max" in (caught.value.details() or "")


async def test_a_native_caller_cannot_pass_for_rest(gate: Edge) -> None:
    await chat_stub(gate).CreateChatCompletion(
        chat_request({}),
        metadata=(("x-envoy-original-path", CHAT), ("x-envoy-original-method", "POST")),
    )
    assert "x-envoy-original-path" not in gate.seen.last
    assert "x-envoy-original-method" not in gate.seen.last
    assert gate.seen.last["x-request-id"]


@pytest.mark.parametrize("rpc", ["CreateChatCompletion", "StreamChatCompletion"])
async def test_native_errors_pass_untouched(gate: Edge, rpc: str) -> None:
    trailers = [["x-ovchat-error", json.dumps(ERROR)], ["retry-after", "3"]]
    call = getattr(chat_stub(gate), rpc)(
        chat_request({"abort": "NOT_FOUND", "details": "no \u00e9", "trailers": trailers})
    )
    outcome = call.read() if rpc.startswith("Stream") else call
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await outcome
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == "no \u00e9"
    metadata = dict(caught.value.trailing_metadata()) | dict(caught.value.initial_metadata())
    assert metadata["x-ovchat-error"] == json.dumps(ERROR)
    assert metadata["retry-after"] == "3"


async def test_a_callers_deadline_reaches_the_server(gate: Edge) -> None:
    await chat_stub(gate).CreateChatCompletion(chat_request({}), timeout=5000)
    assert gate.seen.remaining[-1] == pytest.approx(5000, rel=0.01)


async def test_a_call_without_a_deadline_has_none(gate: Edge) -> None:
    await chat_stub(gate).CreateChatCompletion(chat_request({}))
    assert gate.seen.remaining[-1] is None or gate.seen.remaining[-1] > 1e6
    await gate.post({})
    assert gate.seen.remaining[-1] is None or gate.seen.remaining[-1] > 1e6


async def test_a_deadline_ends_the_call_as_one(gate: Edge) -> None:
    stub = rest_service_pb2_grpc.RestServiceStub(gate.channel)

    async def code() -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in stub.CreateChatCompletion(STEPWISE, timeout=0.3):
                pass
        return caught.value.code()

    # Client, proxy and server all count; whoever is first, the answer is the same.
    codes = await asyncio.gather(*(code() for _ in range(50)))
    assert set(codes) == {grpc.StatusCode.DEADLINE_EXCEEDED}


@pytest.mark.slow
async def test_a_deadline_cancels_what_the_server_began(gate: Edge) -> None:
    stub = rest_service_pb2_grpc.RestServiceStub(gate.channel)
    metadata = (("x-request-id", "deadline"),)
    call = stub.CreateChatCompletion(STEPWISE, timeout=3, metadata=metadata)
    first = await call.read()
    assert first.data == b"data: 0\n\n"
    cancelled = gate.seen.calls["deadline"].cancelled
    assert not cancelled.is_set()
    await cancelled.wait()


async def test_health_and_reflection_pass(gate: Edge) -> None:
    stub: Any = health_pb2_grpc.HealthStub(gate.channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    reflector: Any = reflection_pb2_grpc.ServerReflectionStub
    call = reflector(gate.channel).ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(list_services="")])
    )
    listed = [s.name for s in (await call.read()).list_services_response.service]
    assert listed == ["ovchat.v1.ChatService"]


async def test_an_unknown_grpc_method_is_unimplemented(gate: Edge) -> None:
    call: Any = gate.channel.unary_unary("/no.Such/Method")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
