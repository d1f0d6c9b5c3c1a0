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

from ovchat_server import app
from ovchat_server.domain.chat import ChatRequest, Message, Role, ToolCall
from ovchat_server.domain.completion import (
    ChunkChoice,
    Delta,
    FinishReason,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InternalError, InvalidRequestError, OverloadedError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import Ending, GenerationParams, SamplingParams
from ovchat_server.domain.identity import Identity
from ovchat_server.domain.text import TextRequest
from ovchat_server.engine.contract.times import RequestTimes
from ovchat_server.launch import up
from ovchat_server.serving.record import RequestRecord, Stage
from ovchat_server.serving.recorded_content import CUT, MOST, RecordedContent
from ovchat_server.start_error import StartError
from ovchat_server.tracing import tracing as of_requests
from ovchat_server.tracing.attributes import at_fault, attributes, periods, span_name
from ovchat_server.tracing.content import AROUND, MOST_OF_STOP, content_attributes
from ovchat_server.tracing.export import _batches, _PacedWarnings
from ovchat_server.tracing.setup import tracing
from ovchat_server.tracing.tracing import Tracing
from tests.conftest import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

RPC = "ovchat.v1.ChatService/CreateChatCompletion"
CALL = {"rpc.system.name": "grpc", "rpc.method": RPC, "rpc.response.status_code": "OK"}
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
        (record(caller=Identity("a", "0123abcd")), CALL | {"ovchat.client_key": "0123abcd"}),
        (record(request_id="7"), CALL | {"ovchat.request_id": "7"}),
        (
            record(http_method="GET", path="/v1/models"),
            CALL | {"http.request.method": "GET", "url.path": "/v1/models"},
        ),
        # It is a provider's to say which models it has.
        (
            record(operation="chat", model=f"house/{'x' * 1000}", provider="house"),
            CHAT
            | {
                "gen_ai.provider.name": "house",
                "gen_ai.request.model": f"house/{'x' * 194}",
                "gen_ai.response.model": f"house/{'x' * 194}",
            },
        ),
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
    assert attributes(given) == expected


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (of_demo(), "chat demo"),
        (record(operation="rerank", model="bge"), "rerank bge"),
        (record(operation="chat", requested_model="unknown"), "chat"),
        (record(), RPC),
        (of_demo(provider="house"), "chat demo"),
        (record(operation="chat", model="x" * 1000), f"chat {'x' * 195}"),
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
    assert cut == {"role": "user", "parts": [text("x" * (MOST - 3 * AROUND - len("new")) + CUT)]}


def test_many_messages_have_a_bound() -> None:
    content = RecordedContent(ChatRequest("demo", (Message(Role.USER, ("",)),) * (MOST + 1)))
    [kept] = messages(content)
    assert len(kept) == MOST // (2 * AROUND)


@pytest.mark.parametrize(
    "long",
    [
        Message(Role.USER, ()),
        Message(Role.TOOL, ("sunny",), tool_call_id="x" * MOST),
        Message(Role.ASSISTANT, tool_calls=(ToolCall("x" * MOST, "f", "{}"),)),
        Message(Role.ASSISTANT, tool_calls=(ToolCall("1", "x" * MOST, "{}"),)),
        Message(Role.ASSISTANT, tool_calls=(ToolCall("1", "f", "x" * MOST),)),
    ],
)
def test_whatever_is_long_has_a_bound(long: Message) -> None:
    said = content_attributes(RecordedContent(ChatRequest("demo", (long,) * MOST)))
    assert len(said["gen_ai.input.messages"]) < 2 * MOST


def test_stop_sequences_are_content_and_have_a_bound() -> None:
    params = GenerationParams(ending=Ending(stop=("a", "b" * 1000)))
    content = RecordedContent(ChatRequest("demo", (), params))
    stop = content_attributes(content)["gen_ai.request.stop_sequences"]
    assert stop == ("a", "b" * MOST_OF_STOP)


async def test_what_is_kept_of_an_answer_has_a_bound() -> None:
    token = TokenLogprob("x", -1.0, b"x", 1, ())
    said = (
        ChunkChoice(index, Delta(content="x" * 100), logprobs=(token,), token_ids=(1,))
        for _ in range(MOST // 100)
        for index in (0, 1)
    )
    ends = (ChunkChoice(index, Delta(), finish_reason=FinishReason.STOP) for index in (0, 1))
    content = await collected(*said, *ends)
    choices = [collector.choice() for collector in content.choices.values()]
    assert MOST < sum(len(choice.message.text) for choice in choices) < MOST + 200
    assert {(choice.logprobs, choice.token_ids) for choice in choices} == {(None, None)}
    [answers] = messages(content)
    assert [answer["finish_reason"] for answer in answers] == ["stop", "stop"]
    assert [answer["parts"][0]["content"][-len(CUT) :] for answer in answers] == [CUT, CUT]


def test_a_warning_is_written_once_in_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    handler = _PacedWarnings("")
    for second in range(120):
        now = 100.0 + second
        said = logging.LogRecord("x", logging.ERROR, "", 0, "not sent: %s", (second,), None)
        handler.handle(said)
    assert caplog.messages == ["traces: not sent: 0", "traces: not sent: 60"]


URL = "http://127.0.0.1:1"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
SECRET = "secret-7131"


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_variables")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, "traces: Not sent."),
        (KeyError("why"), "traces: Not sent. KeyError: 'why'"),
        (
            ValueError(f"metadata was invalid: [('authorization', 'Bearer {SECRET}')] for 1"),
            "traces: Not sent. ValueError: metadata was invalid: [('authorization', '...')] for 1",
        ),
        (OSError(f"/v1/traces?key={SECRET}"), "traces: Not sent. OSError: /v1/traces?..."),
    ],
)
def test_a_warning_says_why_but_no_secret(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception | None,
    expected: str,
) -> None:
    monkeypatch.setenv(HEADERS, f"tenant=1,authorization=Bearer%20{SECRET}")
    why = (type(error), error, None) if error else None
    said = logging.LogRecord("x", logging.ERROR, "", 0, "Not sent.", (), why)
    _PacedWarnings(f"key={SECRET}").handle(said)
    assert caplog.messages == [expected]


@pytest.mark.usefixtures("no_variables")
async def test_headers_that_are_malformed_are_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(HEADERS, SECRET)
    for traces in tracing(settings_of(otlp_traces_endpoint=URL)):
        await traces.close()
    assert caplog.messages == [f"traces: {HEADERS} has something that is not name=value"]


@pytest.mark.usefixtures("no_variables")
@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, "'10s'.*OTEL_EXPORTER_OTLP_TIMEOUT"),
        ({"OTEL_EXPORTER_OTLP_COMPRESSION": "zip"}, "zip.*OTEL_EXPORTER_OTLP_COMPRESSION"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "many"}, "'many'.*OTEL_BSP_MAX_QUEUE_SIZE"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "0"}, "max_queue_size.*OTEL_BSP_MAX_QUEUE_SIZE"),
        ({"OTEL_BSP_SCHEDULE_DELAY": "0"}, "schedule_delay.*OTEL_BSP_SCHEDULE_DELAY"),
        ({"OTEL_SPAN_EVENT_COUNT_LIMIT": "few"}, "few.*OTEL_SPAN_EVENT_COUNT_LIMIT"),
        ({ENDPOINT: f"http://me:{SECRET}@127.0.0.1:1"}, f"^{ENDPOINT} must have no .*{HEADERS}"),
        ({ENDPOINT: "http://[::1"}, f"Invalid IPv6 URL.*{ENDPOINT}"),
    ],
)
def test_settings_that_are_wrong_are_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], complaint: str
) -> None:
    for name, value in {ENDPOINT: URL, **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StartError, match=complaint) as raised:
        tracing(settings_of())
    assert SECRET not in str(raised.value)


@pytest.mark.usefixtures("no_variables")
def test_an_option_that_has_a_password_is_refused() -> None:
    with pytest.raises(StartError, match=r"^--otlp-traces-endpoint must have no user and password"):
        tracing(settings_of(otlp_traces_endpoint=f"http://me:{SECRET}@127.0.0.1:1"))


@pytest.mark.usefixtures("no_variables")
@pytest.mark.parametrize(
    ("content", "variables", "expected"),
    [
        (False, {}, (2048, 512)),
        (True, {}, (256, 16)),
        (False, {"OTEL_BSP_MAX_QUEUE_SIZE": "100"}, (100, 100)),
        (True, {"OTEL_BSP_MAX_QUEUE_SIZE": "1000"}, (1000, 16)),
        (True, {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "32"}, (256, 32)),
    ],
)
def test_how_many_spans_wait(
    monkeypatch: pytest.MonkeyPatch,
    content: object,
    variables: dict[str, str],
    expected: tuple[int, int],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    processor = _batches(Stuck(), content=bool(content))
    batches = processor._batch_processor
    assert (batches._max_queue_size, batches._max_export_batch_size) == expected
    processor.shutdown()


@pytest.mark.usefixtures("no_variables")
@pytest.mark.parametrize(
    ("option", "variables", "expected"),
    [
        (None, {}, False),
        (URL, {}, True),
        (None, {ENDPOINT: URL}, True),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": URL}, True),
        (None, {ENDPOINT: ""}, False),
        (None, {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": URL}, False),
        (
            None,
            {ENDPOINT: URL, "OTEL_TRACES_EXPORTER": "none"},
            False,
        ),
        (URL, {"OTEL_TRACES_EXPORTER": "none"}, True),
        (URL, {"OTEL_SDK_DISABLED": "true"}, False),
    ],
)
async def test_who_says_whether_there_are_traces(
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    variables: dict[str, str],
    expected: object,
) -> None:
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


def test_the_end_takes_no_longer_than_what_ends_it_waits() -> None:
    assert app.END_TIMEOUT + app.FLUSH_TIMEOUT + of_requests.END_SECONDS < up._STOP_NOW_TIMEOUT
