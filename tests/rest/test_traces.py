"""Traces of a whole stack, as a collector gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc.aio
import httpx
import pytest

from ovchat.v1 import chat_service_pb2_grpc
from tests.grpc.requests import successor
from tests.otlp import Caller, grpc_collector
from tests.rest.conftest import running_stack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ovchat_server.settings import ModelSettings
    from tests.otlp import Collector, Trace
    from tests.rest.conftest import Stack

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {
    "model": "successor",
    "messages": [{"role": "user", "content": "a"}],
    "max_tokens": 5,
    "temperature": 0,
    "seed": 7,
    "stop": ["unheard"],
}
# The parts of the work on a request without a grammar.
PARTS = ["read", "render", "constrain", "queue", "prefill", "decode"]


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with grpc_collector() as collector, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield collector


@pytest.fixture(scope="module")
def traced(
    collector: Collector, tmp_path_factory: pytest.TempPathFactory, successor: ModelSettings
) -> Iterator[Stack]:
    options = [f"--otlp-traces-endpoint={collector.endpoint}"]
    with running_stack(tmp_path_factory.mktemp("traced"), successor, options=options) as stack:
        yield stack


@pytest.fixture(scope="module")
async def client(traced: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=traced.url, timeout=None) as client:
        yield client


def check(trace: Trace, caller: Caller) -> None:
    """It is in the caller's trace, has all parts, and their times are in order."""
    server = trace.server
    assert (server.trace_id, server.parent) == (caller.trace_id, caller.span_id)
    assert server.span.trace_state == "vendor=value"
    assert trace.names == PARTS
    assert {child.trace_id for child in trace.children} == {caller.trace_id}
    times = [time for child in trace.children for time in child.times]
    began, ended = server.times
    assert [began, *times, ended] == sorted([began, *times, ended])
    assert server.attributes["gen_ai.usage.output_tokens"] == 5
    assert not server.failed


@pytest.mark.parametrize("answer", ["whole", "streamed"])
async def test_a_rest_request_is_in_the_trace_of_its_client(
    collector: Collector, client: httpx.AsyncClient, answer: str
) -> None:
    caller, streams = Caller(), answer == "streamed"

    response = await client.post(CHAT, json={**BODY, "stream": streams}, headers=caller.headers)

    assert response.status_code == 200
    trace = await collector.trace(caller.span_id)
    check(trace, caller)
    assert trace.server.name == "chat successor"
    attributes = trace.server.attributes
    assert attributes.pop("gen_ai.response.id").startswith("chatcmpl-")
    assert attributes.pop("gen_ai.response.time_to_first_chunk") > 0
    assert attributes.pop("ovchat.request_id") == response.headers["x-request-id"]
    assert attributes.pop("gen_ai.usage.cache_read.input_tokens") >= 0
    assert attributes.pop("gen_ai.request.stream", False) is streams
    assert attributes == {
        "rpc.system.name": "grpc",
        "rpc.method": "ovchat.v1.RestService/CreateChatCompletion",
        "rpc.response.status_code": "OK",
        "http.request.method": "POST",
        "url.path": CHAT,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openvino",
        "gen_ai.request.model": "successor",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.max_tokens": 5,
        "gen_ai.request.seed": 7,
        "gen_ai.response.model": "successor",
        "gen_ai.response.finish_reasons": ["length"],
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 5,
    }
    assert trace.server.resource["service.name"] == "ovchat"


@pytest.mark.parametrize("answer", ["whole", "streamed"])
async def test_a_typed_call_is_in_the_trace_of_its_client(
    collector: Collector, traced: Stack, answer: str
) -> None:
    caller, streams = Caller(), answer == "streamed"
    request = successor("a", 5)
    metadata = tuple(caller.headers.items())

    async with grpc.aio.insecure_channel(f"127.0.0.1:{traced.grpc_port}") as channel:
        chats = chat_service_pb2_grpc.ChatServiceStub(channel)
        if streams:
            async for _ in chats.StreamChatCompletion(request, metadata=metadata):
                pass
        else:
            await chats.CreateChatCompletion(request, metadata=metadata)

    trace = await collector.trace(caller.span_id)
    check(trace, caller)
    assert trace.server.name == "chat successor"
    method = trace.server.attributes["rpc.method"]
    assert method == f"ovchat.v1.ChatService/{'Stream' if streams else 'Create'}ChatCompletion"
    assert "url.path" not in trace.server.attributes


PROVIDERS = """
[[providers]]
name = "http"
base_url = "http://127.0.0.1:{rest_port}/v1"

[[providers]]
name = "typed"
kind = "ovchat"
base_url = "http://127.0.0.1:{grpc_port}"
"""


@pytest.fixture(scope="module")
async def router(
    collector: Collector, traced: Stack, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """Another server, to which the first one is two providers."""
    options = [f"--otlp-traces-endpoint={collector.endpoint}"]
    tables = PROVIDERS.format(rest_port=traced.rest_port, grpc_port=traced.grpc_port)
    directory = tmp_path_factory.mktemp("router")
    with running_stack(directory, options=options, tables=tables) as stack:
        async with httpx.AsyncClient(base_url=stack.url, timeout=None) as client:
            yield client


@pytest.mark.parametrize("answer", ["whole", "streamed"])
@pytest.mark.parametrize("provider", ["http", "typed"])
async def test_a_provider_continues_the_trace(
    collector: Collector, router: httpx.AsyncClient, provider: str, answer: str
) -> None:
    caller = Caller()
    asked = {**BODY, "model": f"{provider}/successor", "stream": answer == "streamed"}
    asked["messages"] = [{"role": "user", "content": "a"}]

    response = await router.post(CHAT, json=asked, headers=caller.headers)

    assert response.status_code == 200, response.text
    here = await collector.trace(caller.span_id)
    there = await collector.trace(here.server.span_id)
    assert {here.server.trace_id, there.server.trace_id} == {caller.trace_id}
    assert there.server.span.trace_state == "vendor=value"
    assert here.server.name == f"chat {provider}/successor"
    assert there.server.name == "chat successor"
    assert here.server.attributes["gen_ai.provider.name"] == provider
    # A whole answer comes at once.
    assert here.names[:3] == ["read", "queue", "prefill"]
    assert there.names == PARTS
