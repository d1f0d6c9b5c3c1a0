"""Answers of the Responses API: events, the response they lead to, and the same one as a whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response

from ovchat_server.domain.completion import Delta, FinishReason
from tests.unit.responses.answers import (
    CALL,
    CUSTOM,
    EMPTY,
    ENDED,
    INFO,
    MESSAGE,
    OPENING,
    REASONING,
    REPEATED,
    SUMMARY,
    TOOLS,
    called,
    chunks,
    content_of,
    deltas_of,
    events,
    kinds,
    request,
    said,
    sdk_stream,
    streamed,
    thought,
    whole,
)

PIECES = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3)
ARGUMENTS = PIECES | st.sampled_from([['{"input": "a\\u00', 'e9\\n"', "}"], ['{"input": "', "a"]])
NAMES = st.sampled_from([*TOOLS, "unknown"])


@st.composite
def answers(draw: st.DrawFn) -> list[Delta]:
    deltas: list[Delta] = []
    count = 0
    for kind in draw(st.lists(st.sampled_from("rtc"), max_size=5)):
        if kind == "c":
            deltas += called(count, draw(NAMES), *draw(ARGUMENTS))
            count += 1
        else:
            deltas += map(thought if kind == "r" else said, draw(PIECES))
    return deltas


@given(answers(), st.sampled_from(FinishReason), st.booleans(), st.booleans())
def test_the_events_joined_are_the_whole(
    deltas: list[Delta],
    reason: FinishReason,
    summarized: bool,  # noqa: FBT001
    likely: bool,  # noqa: FBT001
) -> None:
    asked, parts = request(summarized=summarized), chunks(deltas, reason, likely=likely)
    found = events(streamed(asked, parts))
    expected = whole(asked, parts)
    assert found[-1]["response"] == expected
    done = [event for event in found if event["type"] == "response.output_item.done"]
    assert [event["item"] for event in done] == expected["output"]
    assert [event["output_index"] for event in done] == [*range(len(done))]
    for item in expected["output"]:
        assert deltas_of(found, item) == content_of(item)


@given(answers())
def test_openais_sdk_reads_the_stream_as_the_whole(deltas: list[Delta]) -> None:
    parts = chunks(deltas)
    with sdk_stream(streamed(request(), parts)) as stream:
        read = stream.get_final_response()
    assert read.output_text == Response.model_validate(whole(request(), parts)).output_text
    assert [item.id for item in read.output] == [
        item["id"] for item in whole(request(), parts)["output"]
    ]


def test_the_whole_response() -> None:
    deltas = [thought("Hm."), said("Hi"), *called(0, "files__read", "{}")]
    deltas += called(1, "patch", '{"input": "a\\n"}')
    assert whole(request(), chunks(deltas, FinishReason.TOOL_CALLS)) == {
        "id": "resp_0a",
        "object": "response",
        "created_at": INFO.created,
        "completed_at": ENDED,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "demo",
        "output": [
            {
                "id": "rs_0a_0",
                "type": "reasoning",
                "status": "completed",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "Hm."}],
            },
            {
                "id": "msg_0a_1",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
                ],
            },
            {
                "id": "fc_0a_2",
                "type": "function_call",
                "status": "completed",
                "call_id": "call_0",
                "name": "read",
                "namespace": "files",
                "arguments": "{}",
            },
            {
                "id": "ctc_0a_3",
                "type": "custom_tool_call",
                "status": "completed",
                "call_id": "call_1",
                "name": "patch",
                "input": "a\n",
            },
        ],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 18,
        },
        "temperature": 0.7,
        "top_p": 0.9,
        **REPEATED,
    }


@pytest.mark.parametrize(
    ("deltas", "order"),
    [
        ([said("Hi")], MESSAGE),
        ([thought("Hm."), said("Hi")], [*REASONING, *MESSAGE]),
        ([*called(0, "get", "{}"), *called(1, "get", "{}")], [*CALL, *CALL]),
        (called(0, "patch", '{"inp', 'ut": "', "a", '"}'), CUSTOM),
        ([], EMPTY),
    ],
)
def test_the_order_of_events(deltas: list[Delta], order: list[str]) -> None:
    assert kinds(streamed(request(), chunks(deltas))) == [*OPENING, *order, "completed"]


def test_summaries_have_events_of_their_own() -> None:
    found = kinds(streamed(request(summarized=True), chunks([thought("Hm."), said("Hi")])))
    assert found == [*OPENING, *SUMMARY, *MESSAGE, "completed"]


def test_a_cut_answer_is_incomplete_and_so_is_its_last_item() -> None:
    stream = streamed(request(), chunks([thought("Hm."), said("H")], FinishReason.LENGTH))
    assert kinds(stream) == [*OPENING, *REASONING, *MESSAGE, "incomplete"]
    response = events(stream)[-1]["response"]
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (response["status"], response["completed_at"]) == ("incomplete", None)


def test_an_opened_stream_has_nothing_yet() -> None:
    created, in_progress, added, part, *_ = events(streamed(request(), chunks([said("Hi")])))
    response = created["response"]
    assert (response["status"], response["output"], response["usage"]) == ("in_progress", [], None)
    assert in_progress["response"] == response
    assert (added["item"]["status"], added["item"]["content"]) == ("in_progress", [])
    assert part["part"]["text"] == ""
