"""gRPC on Envoy's port, and tools that speak it by reflection."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING

import grpc.aio
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from ovchat.v1 import chat_service_pb2_grpc, server_service_pb2, server_service_pb2_grpc
from tests.grpc.requests import ask, joined, successor
from tests.rest.conftest import given_up
from tests.successor import successor_text

if TYPE_CHECKING:
    import httpx

    from tests.rest.conftest import Stack

BUF = Path(sysconfig.get_path("scripts")) / "buf"


@pytest.fixture(params=["rest_port", "grpc_port"], ids=["envoy", "server"])
def port(request: pytest.FixtureRequest, stack: Stack) -> int:
    number: int = getattr(stack, request.param)
    return number


async def test_a_stream_passes(port: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = chat_service_pb2_grpc.ChatServiceStub(channel)
        chunks = [chunk async for chunk in stub.StreamChatCompletion(successor("a", 50))]

    assert joined(chunks) == successor_text("a", 50)


@pytest.mark.slow
async def test_many_streams_share_a_connection(port: int) -> None:
    async def one(stub: chat_service_pb2_grpc.ChatServiceStub, start: str) -> str:
        chunks = []
        async for chunk in stub.StreamChatCompletion(successor(start, 900)):
            chunks.append(chunk)
            if start == "A" and len(chunks) == 5:
                # Nobody reads for a while, so what is sent piles up on the way.
                time.sleep(2)  # noqa: ASYNC251
        return joined(chunks)

    starts = [chr(ord("A") + number % 50) for number in range(64)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = chat_service_pb2_grpc.ChatServiceStub(channel)
        texts = await asyncio.gather(*(one(stub, start) for start in starts))

    assert texts == [successor_text(start, 900) for start in starts]


async def test_an_error_keeps_its_details(port: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = chat_service_pb2_grpc.ChatServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.CreateChatCompletion(ask("x", modalities=["audio"]))

    status = rpc_status.from_call(caught.value)
    assert status is not None
    info = error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    assert info.reason == "UNSUPPORTED_PARAMETER"


async def test_metrics_pass(port: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = server_service_pb2_grpc.ServerServiceStub(channel)
        answer = await stub.GetMetrics(server_service_pb2.GetMetricsRequest())

    assert "ovchat_model_ready" in [family.name for family in answer.families]
    assert (answer.server, answer.replicas) == (1, 1)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/v1/metrics",
        "/ovchat/v1/metrics",
        # As Envoy's transcoder maps an RPC that has no path, if it is told to.
        "/ovchat.v1.ServerService/GetMetrics",
    ],
)
async def test_metrics_are_not_served_over_rest(
    http: httpx.AsyncClient, method: str, path: str
) -> None:
    answer = await http.request(method, path, json={} if method == "POST" else None)

    assert answer.status_code == 404
    assert "vllm:" not in answer.text


async def test_a_deadline_reaches_the_engine(port: int, http: httpx.AsyncClient) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = chat_service_pb2_grpc.ChatServiceStub(channel)
        async with given_up(http, "successor", 64 * 4000):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.CreateChatCompletion(successor("a", 4000, n=64), timeout=0.5)

    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def buf_curl(port: int, method: str, data: dict[str, object]) -> list[dict[str, object]]:
    result = subprocess.run(
        [
            BUF,
            "curl",
            "--http2-prior-knowledge",
            "--protocol",
            "grpc",
            f"http://127.0.0.1:{port}/{method}",
            "-d",
            json.dumps(data),
        ],
        capture_output=True,
        check=False,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    decoder = json.JSONDecoder()
    rest, messages = result.stdout.lstrip(), []
    while rest:
        message, end = decoder.raw_decode(rest)
        messages.append(message)
        rest = rest[end:].lstrip()
    return messages


def test_buf_curl_asks_by_reflection(port: int) -> None:
    request: dict[str, object] = {
        "model": "successor",
        "messages": [{"role": "ROLE_USER", "content": [{"text": "a"}]}],
        "max_tokens": 3,
    }

    [whole] = buf_curl(port, "ovchat.v1.ChatService/CreateChatCompletion", request)
    chunks = buf_curl(port, "ovchat.v1.ChatService/StreamChatCompletion", request)

    assert whole["model"] == "successor"
    assert len(chunks) >= 3
