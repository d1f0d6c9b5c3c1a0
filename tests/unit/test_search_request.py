"""Beam search: asked for in OVMS's way or vLLM's, and what it excludes."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import BeamSearch
from ovchat_server.domain.generation_request import MAX_BEAMS
from ovchat_server.domain.limits import DEFAULT_LIMITS


@pytest.mark.parametrize(
    ("fields", "n", "expected"),
    [
        ({}, 1, None),
        ({"n": DEFAULT_LIMITS.max_choices}, DEFAULT_LIMITS.max_choices, None),
        ({"best_of": 1}, 1, None),
        ({"best_of": 1, "n": 1, "use_beam_search": False}, 1, None),
        ({"use_beam_search": True}, 1, None),
        ({"n": 3, "use_beam_search": False}, 3, None),
        ({"best_of": 2}, 1, BeamSearch(2)),
        ({"best_of": MAX_BEAMS, "n": MAX_BEAMS}, MAX_BEAMS, BeamSearch(MAX_BEAMS)),
        ({"n": 3, "use_beam_search": True}, 3, BeamSearch(3, field=FieldPath.of("n"))),
        ({"n": 2, "best_of": 4, "use_beam_search": True}, 2, BeamSearch(4)),
        ({"best_of": 2, "length_penalty": 0}, 1, BeamSearch(2, 0.0)),
        ({"best_of": 2, "length_penalty": -7}, 1, BeamSearch(2, -7.0)),
        ({"best_of": 2, "length_penalty": 7}, 1, BeamSearch(2, 7.0)),
        ({"length_penalty": 2}, 1, None),
        ({"n": 2, "length_penalty": 0}, 2, None),
        # Neutral, whatever the search.
        ({"best_of": 2, "min_tokens": 0, "ignore_eos": False}, 1, BeamSearch(2)),
        ({"best_of": 2, "repetition_penalty": 1.0}, 1, BeamSearch(2)),
        ({"best_of": 2, "temperature": 0.5, "seed": 3}, 1, BeamSearch(2)),
        ({"best_of": 2, "presence_penalty": 0, "frequency_penalty": 0.0}, 1, BeamSearch(2)),
        ({"best_of": 2, "logit_bias": {"5": 0}, "bad_words": []}, 1, BeamSearch(2)),
        ({"best_of": 2, "allowed_token_ids": None}, 1, BeamSearch(2)),
        # Greedy, and no search.
        ({"use_beam_search": True, "presence_penalty": 1}, 1, None),
    ],
)
def test_a_search_is_asked_for_in_two_ways(
    read: Any, fields: dict[str, Any], n: int, expected: BeamSearch | None
) -> None:
    generation = read(**fields).generation
    assert (generation.n, generation.beams) == (n, expected)


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"n": 3, "best_of": 2}, "best_of", "invalid_value"),
        ({"n": 2, "best_of": 1}, "best_of", "invalid_value"),
        ({"n": 21, "use_beam_search": True}, "n", "invalid_value"),
        ({"best_of": 2, "use_beam_search": False}, "use_beam_search", "invalid_value"),
        ({"length_penalty": 8}, "length_penalty", "invalid_value"),
        ({"best_of": 2, "length_penalty": 7.5}, "length_penalty", "invalid_value"),
        ({"best_of": 2, "length_penalty": -7.5}, "length_penalty", "invalid_value"),
        ({"best_of": 2, "min_tokens": 1}, "min_tokens", "unsupported_parameter"),
        ({"best_of": 2, "ignore_eos": True}, "ignore_eos", "unsupported_parameter"),
        (
            {"best_of": 2, "repetition_penalty": 1.1},
            "repetition_penalty",
            "unsupported_parameter",
        ),
        ({"best_of": 2, "presence_penalty": 1}, "presence_penalty", "unsupported_parameter"),
        ({"best_of": 2, "frequency_penalty": -1}, "frequency_penalty", "unsupported_parameter"),
        ({"best_of": 2, "logit_bias": {"5": 1}}, "logit_bias", "unsupported_parameter"),
        ({"best_of": 2, "allowed_token_ids": [5]}, "allowed_token_ids", "unsupported_parameter"),
        ({"best_of": 2, "bad_words": ["x"]}, "bad_words", "unsupported_parameter"),
    ],
)
def test_a_search_that_cannot_be_is_refused_by_name(
    refused: Any, fields: dict[str, Any], field: str, code: str
) -> None:
    assert [(item.field, item.code) for item in refused(**fields)] == [(field, code)]


@pytest.mark.parametrize("fields", [{}, {"best_of": 1}, {"temperature": 1.5, "min_tokens": 2}])
def test_a_search_with_one_beam_takes_the_likeliest_token(
    read: Any, fields: dict[str, Any]
) -> None:
    generation = read(use_beam_search=True, **fields).generation
    assert generation.sampling.temperature == 0
