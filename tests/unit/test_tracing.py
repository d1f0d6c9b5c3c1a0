"""What spans say of requests, and whether there are any."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from ovchat_server.domain.chat import ChatRequest, Message, Role, ToolCall
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, ToolCallDelta, Usage
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InternalError, InvalidRequestError, OverloadedError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import Ending, GenerationParams, SamplingParams
from ovchat_server.domain.text import TextRequest
from ovchat_server.engine.contract.times import RequestTimes
from ovchat_server.serving.record import RequestRecord, Stage
from ovchat_server.serving.recorded_content import RecordedContent
from ovchat_server.tracing import tracing as of_requests
from ovchat_server.tracing.attributes import at_fault, attributes, periods, span_name
from ovchat_server.tracing.content import AROUND, CUT, MOST, content_attributes
from ovchat_server.tracing.export import _PacedWarnings
from ovchat_server.tracing.setup import tracing
from ovchat_server.tracing.tracing import Tracing
from tests.conftest import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

RPC = "ovchat.v1.ChatService/CreateChatCompletion"
CALL = {"rpc.system.name": "grpc", "rpc.method": RPC, "rpc.response.status_code": "OK"}
REST = {"x-envoy-original-path": "/v1/models?key=secret", "x-envoy-original-method": "GET"}
CHAT = CALL | {"gen_ai.operation.name": "chat"}
OWN = CHAT | {
    "gen_ai.provider.name": "openvino",
    "gen_ai.request.model": "demo",
    "gen_ai.response.model": "demo",
}
SAMPLING = SamplingParams(
    temperature=0.5,
    top_p=0.25,
    top_k=3,
    seed=0,
    presence_penalty=1.0,
    frequency_penalty=-1.0,
)


def record(**fields: Any) -> RequestRecord:
    return RequestRecord(**{"rpc": RPC, "status": "OK", "began": 10.0, "ended": 20.0, **fields})


def of_demo(**fields: Any) -> RequestRecord:
    return record(operation="chat", model="demo", **fields)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (record(), CALL),
        (record(client_key="0123abcd"), CALL | {"ovchat.client_key": "0123abcd"}),
        # Headers that say it came through Envoy count only if it did.
        (record(rest=True), CALL | {"http.request.method": "GET", "url.path": "/v1/models"}),
        (
            record(status="CANCELLED"),
            CALL | {"rpc.response.status_code": "CANCELLED", "error.type": "CANCELLED"},
        ),
        (
            record(status="RESOURCE_EXHAUSTED", error=OverloadedError("Full.")),
            CALL
            | {
                "rpc.response.status_code": "RESOURCE_EXHAUSTED",
                "error.type": OverloadedError.code,
            },
        ),
        (
            record(rpc="made/up", status="UNIMPLEMENTED"),
            {
                "rpc.system.name": "grpc",
                "rpc.method": "_OTHER",
                "rpc.response.status_code": "UNIMPLEMENTED",
                "error.type": "UNIMPLEMENTED",
            },
        ),
        (
            record(operation="chat", requested_model="x" * 1000),
            CHAT | {"gen_ai.request.model": "x" * 200},
        ),
        (of_demo(), OWN),
        (of_demo(requested_model="route"), OWN | {"gen_ai.request.model": "route"}),
        (of_demo(provider="house"), OWN | {"gen_ai.provider.name": "house"}),
        (of_demo(streams=True), OWN | {"gen_ai.request.stream": True}),
        (of_demo(params=GenerationParams()), OWN),
        (
            of_demo(params=GenerationParams(SAMPLING, Ending(max_tokens=9, stop=("a", "b")), n=2)),
            OWN
            | {
                "gen_ai.request.temperature": 0.5,
                "gen_ai.request.top_p": 0.25,
                "gen_ai.request.top_k": 3,
                "gen_ai.request.seed": 0,
                "gen_ai.request.presence_penalty": 1.0,
                "gen_ai.request.frequency_penalty": -1.0,
                "gen_ai.request.max_tokens": 9,
                "gen_ai.request.stop_sequences": ("a", "b"),
                "gen_ai.request.choice.count": 2,
            },
        ),
        (
            of_demo(
                response_id="chatcmpl-1",
                finish_reasons=[FinishReason.STOP, FinishReason.TOOL_CALLS],
                prompt_tokens=7,
                completion_tokens=0,
                usage=Usage(7, 0, reasoning_tokens=0, cached_tokens=5),
                times=RequestTimes(11.0, 12.0, 13.5, 14.0),
            ),
            OWN
            | {
                "gen_ai.response.id": "chatcmpl-1",
                "gen_ai.response.finish_reasons": ("stop", "tool_calls"),
                "gen_ai.response.time_to_first_chunk": 3.5,
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.usage.output_tokens": 0,
                "gen_ai.usage.cache_read.input_tokens": 5,
                "gen_ai.usage.reasoning.output_tokens": 0,
            },
        ),
        (
            record(operation="embeddings", model="minilm", prompt_tokens=7),
            CALL
            | {
                "gen_ai.operation.name": "embeddings",
                "gen_ai.provider.name": "openvino",
                "gen_ai.request.model": "minilm",
                "gen_ai.response.model": "minilm",
                "gen_ai.usage.input_tokens": 7,
            },
        ),
    ],
)
def test_attributes(given: RequestRecord, expected: dict[str, Any]) -> None:
    assert attributes(given, REST) == expected


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (of_demo(), "chat demo"),
        (record(operation="rerank", model="bge"), "rerank bge"),
        (record(operation="chat", requested_model="unknown"), "chat"),
        (record(), RPC),
        (record(status="UNIMPLEMENTED"), "_OTHER"),
    ],
)
def test_names(given: RequestRecord, name: str) -> None:
    assert span_name(given) == name


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (record(), False),
        (record(status="CANCELLED"), False),
        (record(status="INVALID_ARGUMENT", error=InvalidRequestError("No.")), False),
        (record(status="INTERNAL", error=InternalError("It broke.")), True),
        # In the last event of a stream.
        (record(status="OK", error=InternalError("It broke.")), True),
        (record(status="DEADLINE_EXCEEDED"), True),
    ],
)
def test_whose_fault_it_is(given: RequestRecord, expected: object) -> None:
    assert at_fault(given) is expected


QUEUE, PREFILL = Stage("queue", 11.0, 12.0), Stage("prefill", 12.0, 13.0)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (RequestTimes(), []),
        (RequestTimes(11.0), [Stage("queue", 11.0, 20.0)]),
        (RequestTimes(11.0, 12.0), [QUEUE, Stage("prefill", 12.0, 20.0)]),
        (RequestTimes(11.0, 12.0, 13.0, 13.0), [QUEUE, PREFILL]),
        (RequestTimes(11.0, 12.0, 13.0, 14.0), [QUEUE, PREFILL, Stage("decode", 13.0, 14.0)]),
    ],
)
def test_what_the_time_went_into(times: RequestTimes, expected: list[Stage]) -> None:
    render = Stage("render", 10.5, 11.0)
    assert [*periods(record(stages=[render], times=times))] == [render, *expected]


def messages(content: RecordedContent) -> list[Any]:
    return [msgspec.json.decode(value) for value in content_attributes(content).values()]


def text(said: str) -> dict[str, str]:
    return {"type": "text", "content": said}


async def collected(*chunks: ChunkChoice) -> RecordedContent:
    async def answer() -> Any:
        for chunk in chunks:
            yield chunk

    content = RecordedContent()
    async for _ in content.collected(answer()):
        pass
    return content


async def test_the_content_of_a_chat() -> None:
    content = await collected(
        ChunkChoice(0, Delta(reasoning_content="why ")),
        ChunkChoice(1, Delta(content="br")),
        ChunkChoice(0, Delta(reasoning_content="not")),
        ChunkChoice(0, Delta(tool_calls=(ToolCallDelta(0, "2", "g", '{"b"'),))),
        ChunkChoice(0, Delta(tool_calls=(ToolCallDelta(0, arguments=":1}"),))),
        ChunkChoice(0, Delta(), finish_reason=FinishReason.TOOL_CALLS),
    )
    content.request = ChatRequest(
        "demo",
        (
            Message(Role.SYSTEM, ("Be brief.",)),
            Message(Role.USER, ("Look:", Image(data=b"pixels"))),
            Message(Role.ASSISTANT, tool_calls=(ToolCall("1", "f", '{"a":1}'),)),
            Message(Role.TOOL, ("sunny",), tool_call_id="1"),
        ),
    )
    assert messages(content) == [
        [
            {"role": "system", "parts": [text("Be brief.")]},
            {"role": "user", "parts": [text("Look:"), text("[image]")]},
            {
                "role": "assistant",
                "parts": [{"type": "tool_call", "id": "1", "name": "f", "arguments": '{"a":1}'}],
            },
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "1", "response": "sunny"}],
            },
        ],
        [
            {
                "role": "assistant",
                "parts": [
                    {"type": "reasoning", "content": "why not"},
                    {"type": "tool_call", "id": "2", "name": "g", "arguments": '{"b":1}'},
                ],
                "finish_reason": "tool_calls",
            },
            # It was broken off.
            {"role": "assistant", "parts": [text("br")], "finish_reason": "error"},
        ],
    ]


def test_the_content_of_a_text() -> None:
    fields = (FieldPath.of("prompt"),) * 2
    content = RecordedContent(TextRequest("demo", ("Once", (1, 2, 3)), fields))
    assert messages(content) == [
        [
            {"role": "user", "parts": [text("Once")]},
            {"role": "user", "parts": [text("[3 tokens]")]},
        ]
    ]


@pytest.mark.parametrize("parts", [1, 3])
def test_content_has_a_bound(parts: int) -> None:
    long = Message(Role.USER, ("x" * MOST,) * parts)
    content = RecordedContent(
        ChatRequest("demo", (Message(Role.USER, ("old",)), long, Message(Role.USER, ("new",))))
    )
    [[cut, new]] = messages(content)
    assert new == {"role": "user", "parts": [text("new")]}
    assert cut == {"role": "user", "parts": [text("x" * (MOST - AROUND - len("new")) + CUT)]}


def test_many_messages_have_a_bound() -> None:
    content = RecordedContent(ChatRequest("demo", (Message(Role.USER, ("",)),) * (MOST + 1)))
    [kept] = messages(content)
    assert len(kept) == MOST // AROUND


def test_a_warning_is_written_once_in_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    handler = _PacedWarnings()
    for second in range(120):
        now = 100.0 + second
        said = logging.LogRecord("x", logging.ERROR, "", 0, "not sent: %s", (second,), None)
        handler.handle(said)
    assert caplog.messages == ["traces: not sent: 0", "traces: not sent: 60"]


@pytest.mark.parametrize(
    ("option", "variables", "expected"),
    [
        (None, {}, False),
        ("http://127.0.0.1:1", {}, True),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, True),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        (None, {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1"}, False),
        (
            None,
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
            False,
        ),
        ("http://127.0.0.1:1", {"OTEL_TRACES_EXPORTER": "none"}, True),
        ("http://127.0.0.1:1", {"OTEL_SDK_DISABLED": "true"}, False),
    ],
)
async def test_who_says_whether_there_are_traces(
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    variables: dict[str, str],
    expected: object,
) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = tracing(settings_of(otlp_traces_endpoint=option))
    assert bool(found) is expected
    for traces in found:
        await traces.close()


def test_without_traces_the_library_is_not_loaded() -> None:
    program = (
        "import sys\n"
        "from ovchat_server.app import Server\n"
        "from tests.conftest import settings_of\n"
        "Server(settings_of())\n"
        "print(sorted(name for name in sys.modules if name.startswith('opentelemetry')))"
    )
    environment = {name: value for name, value in os.environ.items() if "OTEL" not in name}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert ended.stdout.strip() == "[]"


class Stuck(SpanExporter):
    """An exporter whose collector never answers."""

    def __init__(self) -> None:
        self.asked, self.ended = threading.Event(), threading.Event()

    def export(self, spans: Sequence[Any]) -> SpanExportResult:  # noqa: ARG002  its base's
        self.asked.set()
        self.ended.wait()
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.ended.set()


async def test_the_end_does_not_wait_for_a_collector_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_requests, "END_SECONDS", 0)
    exporter, provider = Stuck(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1))
    traces = Tracing(provider, exporter)
    request = record()
    traces.begin(request, {})
    traces.end(request)
    exporter.asked.wait()

    await traces.close()

    assert exporter.ended.is_set()
