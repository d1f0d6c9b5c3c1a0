"""The gRPC door reads the same text completion request as the REST door."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat.v1 import chat_pb2, completion_pb2, format_pb2
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.parameters import TEXT
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.rpc.request import text_request
from tests.unit.proto_tools import BIAS, FORMS, OLDER


def text(value: str) -> completion_pb2.Prompt:
    return completion_pb2.Prompt(text=value)


def tokens(*values: int) -> completion_pb2.Prompt:
    return completion_pb2.Prompt(token_ids=completion_pb2.TokenIds(values=values))


def proto(**fields: Any) -> completion_pb2.CreateCompletionRequest:
    fields = {"model": "demo", "prompt": [text("Hi")]} | fields
    return completion_pb2.CreateCompletionRequest(**fields)


def openai(**fields: Any) -> dict[str, Any]:
    return {"model": "demo", "prompt": "Hi"} | fields


# As proto, as OpenAI's JSON.
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "one text": ({"prompt": [text("a b")]}, {"prompt": ["a b"]}),
    "several texts": ({"prompt": [text("a"), text("b")]}, {"prompt": ["a", "b"]}),
    "tokens": ({"prompt": [tokens(0, 2**32 - 1)]}, {"prompt": [[0, 2**32 - 1]]}),
    "both": ({"prompt": [tokens(1, 2), text("b")]}, {"prompt": [[1, 2], "b"]}),
    **FORMS,
    "a search": (
        {"n": 2, "best_of": 4, "use_beam_search": True, "length_penalty": 0.5},
        {"n": 2, "best_of": 4, "use_beam_search": True, "length_penalty": 0.5},
    ),
    "a priority": ({"priority": 7}, {"priority": 7}),
    "a salt": ({"cache_salt": "s"}, {"cache_salt": "s"}),
    "a bias": BIAS,
    "only the prompt": ({"echo": True, "max_tokens": 0}, {"echo": True, "max_tokens": 0}),
}
PAIRS |= {
    # Fields of the same name and value on both doors.
    f"{name} {value}": ({name: value}, {name: value})
    for name, value in [
        ("model", "other"),
        ("suffix", ""),
        ("add_special_tokens", False),
        ("echo", True),
        ("return_token_ids", True),
        ("max_tokens", 7),
        ("min_tokens", 3),
        ("ignore_eos", True),
        ("stop", ["a", "b"]),
        ("stop_token_ids", [0, 1]),
        ("include_stop_str_in_output", True),
        ("skip_special_tokens", False),
        ("truncate_prompt_tokens", -1),
        ("truncation_side", "right"),
        ("temperature", 0),
        ("top_p", 0.5),
        ("top_k", -1),
        ("min_p", 0.25),
        ("seed", -1),
        ("repetition_penalty", 1.5),
        ("presence_penalty", -0.5),
        ("frequency_penalty", 2),
        ("allowed_token_ids", [0, 2**32 - 1]),
        ("bad_words", ["a", " b"]),
        ("n", 3),
        ("logprobs", 0),
        ("logprobs", 1),
        ("logprobs", 20),
        ("prompt_logprobs", 0),
        ("prompt_logprobs", 20),
        ("num_assistant_tokens", 0),
        ("max_ngram_size", 32),
        ("assistant_confidence_threshold", 0.5),
        ("user", "me"),
    ]
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_doors_read_the_same_request(name: str) -> None:
    typed, plain = PAIRS[name]
    read = text_request(proto(**typed), stream=False)
    assert read == read_text_request(openai(**plain))
    assert read.ignored == ()


def test_the_table_covers_every_served_field() -> None:
    covered = {field for typed, _ in PAIRS.values() for field in typed}
    # A stream is another RPC, and its options mean something there only.
    assert covered >= TEXT.served - {"stream", "stream_options"} - OLDER


def test_every_field_of_the_contract_is_known_to_the_rules() -> None:
    fields = set(completion_pb2.CreateCompletionRequest.DESCRIPTOR.fields_by_name)
    assert fields <= TEXT.served | TEXT.accepted | TEXT.refused.keys()


def test_a_streams_options_are_read() -> None:
    options = chat_pb2.StreamOptions(include_usage=True, continuous_usage_stats=True)
    read = text_request(proto(stream_options=options), stream=True)
    assert read.stream == StreamOptions(include_usage=True, continuous_usage=True)
    assert text_request(proto(), stream=True).stream == StreamOptions()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": [text("a"), completion_pb2.Prompt()]}, "prompt[1]"),
        ({"prompt": [text("a"), text("")]}, "prompt[1]"),
        ({"prompt": [text("a"), tokens()]}, "prompt[1]"),
        ({"suffix": "x"}, "suffix"),
        ({"logit_bias": {1: 200.0}}, "logit_bias"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"logprobs": 21}, "logprobs"),
        ({"prompt_logprobs": 21}, "prompt_logprobs"),
        ({"response_format": format_pb2.ResponseFormat()}, "response_format"),
        ({"structured_outputs": format_pb2.StructuredOutputs()}, "structured_outputs"),
        ({"stream_options": chat_pb2.StreamOptions()}, "stream_options"),
        ({"temperature": float("nan")}, "temperature"),
    ],
)
def test_what_is_unset_or_not_served_is_refused_by_name(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        text_request(proto(**fields), stream=False)
    assert [violation.field for violation in caught.value.violations] == [path]


def test_a_stream_refuses_what_it_cannot_tell() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        text_request(proto(prompt_logprobs=1), stream=True)
    assert caught.value.param == "prompt_logprobs"


def test_a_prompt_that_is_neither_says_what_it_could_be() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        text_request(proto(prompt=[completion_pb2.Prompt()]), stream=False)
    assert caught.value.message == "prompt[0] requires one of: text, token_ids."
    assert caught.value.code == "missing_required_parameter"
