"""Events and responses as messages: all that they say, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.json_format import MessageToDict

from ovchat.v1 import chat_pb2, response_event_pb2
from ovchat_server.domain.completion import Chunk, FinishReason
from ovchat_server.responses.events import ResponseEvents
from ovchat_server.rpc.response_messages import as_told, event_message
from tests.unit.responses.answers import (
    ENDED,
    INFO,
    USAGE,
    called,
    chunks,
    request,
    said,
    thought,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.domain.responses.request import ResponsesRequest

# What JSON has and messages leave out, besides what is not set.
UNTOLD = {"object", "annotations", "cache_write_tokens", "type"}
ANSWERS = {
    "all kinds": [
        thought("Hm"),
        said("Hi"),
        said(" you"),
        *called(0, "get", '{"a', '": 1}'),
        *called(1, "files__read", "{}"),
        *called(2, "patch", '{"input": "', 'go"}'),
        *called(3, "files__edit", '{"input": ""}'),
    ],
    "nothing": [],
}


def made(
    asked: ResponsesRequest, parts: Sequence[ChunkChoice]
) -> list[tuple[dict[str, Any], response_event_pb2.ResponseEvent]]:
    """All events, as JSON and as messages."""
    events = ResponseEvents(as_told(asked))
    found = [*events.begin(INFO)]
    for part in parts:
        found += events.chunk(Chunk(INFO, (part,)))
    found += [*events.chunk(Chunk(INFO, (), USAGE, ENDED)), *events.end()]
    return [(event, event_message(event)) for event in found]


def leaves(value: Any) -> list[str]:
    """All that JSON says, without its structure, in the words of the contract."""
    if isinstance(value, dict):
        return sorted(
            leaf for key, item in value.items() if key not in UNTOLD for leaf in leaves(item)
        )
    if isinstance(value, list):
        if value and all(isinstance(item, int) for item in value):
            return [bytes(value).hex()]
        return [leaf for item in value for leaf in leaves(item)]
    if value in (None, ""):
        return []
    return [str(value)]


def message_leaves(message: Any) -> list[str]:
    """The same of a message."""
    found: list[str] = []
    for field, value in message.ListFields():
        for item in value if field.is_repeated else [value]:
            if field.message_type is not None:
                found += message_leaves(item)
            elif field.enum_type is not None:
                prefix = field.enum_type.values[0].name.removesuffix("UNSPECIFIED")
                found.append(field.enum_type.values_by_number[item].name[len(prefix) :].lower())
            elif isinstance(item, bytes):
                found.append(item.hex())
            elif item != "":
                found.append(str(item))
    return sorted(found)


@pytest.mark.parametrize("summarized", [False, True])
@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH])
@pytest.mark.parametrize("answer", ANSWERS)
def test_every_event_says_as_a_message_what_it_says_as_json(
    answer: str, reason: FinishReason, *, summarized: bool
) -> None:
    parts = chunks(ANSWERS[answer], reason, likely=True)
    events = made(request(summarized=summarized), parts)
    for number, (event, message) in enumerate(events):
        assert message.sequence_number == number
        kind = event["type"].removeprefix("response.").replace(".", "_")
        assert message.WhichOneof("event") == kind
        assert message_leaves(message) == sorted(leaves(event))


def test_every_kind_of_event_of_the_contract_is_made() -> None:
    kinds = {
        message.WhichOneof("event")
        for summarized in (False, True)
        for reason in (FinishReason.STOP, FinishReason.LENGTH)
        for _, message in made(request(summarized=summarized), chunks(ANSWERS["all kinds"], reason))
    }
    event = response_event_pb2.ResponseEvent.DESCRIPTOR.oneofs_by_name["event"]
    assert kinds == {field.name for field in event.fields}


def test_a_response_repeats_of_its_request_what_continues_it() -> None:
    asked = replace(
        request(),
        instructions="Be brief.",
        previous_response_id="resp_1",
        repeated={"metadata": {"a": "b"}, "tools": []},
    )

    _, last = made(asked, chunks([said("Hi")], likely=True))[-1]

    response = last.completed.response
    assert response.instructions == "Be brief."
    assert response.previous_response_id == "resp_1"
    assert response.metadata == {"a": "b"}
    assert (response.temperature, response.top_p) == (INFO.temperature, INFO.top_p)
    assert response.completed_at == ENDED
    assert MessageToDict(response.usage, preserving_proto_field_name=True) == {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 18,
    }
    assert response.output[0].message.content[0].output_text.logprobs[0] == chat_pb2.TokenLogprob(
        token="Hi",
        logprob=-0.5,
        bytes=b"Hi",
        top_logprobs=[
            chat_pb2.TopLogprob(token="Hi", logprob=-0.5, bytes=b"Hi"),
            chat_pb2.TopLogprob(token="no", logprob=-1.5, bytes=b"no"),
        ],
    )
