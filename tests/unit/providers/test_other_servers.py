"""Answers in OpenAI's API as other servers write them, and what is no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ovchat_server.domain.chat import Role
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, TokenLogprob, Usage
from ovchat_server.providers.kind import BadAnswerError, ReportedError
from ovchat_server.providers.openai.kind import OpenAiKind
from tests.parameters.endpoints import WEATHER
from tests.unit.providers.joined import collected
from tests.unit.readers import read_chat, read_text

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import Choice
    from ovchat_server.domain.text import TextRequest

KIND = OpenAiKind("p", "max_tokens", vllm_parameters=False)
TOOLS = {"tools": [WEATHER]}
HM, SO = TokenLogprob("Hm", -0.5, b"Hm", 0), TokenLogprob("So", -0.5, b"So", 2)


def event(*choices: dict[str, Any], **fields: Any) -> bytes:
    return msgspec.json.encode({"choices": choices, **fields})


def delta(finish: str | None = None, **said: Any) -> bytes:
    return event({"index": 0, "delta": said, "finish_reason": finish})


def wire_call(index: int | None, **fields: Any) -> dict[str, Any]:
    """What a server says of a call; without what it leaves out."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {
        "type": "function",
        **({} if index is None else {"index": index}),
        **fields,
        "function": function,
    }


DETAILS = "prompt_tokens_details"
COUNTED = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
ROME = {"name": "get_weather", "arguments": '{"city": "Rome"}'}
ROME_AND_PARIS = [("get_weather", '{"city": "Rome"}'), ("get_weather", '{"city": "Paris"}')]
PARIS = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
STREAMS: dict[str, tuple[list[bytes], tuple[str, str | None, list[tuple[str, str]], str]]] = {
    "OpenAI": (
        [
            delta(role="assistant", content="", refusal=None),
            delta(content="Hi"),
            delta("stop"),
            event(usage=COUNTED),
        ],
        ("Hi", None, [], "stop"),
    ),
    "OpenAI refuses": (
        [
            delta(role="assistant", refusal="I can"),
            delta(refusal="not."),
            delta("stop"),
            event(usage=COUNTED),
        ],
        ("I cannot.", None, [], "stop"),
    ),
    "OpenAI, a call by name": (
        [
            delta(
                role="assistant",
                content=None,
                tool_calls=[wire_call(0, id="call_a", name="get_weather", arguments="")],
            ),
            delta(tool_calls=[{"index": 0, "function": {"arguments": '{"city": '}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": '"Rome"}'}}]),
            delta("stop"),
            event(usage=COUNTED),
        ],
        ("", None, ROME_AND_PARIS[:1], "tool_calls"),
    ),
    # The prompt's filter comes first, and the answer ends in another event.
    "Azure": (
        [
            event(prompt_filter_results=[]),
            delta(content="Hi"),
            delta("content_filter"),
            event(usage=COUNTED),
        ],
        ("Hi", None, [], "content_filter"),
    ),
    # The role in each chunk, whole calls, and all of them have the same index.
    "Ollama": (
        [
            delta(role="assistant", content="", reasoning="Hm"),
            delta(role="assistant", content="", tool_calls=[wire_call(0, id="call_a", **ROME)]),
            delta(role="assistant", content="", tool_calls=[wire_call(0, id="call_b", **PARIS)]),
            delta("tool_calls", role="assistant", content=""),
            event(usage=COUNTED),
        ],
        ("", "Hm", ROME_AND_PARIS, "tool_calls"),
    ),
    "older Ollama, without an index": (
        [
            delta(role="assistant", content="", tool_calls=[wire_call(None, id="call_a", **ROME)]),
            delta(role="assistant", content="", tool_calls=[wire_call(None, id="call_b", **PARIS)]),
            delta("stop", role="assistant", content=""),
            event(usage=COUNTED),
        ],
        ("", None, ROME_AND_PARIS, "tool_calls"),
    ),
    "neither an index nor an id": (
        [
            delta(tool_calls=[wire_call(None, **ROME), wire_call(None, **PARIS)]),
            delta("tool_calls"),
            event(usage=COUNTED),
        ],
        ("", None, ROME_AND_PARIS, "tool_calls"),
    ),
    "LM Studio": (
        [
            delta(role="assistant", reasoning_content="Hm"),
            delta(tool_calls=[wire_call(0, id="1", name="get_weather", arguments="")]),
            delta(tool_calls=[wire_call(0, name="", arguments='{"city": "Rome"}')]),
            delta(tool_calls=[wire_call(1, id="2", name="get_weather", arguments="")]),
            delta(tool_calls=[wire_call(1, name="", arguments='{"city": "Paris"}')]),
            delta("tool_calls"),
            event(usage=COUNTED),
        ],
        ("", "Hm", ROME_AND_PARIS, "tool_calls"),
    ),
    # Each delta with an id of its own, or with the same id and the name again.
    "vLLM, older": (
        [
            delta(role="assistant", content=""),
            delta(tool_calls=[wire_call(0, id="call_a", name="get_weather")]),
            delta(tool_calls=[wire_call(0, id="call_x", arguments='{"city": ')]),
            delta(tool_calls=[wire_call(0, id="call_y", arguments='"Rome"}')]),
            delta(
                tool_calls=[wire_call(1, id="call_b", name="get_weather", arguments='{"city": ')]
            ),
            delta(tool_calls=[wire_call(1, id="call_b", name="get_weather", arguments='"Paris"}')]),
            delta("tool_calls", content=""),
            event(usage=COUNTED),
        ],
        ("", None, ROME_AND_PARIS, "tool_calls"),
    ),
    # The same index and the same id for all.
    "other names": (
        [
            delta(tool_calls=[wire_call(0, id="call_a", **ROME)]),
            delta(tool_calls=[wire_call(0, id="call_a", name="get_time", arguments="{}")]),
            delta(tool_calls=[wire_call(0, name="get_date", arguments="{")]),
            delta(tool_calls=[wire_call(0, arguments="}")]),
            delta("tool_calls"),
            event(usage=COUNTED),
        ],
        ("", None, [*ROME_AND_PARIS[:1], ("get_time", "{}"), ("get_date", "{}")], "tool_calls"),
    ),
    "Mistral": (
        [
            delta(role="assistant", content=""),
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]),
            delta(content=[{"type": "reference", "reference_ids": [1]}, {"text": "Hi"}]),
            delta("stop", content=""),
            event(usage=COUNTED),
        ],
        ("Hi", "Hm", [], "stop"),
    ),
    "llama.cpp": (
        [
            delta(role="assistant", content=None),
            delta(reasoning_content="Hm"),
            delta(content="Hi"),
            event({"index": 0, "delta": {}, "finish_reason": "length"}),
            event(usage=COUNTED, timings={"prompt_n": 5}),
        ],
        ("Hi", "Hm", [], "length"),
    ),
    # The usage with the end, nothing that is null, and something behind the end.
    "tersest": (
        [
            event({"delta": {"content": "Hi"}}),
            event({"delta": {}, "finish_reason": "eos"}, usage=COUNTED),
            event({"delta": {"content": ""}, "finish_reason": "eos"}),
        ],
        ("Hi", None, [], "stop"),
    ),
    # Nothing between, errors that are none, and odd types of what does not matter.
    "oddest": (
        [
            b"{}",
            event({"index": None, "delta": {"content": "Hi", "reasoning": {}}}, error={}),
            event({"index": 0.0, "delta": {}, "logprobs": [], "stop_reason": []}, error=False),
            event({"delta": {}, "finish_reason": "stop"}, error="", prompt_logprobs={}),
            event(
                usage={
                    "prompt_tokens": 5.0,
                    "completion_tokens": 2,
                    DETAILS: {"cached_tokens": "x"},
                }
            ),
            event(usage={}),
        ],
        ("Hi", None, [], "stop"),
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_of_other_servers(name: str) -> None:
    events, expected = STREAMS[name]
    reader = KIND.reader(read_chat(stream=True, **TOOLS))

    chunks = [chunk for data in (*events, b"[DONE]") for chunk in reader.event(data)]

    assert chunks[0] == ChunkChoice(0, Delta(role=Role.ASSISTANT))
    [choice] = collected(chunks, 1)
    message, calls = choice.message, choice.message.tool_calls
    called = [(item.name, item.arguments) for item in calls]
    assert (message.text, message.reasoning_content, called, choice.finish_reason) == expected
    assert len({item.id for item in calls} - {""}) == len(calls)
    assert (reader.ended, reader.usage) == (True, Usage(5, 2))


def whole_choice(request: ChatRequest | TextRequest, *choices: dict[str, Any]) -> Choice:
    [choice] = collected(KIND.reader(request).whole(event(*choices)), 1)
    return choice


def test_a_whole_answer_that_does_not_say_why_it_ended() -> None:
    choice = whole_choice(read_chat(), {"message": {"content": "Hi"}, "finish_reason": None})
    assert (choice.message.text, choice.finish_reason) == ("Hi", FinishReason.STOP)


def test_reasoning_that_is_not_wanted_is_left_out_with_its_tokens() -> None:
    said = {"message": {"reasoning": "Hm", "content": "So"}}
    logprobs = {"content": [{"token": text, "logprob": -0.5} for text in ("Hm", "So")]}

    choice = whole_choice(
        read_chat(include_reasoning=False, logprobs=True), {**said, "logprobs": logprobs}
    )

    assert choice.message.reasoning_content is None
    assert choice.logprobs == (SO,)


def test_of_several_calls_one_is_read_where_one_is_wanted() -> None:
    calls = [wire_call(None, id="a", **ROME), wire_call(None, id="b", **PARIS)]

    choice = whole_choice(
        read_chat(parallel_tool_calls=False, **TOOLS), {"message": {"tool_calls": calls}}
    )

    assert [item.arguments for item in choice.message.tool_calls] == [ROME["arguments"]]


def test_tokens_of_texts_are_counted_from_the_beginning_of_the_choice() -> None:
    """OpenAI's from that of the prompt, llama.cpp's not at all."""
    lists = {"tokens": ["Hm", "So"], "token_logprobs": [-0.5, -0.5], "text_offset": [30, 32]}
    listed = {
        "content": [
            {"id": 1, "token": text, "bytes": [*text.encode()], "logprob": -0.5}
            for text in ("Hm", "So")
        ]
    }

    for logprobs in (lists, listed):
        choice = whole_choice(read_text(logprobs=0), {"text": "HmSo", "logprobs": logprobs})
        assert choice.logprobs == (HM, SO)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"choices": 1}',
        b'{"choices": [{"delta": {"content": 1}}]}',
        b'{"choices": [{"index": 1, "delta": {}}]}',
        b'{"choices": [{"index": -1, "delta": {}}]}',
        b'{"choices": [{"delta": {}, "finish_reason": "error"}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]}',
        b'{"choices": [{"logprobs": {"content": [{"token": "a", "logprob": 0, "bytes": [256]}]}}]}',
        b"\xff" * 8,
        b"[DONE]",
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_reported_as_that(data: bytes) -> None:
    with pytest.raises(BadAnswerError):
        KIND.reader(read_chat(logprobs=True)).event(data)


def test_a_choice_that_never_comes_is_missed() -> None:
    """Some servers do not know `n`."""
    for body, missing in ((event({"message": {"content": "Hi"}}), 1), (b"{}", 2)):
        with pytest.raises(BadAnswerError, match=f"{missing} of 2 choices have no end"):
            KIND.reader(read_chat(n=2)).whole(body)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "out of memory", "type": "server_error"}},
        {"error": "out of memory"},
        {"object": "error", "message": "out of memory", "code": 500},
    ],
)
def test_errors_in_answers(body: dict[str, Any]) -> None:
    data = msgspec.json.encode(body)
    for read in (KIND.reader(read_chat()).event, KIND.reader(read_text()).whole):
        with pytest.raises(ReportedError, match=r"^out of memory$"):
            read(data)
