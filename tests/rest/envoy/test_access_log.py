"""What Envoy writes down."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.api import httpbody_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat.v1 import rest_service_pb2_grpc
from tests.rest.envoy.edge import chat_request, chat_stub, logged
from tests.rest.envoy.paths import CHAT
from tests.rest.envoy.scripted import WITH_ERROR

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge


async def test_a_request_is_logged_as_one_json_line(gate: Edge) -> None:
    own = "log-1"
    await gate.post({"stream": True}, CHAT + "?secret=1", headers={"x-request-id": own})
    entry = await logged(gate, own)
    assert entry["method"] == "POST"
    assert entry["path"] == CHAT
    assert entry["status"] == 200
    assert entry["grpc_status"] == 0
    assert entry["bytes_sent"] > 0
    assert entry["duration_ms"] >= 0
    assert entry["attempts"] == 1
    assert entry["flags"] in ("-", None)


@pytest.mark.parametrize(
    ("code", "trailers", "number"),
    [("NOT_FOUND", [], 5), ("UNAVAILABLE", list(map(list, WITH_ERROR)), 14)],
)
async def test_the_grpc_status_of_a_rest_error_is_logged(
    gate: Edge, code: str, trailers: list[list[str]], number: int
) -> None:
    own = f"log-{code}"
    await gate.post({"abort": code, "trailers": trailers}, headers={"x-request-id": own})
    assert (await logged(gate, own))["grpc_status"] == number


async def test_the_grpc_status_of_a_unary_answer_and_a_native_call_is_logged(gate: Edge) -> None:
    await gate.http.get("/v3/models", headers={"x-request-id": "log-unary"})
    assert (await logged(gate, "log-unary"))["grpc_status"] == 0
    with pytest.raises(grpc.aio.AioRpcError):
        await chat_stub(gate).CreateChatCompletion(
            chat_request({"abort": "NOT_FOUND"}), metadata=(("x-request-id", "log-native"),)
        )
    entry = await logged(gate, "log-native")
    assert entry["grpc_status"] == 5
    assert entry["path"] == "/ovchat.v1.ChatService/CreateChatCompletion"


async def test_a_failed_request_is_logged_with_its_reason(gate: Edge) -> None:
    await gate.http.get("/nope", headers={"x-request-id": "log-2"})
    entry = await logged(gate, "log-2")
    assert entry["status"] == 404
    assert entry["details"] == "direct_response"


async def test_a_client_that_left_before_its_answer_is_logged_as_499(gate: Edge) -> None:
    asking = asyncio.create_task(gate.post({"hang": True}, headers={"x-request-id": "left-unary"}))
    await gate.seen.calls["left-unary"].reached.wait()
    asking.cancel()
    assert (await logged(gate, "left-unary"))["status"] == 499


async def test_a_client_that_left_while_it_sent_is_logged_as_499(gate: Edge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(
        b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: left-sending\r\n"
        b"content-length: 50\r\nexpect: 100-continue\r\n\r\n{"
    )
    assert b" 100 " in await reader.readline()
    writer.close()
    assert (await logged(gate, "left-sending"))["status"] == 499


async def test_a_cancelled_native_call_is_logged_as_499(gate: Edge) -> None:
    stub = rest_service_pb2_grpc.RestServiceStub(gate.channel)
    body = httpbody_pb2.HttpBody(data=b'{"hang": true}')
    call = stub.CreateChatCompletion(body, metadata=(("x-request-id", "left-native"),))
    await gate.seen.calls["left-native"].reached.wait()
    call.cancel()
    assert (await logged(gate, "left-native"))["status"] == 499


async def test_a_client_that_left_amid_its_answer_is_logged_with_the_answers_status(
    gate: Edge,
) -> None:
    script = {"stream": True, "stepwise": True}
    headers = {"x-request-id": "left-stream"}
    async with gate.http.stream("POST", CHAT, json=script, headers=headers) as answer:
        await anext(answer.aiter_text())
    entry = await logged(gate, "left-stream")
    assert entry["status"] == 200
    assert entry["details"] == "downstream_remote_disconnect"


async def test_health_probes_that_go_well_are_not_logged(gate: Edge) -> None:
    for path in ("/health", "/v2/health/live", "/v2/health/ready"):
        await gate.http.get(path, headers={"x-request-id": "probe"})
    stub: Any = health_pb2_grpc.HealthStub(gate.channel)
    await stub.Check(health_pb2.HealthCheckRequest(), metadata=(("x-request-id", "probe"),))
    await gate.http.get("/v3/models", headers={"x-request-id": "after-probes"})
    await logged(gate, "after-probes")
    assert '"probe"' not in gate.access_log.read_text()
