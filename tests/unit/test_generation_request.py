"""The rules that chat and text completions share: bounds, types, and what excludes what."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.generation import (
    Ending,
    SamplingParams,
    StreamOptions,
    Truncation,
    TruncationSide,
)
from ovchat_server.domain.generation_request import (
    MAX_BEAMS,
    MAX_TOP_LOGPROBS,
)
from ovchat_server.domain.limits import DEFAULT_LIMITS
from tests.unit.readers import read_chat, read_text

UINT32 = 2**32 - 1


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("temperature", [0, 0.7, 2]),
        ("top_p", [1e-9, 1]),
        ("top_k", [-1, 0, 2**31 - 1]),
        ("min_p", [0, 0.5, 0.999]),
        ("repetition_penalty", [0.01, 1, 100]),
        ("seed", [-(2**63), -1, 0, 2**32, 2**63 - 1]),
        ("presence_penalty", [-2, 0, 0.5, 2]),
        ("frequency_penalty", [-2, 0, 0.5, 2]),
    ],
)
def test_sampling_takes_every_value_within_its_bounds(
    read: Any, field: str, values: list[float]
) -> None:
    for value in values:
        sampling = read(**{field: value}).generation.sampling
        assert getattr(sampling, field) == value


def test_what_is_absent_is_left_to_the_model(read: Any) -> None:
    assert read().generation.sampling == SamplingParams()
    assert read(temperature=None, seed=None).generation.sampling == SamplingParams()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.01),
        ("temperature", math.nan),
        ("temperature", math.inf),
        pytest.param("temperature", 10**400, id="temperature-huge"),
        ("top_p", 0),
        ("top_p", 1.01),
        ("top_k", -2),
        ("top_k", 2**31),
        ("min_p", -0.01),
        ("min_p", 1),
        ("min_p", math.nan),
        ("repetition_penalty", 0.0099),
        ("repetition_penalty", 0),
        ("repetition_penalty", 100.01),
        ("repetition_penalty", math.inf),
        ("presence_penalty", -2.01),
        ("presence_penalty", 2.01),
        ("presence_penalty", math.nan),
        ("frequency_penalty", -2.01),
        ("frequency_penalty", 2.01),
        ("frequency_penalty", math.inf),
        ("logit_bias", {str(number): 1 for number in range(DEFAULT_LIMITS.max_logit_biases + 1)}),
        ("allowed_token_ids", [1] * (DEFAULT_LIMITS.max_allowed_tokens + 1)),
        ("bad_words", ["x"] * (DEFAULT_LIMITS.max_bad_words + 1)),
        # vLLM's whole vocabulary.
        ("prompt_logprobs", -1),
        ("prompt_logprobs", MAX_TOP_LOGPROBS + 1),
        ("seed", -(2**63) - 1),
        ("seed", 2**63),
        ("max_tokens", 0),
        ("max_tokens", -1),
        ("max_tokens", 2**32),
        ("min_tokens", -1),
        ("n", 0),
        ("n", DEFAULT_LIMITS.max_choices + 1),
        ("best_of", 0),
        ("best_of", MAX_BEAMS + 1),
        ("truncate_prompt_tokens", -2),
        ("truncate_prompt_tokens", 0),
        ("truncate_prompt_tokens", 2**32),
        ("truncation_side", "middle"),
        ("truncation_side", "LEFT"),
        ("stop", ""),
        ("stop", ["a"] * (DEFAULT_LIMITS.max_stop_strings + 1)),
        ("stop_token_ids", [1] * (DEFAULT_LIMITS.max_stop_tokens + 1)),
        ("stream_options", {}),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(refused: Any, field: str, value: Any) -> None:
    (violation,) = refused(**{field: value})
    assert violation.field == field
    assert violation.code == "invalid_value"
    assert violation.message.startswith(f"{field} ")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("temperature", 2.5, "temperature must be at least 0 and at most 2, got 2.5."),
        ("temperature", -(10**400), "temperature must be at least 0 and at most 2, got -inf."),
        ("top_p", 0, "top_p must be greater than 0 and at most 1, got 0."),
        ("min_p", 1, "min_p must be at least 0 and less than 1, got 1."),
        ("top_k", -2, "top_k must be between -1 and 2147483647, got -2."),
        ("n", 129, "n must be between 1 and 128, got 129."),
    ],
)
def test_a_number_out_of_bounds_is_told_its_bounds_and_itself(
    refused: Any, field: str, value: float, message: str
) -> None:
    assert [item.message for item in refused(**{field: value})] == [message]


@pytest.mark.parametrize("value", [1, 2**32 - 1])
def test_the_length_of_a_chat_has_two_names(value: int) -> None:
    for field in ("max_tokens", "max_completion_tokens"):
        ending = read_chat(**{field: value}).generation.ending
        assert (ending.max_tokens, str(ending.max_tokens_field)) == (value, field)


def test_the_newer_name_of_the_length_wins() -> None:
    ending = read_chat(max_tokens=5, max_completion_tokens=7).generation.ending
    assert (ending.max_tokens, str(ending.max_tokens_field)) == (7, "max_completion_tokens")


@pytest.mark.parametrize("value", [0, -1, 2**32])
def test_the_newer_name_of_the_length_has_the_same_bounds(value: int) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_chat(max_completion_tokens=value)
    assert caught.value.param == "max_completion_tokens"


@pytest.mark.parametrize(("most", "fewest"), [(5, 5), (5, 0), (UINT32, UINT32)])
def test_the_fewest_tokens_may_be_as_many_as_the_most(read: Any, most: int, fewest: int) -> None:
    ending = read(max_tokens=most, min_tokens=fewest).generation.ending
    assert (ending.max_tokens, ending.min_tokens) == (most, fewest)


def test_the_fewest_tokens_are_not_more_than_the_most(refused: Any) -> None:
    (violation,) = refused(max_tokens=5, min_tokens=6)
    assert violation.field == "min_tokens"
    assert violation.message == "min_tokens must not be more than max_tokens, which is 5."


def test_the_name_of_the_length_that_counts_is_told() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_chat(max_tokens=9, max_completion_tokens=5, min_tokens=6)
    assert "not be more than max_completion_tokens, which is 5" in caught.value.message


def test_the_fewest_tokens_are_not_more_than_the_default_of_texts() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_text(min_tokens=17)
    assert caught.value.param == "min_tokens"
    assert read_text(min_tokens=16).generation.ending.min_tokens == 16
    assert read_chat(min_tokens=17).generation.ending.min_tokens == 17


def test_an_ending_is_read_whole(read: Any) -> None:
    ending = read(
        max_tokens=9,
        min_tokens=3,
        ignore_eos=True,
        stop=["a"],
        stop_token_ids=[0, UINT32],
        include_stop_str_in_output=True,
    ).generation.ending
    assert ending == Ending(
        max_tokens=9,
        min_tokens=3,
        ignore_eos=True,
        stop=("a",),
        stop_token_ids=(0, UINT32),
        include_stop=True,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [("END", ("END",)), (["a", "b"], ("a", "b")), ([], ()), (["\n"] * 16, ("\n",) * 16)],
)
def test_stop_is_a_string_or_several(read: Any, value: Any, expected: tuple[str, ...]) -> None:
    assert read(stop=value).generation.ending.stop == expected


@pytest.mark.parametrize(
    ("field", "value", "path", "code"),
    [
        ("stop", ["a", ""], "stop[1]", "invalid_value"),
        ("stop", ["a", 1], "stop[1]", "invalid_type"),
        ("stop", [None], "stop[0]", "invalid_type"),
        ("stop_token_ids", [1, "2"], "stop_token_ids[1]", "invalid_type"),
        ("stop_token_ids", [True], "stop_token_ids[0]", "invalid_type"),
        ("stop_token_ids", [1, 1.5], "stop_token_ids[1]", "invalid_type"),
        ("stop_token_ids", [None], "stop_token_ids[0]", "invalid_type"),
        ("stop_token_ids", [1, 2, -1], "stop_token_ids[2]", "invalid_value"),
        ("stop_token_ids", [2**32], "stop_token_ids[0]", "invalid_value"),
    ],
)
def test_a_wrong_item_is_refused_by_its_place(
    refused: Any, field: str, value: Any, path: str, code: str
) -> None:
    assert [(item.field, item.code) for item in refused(**{field: value})] == [(path, code)]


def test_control_tokens_are_left_out_unless_asked_for(read: Any) -> None:
    shown = [read(skip_special_tokens=value).generation for value in (None, True, False)]
    assert [item.skip_special_tokens for item in shown] == [True, True, False]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"truncation_side": "right"}, None),
        ({"truncate_prompt_tokens": -1}, Truncation(None)),
        ({"truncate_prompt_tokens": 1}, Truncation(1)),
        ({"truncate_prompt_tokens": UINT32}, Truncation(UINT32)),
        ({"truncate_prompt_tokens": 5, "truncation_side": "left"}, Truncation(5)),
        (
            {"truncate_prompt_tokens": 5, "truncation_side": "right"},
            Truncation(5, TruncationSide.RIGHT),
        ),
    ],
)
def test_a_prompt_is_cut_as_asked_for(
    read: Any, fields: dict[str, Any], expected: Truncation | None
) -> None:
    assert read(**fields).generation.truncation == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, StreamOptions()),
        ({}, StreamOptions()),
        ({"include_usage": None}, StreamOptions()),
        ({"include_usage": False, "continuous_usage_stats": False}, StreamOptions()),
        ({"include_usage": True, "include_obfuscation": True}, StreamOptions(include_usage=True)),
        # How often, not whether.
        ({"continuous_usage_stats": True}, StreamOptions()),
        ({"continuous_usage_stats": True, "include_usage": False}, StreamOptions()),
        (
            {"include_usage": True, "continuous_usage_stats": True},
            StreamOptions(include_usage=True, continuous_usage=True),
        ),
    ],
)
def test_a_stream_carries_its_usage_where_asked_for(
    read: Any, options: Any, expected: StreamOptions
) -> None:
    assert read(stream=True, stream_options=options).stream == expected


@pytest.mark.parametrize("name", ["include_usage", "continuous_usage_stats"])
def test_a_wrong_stream_option_is_refused_by_name(refused: Any, name: str) -> None:
    violations = refused(stream=True, stream_options={name: 1})
    expected = [(f"stream_options.{name}", "invalid_type")]
    assert [(item.field, item.code) for item in violations] == expected


def test_several_faults_are_told_together(refused: Any) -> None:
    violations = refused(
        n=0,
        max_tokens=2,
        min_tokens=3,
        stop_token_ids=["a", -1],
        length_penalty=8,
        truncation_side="up",
        seed="x",
    )
    assert {item.field for item in violations} == {
        "min_tokens",
        "stop_token_ids[0]",
        "stop_token_ids[1]",
        "n",
        "seed",
        "length_penalty",
        "truncation_side",
    }
