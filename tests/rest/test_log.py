"""One line for each request, whoever answers it, in one schema."""

from __future__ import annotations

import asyncio
import json
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from ovchat.v1 import chat_service_pb2_grpc
from tests.grpc.requests import successor
from tests.rest.conftest import POLL

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from tests.rest.conftest import Stack

CHAT = "/v3/chat/completions"
PROVIDER_CHAT = "/openvino/v1/chat/completions"
RPC = "ovchat.v1.ChatService/CreateChatCompletion"
BODY = {
    "model": "successor",
    "messages": [{"role": "user", "content": "a"}],
    "max_tokens": 5,
    "temperature": 0,
}
COMMON = {"timestamp", "level", "logger", "message", "request_id", "duration_ms", "client"}
HTTP = {"method": "POST", "path": CHAT}
ANSWER = {
    "model": "successor",
    "prompt_tokens": 1,
    "completion_tokens": 5,
    "finish_reasons": ["length"],
}
# By the id of each request what its line has.
EXPECTED: Mapping[str, dict[str, Any]] = {
    "log-whole": {**HTTP, **ANSWER, "status": 200, "grpc_status": "OK"},
    "log-stream": {**HTTP, **ANSWER, "status": 200, "grpc_status": "OK"},
    "log-provider": {**ANSWER, "path": PROVIDER_CHAT, "status": 200, "grpc_status": "OK"},
    "log-left": {**HTTP, "status": 200, "grpc_status": "CANCELLED", "model": "successor"},
    "log-unknown-model": {**HTTP, "status": 404, "error": "model_not_found"},
    "log-typed-rest": {**ANSWER, "path": "/ovchat/v1/chat:create", "rpc": RPC, "status": 200},
    "log-typed-envoy": {**ANSWER, "rpc": RPC, "grpc_status": "OK"},
    "log-typed-direct": {**ANSWER, "rpc": RPC, "grpc_status": "OK"},
    "log-no-method": {"rpc": "ovchat.v1.ChatService/Nothing", "grpc_status": "UNIMPLEMENTED"},
    "log-no-path": {"path": "/nope", "status": 404, "logger": "envoy.access"},
    "log-wrong-method": {"method": "PUT", "status": 405, "logger": "envoy.access"},
}


def lines_of(stack: Stack, own: str) -> list[str]:
    return [line for line in stack.log.read_text().splitlines() if own in line]


@pytest.fixture(scope="module")
async def lines(stack: Stack, http: httpx.AsyncClient) -> Mapping[str, list[str]]:
    """All lines of some requests, by the id of each."""

    def named(own: str) -> dict[str, str]:
        return {"x-request-id": own}

    async def typed(port: int, own: str) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = chat_service_pb2_grpc.ChatServiceStub(channel)
            await stub.CreateChatCompletion(successor("a", 5), metadata=(("x-request-id", own),))

    await http.post(CHAT, json=BODY, headers=named("log-whole"))
    await http.post(CHAT, json={**BODY, "stream": True}, headers=named("log-stream"))
    await http.post(PROVIDER_CHAT, json=BODY, headers=named("log-provider"))
    endless = {**BODY, "stream": True, "max_tokens": 4000, "n": 16}
    async with http.stream("POST", CHAT, json=endless, headers=named("log-left")) as answer:
        await anext(answer.aiter_bytes())
    await http.post(CHAT, json={**BODY, "model": "x"}, headers=named("log-unknown-model"))
    message = {"role": "ROLE_USER", "content": [{"text": "a"}]}
    body = {**BODY, "messages": [message]}
    await http.post("/ovchat/v1/chat:create", json=body, headers=named("log-typed-rest"))
    await typed(stack.rest_port, "log-typed-envoy")
    await typed(stack.grpc_port, "log-typed-direct")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{stack.grpc_port}") as channel:
        call = channel.unary_unary("/ovchat.v1.ChatService/Nothing")
        with pytest.raises(grpc.aio.AioRpcError):
            await call(b"", metadata=(("x-request-id", "log-no-method"),))
    await http.get("/nope", headers=named("log-no-path"))
    await http.put(CHAT, json=BODY, headers=named("log-wrong-method"))
    await http.get("/health", headers=named("log-probe"))
    # Envoy writes them in their order, and so does the server, but for who left.
    last = "log-the-last"
    await http.get("/v3/models", headers=named(last))
    await http.get("/nope", headers=named(last))
    while True:
        if len(lines_of(stack, last)) >= 2 and lines_of(stack, "log-left"):
            break
        await asyncio.sleep(POLL)
    return {own: lines_of(stack, own) for own in (*EXPECTED, "log-probe")}


@pytest.mark.parametrize("own", EXPECTED)
async def test_a_request_has_one_line(lines: Mapping[str, list[str]], own: str) -> None:
    [line] = lines[own]
    entry = json.loads(line)
    assert entry.keys() >= COMMON
    assert entry["request_id"] == own
    assert ip_address(entry["client"])
    assert {name: entry.get(name) for name in EXPECTED[own]} == EXPECTED[own]


async def test_a_probe_has_none(lines: Mapping[str, list[str]]) -> None:
    assert lines["log-probe"] == []
