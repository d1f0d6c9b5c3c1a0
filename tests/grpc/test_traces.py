"""The traces of a server's calls, as a collector gets them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import uuid
from typing import TYPE_CHECKING, Any

import grpc.aio
import msgspec
import pytest

from ovchat.v1 import completion_pb2, embedding_service_pb2
from ovchat.v1.embedding_service_pb2_grpc import EmbeddingServiceStub
from ovchat_server.app import Server
from ovchat_server.provider_settings import ProviderSettings
from ovchat_server.start_error import StartError
from ovchat_server.tracing.attributes import MOST
from tests.grpc import requests
from tests.grpc.conftest import Client, running
from tests.grpc.engines import engine_of
from tests.keys import api_keys
from tests.otlp import Caller, Collector, grpc_collector, http_collector
from tests.pooling_folders import folder_settings
from tests.ports import unused_port
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from ovchat_server.settings import ModelSettings, Settings
    from tests.otlp import Exported

MODEL = "successor"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but what a test sets says where traces go; they are sent soon."""
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with grpc_collector() as collector:
        yield collector


@pytest.fixture
async def client(
    collector: Collector, make_settings: Callable[..., Settings], successor: ModelSettings
) -> AsyncIterator[Client]:
    bert = folder_settings("bert")
    settings = make_settings(successor, bert, otlp_traces_endpoint=collector.endpoint)
    async with running(Server(settings)) as client:
        yield client


def metadata(caller: Caller) -> tuple[tuple[str, str], ...]:
    return tuple(caller.headers.items())


async def test_a_request_that_is_refused_is_no_failure_of_the_server(
    collector: Collector, client: Client
) -> None:
    for asked, status, error, name in (
        (
            requests.ask("x", MODEL, top_p=2),
            "INVALID_ARGUMENT",
            "invalid_value",
            "ovchat.v1.ChatService/CreateChatCompletion",
        ),
        # What callers make up is no part of a name.
        (requests.ask("x", "nobody"), "NOT_FOUND", "model_not_found", "chat"),
    ):
        caller = Caller()
        with pytest.raises(grpc.aio.AioRpcError):
            await client.chat.CreateChatCompletion(asked, metadata=metadata(caller))
        server = (await collector.trace(caller.span_id)).server
        assert server.name == name
        assert server.attributes["rpc.response.status_code"] == status
        assert server.attributes["error.type"] == error
        assert server.attributes.get("gen_ai.request.model") in (None, "nobody")
        assert [*server.events] == ["exception"]
        assert not server.failed


@pytest.mark.parametrize("keys", [(), ("key",)])
async def test_an_unknown_method_is_not_named(
    collector: Collector, make_settings: Callable[..., Settings], keys: tuple[str, ...]
) -> None:
    caller = Caller()
    settings = make_settings(otlp_traces_endpoint=collector.endpoint, api_keys=api_keys(*keys))
    async with running(Server(settings)) as client:
        call = client.channel.unary_unary("/made.Up/ByTheCaller")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call(b"", metadata=metadata(caller))
        server = (await collector.trace(caller.span_id)).server
    refused = "UNAUTHENTICATED" if keys else "UNIMPLEMENTED"
    assert raised.value.code().name == refused
    assert server.attributes["rpc.response.status_code"] == refused
    assert server.name == server.attributes["rpc.method"] == "_OTHER"


async def test_what_is_refused_to_a_provider_is_the_providers(
    collector: Collector, make_settings: Callable[..., Settings]
) -> None:
    caller = Caller()
    nobody = ProviderSettings(name="house", base_url=f"http://127.0.0.1:{unused_port()}")
    settings = make_settings(otlp_traces_endpoint=collector.endpoint, providers=(nobody,))
    async with running(Server(settings)) as client:
        with pytest.raises(grpc.aio.AioRpcError):
            await client.chat.CreateChatCompletion(
                requests.ask("x", "house/big", top_k=1), metadata=metadata(caller)
            )
        server = (await collector.trace(caller.span_id)).server
    assert server.attributes["error.type"] == "unsupported_parameter"
    assert server.attributes["gen_ai.provider.name"] == "house"
    assert server.attributes["gen_ai.request.model"] == "house/big"


async def test_what_callers_make_up_is_cut(collector: Collector, client: Client) -> None:
    caller, long = Caller(), "x" * 10_000
    sent = {
        **caller.headers,
        "x-envoy-original-method": long,
        "x-envoy-original-path": f"/{long}",
        "x-request-id": long,
    }
    with pytest.raises(grpc.aio.AioRpcError):
        await client.chat.CreateChatCompletion(
            requests.ask("x", long, stop=[long]), metadata=tuple(sent.items())
        )
    server = (await collector.trace(caller.span_id)).server
    texts = [value for value in server.attributes.values() if isinstance(value, str)]
    assert max(map(len, texts)) == MOST
    assert "gen_ai.request.stop_sequences" not in server.attributes


async def test_a_stream_that_is_abandoned_is_traced_as_far_as_it_came(
    collector: Collector, client: Client
) -> None:
    caller = Caller()
    request = requests.go_on("a", max_tokens=2000, ignore_eos=True)
    stream = client.texts.StreamCompletion(request, metadata=metadata(caller))
    # The first message comes with the first token.
    for _ in range(3):
        await stream.read()
    stream.cancel()

    trace = await collector.trace(caller.span_id)
    assert trace.names[-1] == "decode"
    assert trace.server.name == f"text_completion {MODEL}"
    assert trace.server.attributes["error.type"] == "CANCELLED"
    assert 0 < trace.server.attributes["gen_ai.usage.output_tokens"] < 2000
    assert not trace.server.failed


async def test_what_an_engine_does_to_a_request_is_an_event(
    collector: Collector, client: Client
) -> None:
    caller = Caller()
    request = requests.go_on("a", max_tokens=100, ignore_eos=True)
    stream = client.texts.StreamCompletion(request, metadata=metadata(caller))
    await stream.read()
    connection = engine_of(client, MODEL).supervisor._connection
    assert connection is not None
    connection.kill()
    while await stream.read() is not grpc.aio.EOF:
        pass

    server = (await collector.trace(caller.span_id)).server
    assert [*server.events] == ["engine_restarted", "resumed"]
    began, ended = server.times
    assert began < server.span.events[0].time_unix_nano < ended
    assert not server.failed


async def test_preemptions_and_resumptions_are_events(
    collector: Collector, make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    small = msgspec.structs.replace(successor, kv_blocks=8)
    async with running(
        Server(make_settings(small, otlp_traces_endpoint=collector.endpoint))
    ) as client:
        # Room is kept for what is asked for, but not where the model decides. Both are longer than
        # half of it.
        callers = [Caller(), Caller()]
        await asyncio.gather(
            *(
                client.chat.CreateChatCompletion(
                    requests.successor(name, None, min_tokens=150, stop=["~"]),
                    metadata=metadata(caller),
                )
                for name, caller in zip("Ab", callers, strict=True)
            )
        )
        traces = [await collector.trace(caller.span_id) for caller in callers]
    events = [event.name for trace in traces for event in trace.server.span.events]
    assert events[:2] == ["preempted", "resumed"]


async def test_a_caller_that_does_not_sample_is_not_traced(
    collector: Collector, client: Client
) -> None:
    unsampled, sampled = Caller(sampled=False), Caller()
    for caller in (unsampled, sampled):
        await client.chat.CreateChatCompletion(
            requests.successor("a", 5), metadata=metadata(caller)
        )

    # They are sent in their order.
    await collector.trace(sampled.span_id)
    assert {span.trace_id for span in collector.spans} == {sampled.trace_id}


@pytest.mark.parametrize(
    "traceparent", ["", "nonsense", f"00-{'0' * 32}-{'0' * 16}-01", f"ff-{'1' * 32}-{'1' * 16}-01"]
)
async def test_nonsense_begins_a_trace(
    collector: Collector, client: Client, traceparent: str
) -> None:
    request = uuid.uuid4().hex
    headers = (("traceparent", traceparent), ("x-request-id", request))
    await client.chat.CreateChatCompletion(requests.successor("a", 5), metadata=headers)

    span = await collector.until(lambda span: of_request(span, request))
    assert span.parent == ""
    assert span.trace_id not in ("0" * 32, "1" * 32)


def of_request(span: Exported, request: str) -> bool:
    return span.attributes.get("ovchat.request_id") == request


async def test_embeddings_are_traced(collector: Collector, client: Client) -> None:
    caller = Caller()
    prompts = [completion_pb2.Prompt(text=text) for text in ("one", "two", "three")]
    asked = embedding_service_pb2.CreateEmbeddingsRequest(model="bert", input=prompts)
    stub = EmbeddingServiceStub(client.channel)
    answer = await stub.CreateEmbeddings(asked, metadata=metadata(caller))

    trace = await collector.trace(caller.span_id)
    assert trace.server.name == "embeddings bert"
    assert trace.names[:4] == ["read", "render", "queue", "prefill"]
    assert trace.server.attributes["gen_ai.usage.input_tokens"] == answer.usage.prompt_tokens
    assert "gen_ai.usage.output_tokens" not in trace.server.attributes


@pytest.mark.parametrize(
    ("model", "name"), [("b", "embeddings bert"), ("made-up", "embeddings"), (MODEL, "embeddings")]
)
async def test_what_was_asked_for_is_told_of_embeddings_too(
    collector: Collector, make_settings: Callable[..., Settings], model: str, name: str
) -> None:
    bert, caller = folder_settings("bert"), Caller()
    settings = make_settings(bert, otlp_traces_endpoint=collector.endpoint, aliases={"b": "bert"})
    async with running(Server(settings)) as client:
        asked = embedding_service_pb2.CreateEmbeddingsRequest(model=model, dimensions=1 << 20)
        asked.input.add().text = "one"
        with pytest.raises(grpc.aio.AioRpcError):
            await EmbeddingServiceStub(client.channel).CreateEmbeddings(
                asked, metadata=metadata(caller)
            )
        server = (await collector.trace(caller.span_id)).server
    assert server.name == name
    assert server.attributes["gen_ai.request.model"] == model


async def test_probes_are_not_traced(collector: Collector, client: Client) -> None:
    caller = Caller()
    await client.wait_for_health("SERVING")
    await client.chat.CreateChatCompletion(requests.successor("a", 5), metadata=metadata(caller))

    await collector.trace(caller.span_id)
    assert {span.trace_id for span in collector.spans} == {caller.trace_id}


# What must not be told of: in a prompt, in an answer to it, and in what an error repeats.
CANARY = "canary-7131"


async def ask_all(client: Client, **changes: Any) -> None:
    """Have a canary in a prompt, an answer and an error, of chats and of texts."""
    chat = requests.successor(CANARY, 40, **changes)
    await client.chat.CreateChatCompletion(chat)
    async for _ in client.chat.StreamChatCompletion(chat):
        pass
    await client.texts.CreateCompletion(requests.go_on(CANARY, max_tokens=40))
    chat.tools.add().function.name = f"no name: {CANARY}"
    with contextlib.suppress(grpc.aio.AioRpcError):
        await client.chat.CreateChatCompletion(chat)
        pytest.fail("it was answered")


async def test_nothing_of_prompts_and_answers_is_sent_unless_it_is_asked_for(
    collector: Collector, client: Client
) -> None:
    await ask_all(client)
    caller = Caller()
    await client.chat.CreateChatCompletion(requests.successor("a", 5), metadata=metadata(caller))
    await collector.trace(caller.span_id)

    sent = b"".join(collector.bodies)
    assert sent.count(b"gen_ai.response.id") == 4
    assert CANARY.encode() not in sent
    assert successor_text(CANARY, 40).encode() not in sent


async def test_prompts_and_answers_are_sent_if_they_are_asked_for(
    collector: Collector, make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    settings = make_settings(successor, otlp_traces_endpoint=collector.endpoint, trace_content=True)
    async with running(Server(settings)) as client:
        await ask_all(client)
    answer = successor_text(CANARY, 40)
    asked = [{"role": "user", "parts": [{"type": "text", "content": CANARY}]}]
    said = [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": answer}],
            "finish_reason": "length",
        }
    ]
    # The end of the server sends what is left.
    found = [
        [
            msgspec.json.decode(span.attributes[name])
            for name in ("gen_ai.input.messages", "gen_ai.output.messages")
            if name in span.attributes
        ]
        for span in collector.spans
        if span.of_server and "Health" not in span.name
    ]
    assert found == [[asked, said]] * 3 + [[]]
    refused = [span for span in collector.spans if "exception" in span.events]
    assert CANARY in refused[0].events["exception"]["exception.message"]


async def test_the_environment_says_how_traces_are_sent(
    monkeypatch: pytest.MonkeyPatch,
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
) -> None:
    with http_collector() as collector:
        for name, value in {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_HEADERS": "x-key=secret",
            "OTEL_SERVICE_NAME": "the-house",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        }.items():
            monkeypatch.setenv(name, value)
        caller = Caller()
        async with running(Server(make_settings(successor))) as client:
            await client.chat.CreateChatCompletion(
                requests.successor("a", 5), metadata=metadata(caller)
            )
        server = (await collector.trace(caller.span_id)).server
    assert server.resource["service.name"] == "the-house"
    assert server.resource["deployment.environment.name"] == "test"
    assert {headers["x-key"] for headers in collector.headers} == {"secret"}


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
async def test_an_option_says_where_to_in_either_protocol(
    monkeypatch: pytest.MonkeyPatch,
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
    protocol: str,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    caller = Caller()
    opened = grpc_collector() if protocol == "grpc" else http_collector()
    with opened as collector:
        settings = make_settings(successor, otlp_traces_endpoint=collector.endpoint)
        async with running(Server(settings)) as client:
            await client.chat.CreateChatCompletion(
                requests.successor("a", 5), metadata=metadata(caller)
            )
        assert (await collector.trace(caller.span_id)).server.resource["service.name"] == "ovchat"


async def test_a_collector_that_is_away_disturbs_nobody(
    monkeypatch: pytest.MonkeyPatch,
    make_settings: Callable[..., Settings],
    successor: ModelSettings,
) -> None:
    # One span is too many for the queue of those that wait.
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
    nobody = f"http://127.0.0.1:{unused_port()}"
    async with running(Server(make_settings(successor, otlp_traces_endpoint=nobody))) as client:
        for _ in range(20):
            answer = await client.chat.CreateChatCompletion(requests.successor("a", 5))
            assert requests.text_of(answer) == successor_text("a", 5)


@pytest.mark.parametrize("step", ["listen_for_metrics", "publish_health"])
async def test_a_server_that_cannot_start_leaves_no_thread_of_traces(
    monkeypatch: pytest.MonkeyPatch, make_settings: Callable[..., Settings], step: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(f"ovchat_server.app.{step}", fail)
    before = {*threading.enumerate()}
    server = Server(make_settings(otlp_traces_endpoint=f"http://127.0.0.1:{unused_port()}"))
    [sender] = {*threading.enumerate()} - before
    with pytest.raises((RuntimeError, StartError)):
        async with server.running():
            pass
    assert not sender.is_alive()
