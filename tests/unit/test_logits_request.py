"""The parameters that change logits, as both endpoints read them."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.domain.generation import SamplingParams
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.logits_request import MAX_BAD_WORD_CHARACTERS

UINT32 = 2**32 - 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"presence_penalty": 0.5}, SamplingParams(presence_penalty=0.5)),
        ({"frequency_penalty": -2}, SamplingParams(frequency_penalty=-2.0)),
        (
            {"logit_bias": {"5": -100, "0": 100, str(UINT32): 0.5}},
            SamplingParams(logit_bias=((5, -100.0), (0, 100.0), (UINT32, 0.5))),
        ),
        ({"logit_bias": {"5": None}}, SamplingParams()),
        ({"allowed_token_ids": [7, 0, 7]}, SamplingParams(allowed_token_ids=(7, 0, 7))),
        ({"bad_words": ["a", " b "]}, SamplingParams(bad_words=("a", " b "))),
    ],
)
def test_they_are_read(read: Any, fields: dict[str, Any], expected: SamplingParams) -> None:
    assert read(**fields).generation.sampling == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"presence_penalty": 0, "frequency_penalty": 0.0},
        {"logit_bias": {}, "allowed_token_ids": None, "bad_words": []},
        {"allowed_token_ids": []},
    ],
)
def test_what_changes_nothing_is_as_absent(read: Any, fields: dict[str, Any]) -> None:
    assert read(**fields) == read()


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, ()),
        ({"temperature": 0.5, "repetition_penalty": 1.5}, ()),
        ({"logit_bias": {"5": 0}}, ()),
        ({"logit_bias": {"5": 0, "6": 0.1}}, ("logit_bias",)),
        (
            {
                "presence_penalty": 1,
                "frequency_penalty": -1,
                "allowed_token_ids": [0],
                "bad_words": ["x"],
            },
            ("presence_penalty", "frequency_penalty", "allowed_token_ids", "bad_words"),
        ),
    ],
)
def test_which_of_them_change_logits_is_known_by_name(
    read: Any, fields: dict[str, Any], names: tuple[str, ...]
) -> None:
    assert read(**fields).generation.sampling.logit_changes() == names


@pytest.mark.parametrize("key", ["x", "", "-1", "1.0", " 5", "5 ", "05", "1_0", "٣", "9" * 5000])
def test_a_key_that_is_no_token_id_is_named(refused: Any, key: str) -> None:
    (violation,) = refused(logit_bias={"7": 1, key: 1})
    assert violation.field == f"logit_bias.{key[:50]}{'...' if len(key) > 50 else ''}"
    assert violation.code == "invalid_value"
    assert "has an invalid key" in violation.message


def test_a_key_beyond_any_vocabulary_is_named(refused: Any) -> None:
    (violation,) = refused(logit_bias={str(UINT32 + 1): 1})
    assert violation.field == f"logit_bias.{UINT32 + 1}"
    assert str(UINT32) in violation.message


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (100.01, "invalid_value"),
        (-100.01, "invalid_value"),
        (float("nan"), "invalid_value"),
        ("1", "invalid_type"),
        (True, "invalid_type"),
        ([], "invalid_type"),
    ],
)
def test_a_wrong_bias_is_refused_by_its_key(refused: Any, value: Any, code: str) -> None:
    violations = refused(logit_bias={"7": 1, "8": value})
    assert [(item.field, item.code) for item in violations] == [("logit_bias.8", code)]


@pytest.mark.parametrize(
    ("field", "value", "path", "code"),
    [
        ("allowed_token_ids", [1, "2"], "allowed_token_ids[1]", "invalid_type"),
        ("allowed_token_ids", [True], "allowed_token_ids[0]", "invalid_type"),
        ("allowed_token_ids", [0, -1], "allowed_token_ids[1]", "invalid_value"),
        ("allowed_token_ids", [UINT32 + 1], "allowed_token_ids[0]", "invalid_value"),
        ("bad_words", ["a", 1], "bad_words[1]", "invalid_type"),
        ("bad_words", [None], "bad_words[0]", "invalid_type"),
        ("bad_words", [""], "bad_words[0]", "invalid_value"),
        ("bad_words", ["a", " \n\t"], "bad_words[1]", "invalid_value"),
        ("bad_words", ["x" * (MAX_BAD_WORD_CHARACTERS + 1)], "bad_words[0]", "invalid_value"),
    ],
)
def test_a_wrong_item_is_refused_by_its_place(
    refused: Any, field: str, value: Any, path: str, code: str
) -> None:
    assert [(item.field, item.code) for item in refused(**{field: value})] == [(path, code)]


def test_there_may_be_as_many_as_the_limits_say(read: Any) -> None:
    limits = DEFAULT_LIMITS
    sampling = read(
        logit_bias={str(number): 1 for number in range(limits.max_logit_biases)},
        allowed_token_ids=[1] * limits.max_allowed_tokens,
        bad_words=["x" * MAX_BAD_WORD_CHARACTERS] * limits.max_bad_words,
    ).generation.sampling
    assert len(sampling.logit_bias) == limits.max_logit_biases
    assert len(sampling.allowed_token_ids) == limits.max_allowed_tokens
    assert len(sampling.bad_words) == limits.max_bad_words
