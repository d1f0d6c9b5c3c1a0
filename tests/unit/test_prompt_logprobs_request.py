"""How log probabilities of a prompt are asked for, and what tells of none."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.domain.generation_request import MAX_TOP_LOGPROBS


@pytest.mark.parametrize("value", [None, 0, 1, MAX_TOP_LOGPROBS])
def test_the_log_probabilities_of_a_prompt_are_asked_for_by_number(
    read: Any, value: int | None
) -> None:
    assert read(prompt_logprobs=value).generation.prompt_logprobs == value


@pytest.mark.parametrize("value", [0, 1])
def test_streams_and_searches_do_not_tell_of_a_prompt(refused: Any, value: int) -> None:
    [violation] = refused(prompt_logprobs=value, stream=True)
    assert (violation.field, violation.code) == ("prompt_logprobs", "unsupported_parameter")
    assert "`prompt_logprobs` are not available when `stream=True`." in violation.message
    [violation] = refused(prompt_logprobs=value, best_of=2)
    assert (violation.field, violation.code) == ("prompt_logprobs", "unsupported_parameter")
    assert "beam search" in violation.message


def test_what_is_wrong_itself_is_told_alone(refused: Any) -> None:
    [violation] = refused(prompt_logprobs="x", stream=True, best_of=2)
    assert violation.message == "prompt_logprobs must be an integer, not a string."
