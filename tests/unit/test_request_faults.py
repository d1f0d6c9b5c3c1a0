"""How the faults of a request are told: all at once, and never more than helps."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import (
    MAX_REPORTED_CHARACTERS,
    MAX_REPORTED_VIOLATIONS,
    InvalidRequestError,
)
from ovchat_server.domain.reader import MAX_VIOLATIONS
from tests.unit.test_chat_request import REQUIRED, read, refused

HUGE = "x" * 100_000


def test_every_fault_is_told_at_once_and_the_first_leads() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(temperature=3, top_p="x", messages=[{"content": "x"}], n=0, cache_salt="")
    error = caught.value
    paths = [violation.field for violation in error.violations]
    assert paths == ["messages[0].role", "n", "temperature", "top_p", "cache_salt"]
    assert error.param == "messages[0].role"
    assert error.code == "missing_required_parameter"
    for violation in error.violations:
        assert violation.message in error.message


def test_no_more_faults_are_told_than_help() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(messages=[{}] * 50)
    assert len(caught.value.violations) == MAX_REPORTED_VIOLATIONS
    assert caught.value.message.endswith("40 more fields are wrong.")


def test_reading_ends_where_nobody_reads_on() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(messages=[{}] * 2000)
    assert caught.value.message.endswith(f"{MAX_VIOLATIONS - 10} more fields are wrong.")


def test_more_messages_than_anybody_has_are_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(messages=[{"role": "user", "content": "x"}] * 2049)
    assert caught.value.param == "messages"


@pytest.mark.parametrize(("name", "value"), [("n", True), ("ignore_eos", 0), ("min_p", False)])
def test_a_boolean_is_no_number_and_a_number_no_boolean(name: str, value: object) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(**{name: value})
    assert caught.value.param == name


def test_the_one_value_that_is_supported_is_shown_as_json() -> None:
    with pytest.raises(InvalidRequestError, match=r'only supported as \["text"\]'):
        read(modalities=["audio"])


def test_no_more_is_told_of_faults_than_fits_into_a_header() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(messages=[{"role": "\N{SNOWMAN}" * 1000, "content": "x"}] * 50)
    # The last one may go over, the 50 characters of the caller's in it included.
    assert len(caught.value.message) < MAX_REPORTED_CHARACTERS + 250
    told = len(caught.value.violations)
    assert caught.value.message.endswith(f"{50 - told} more fields are wrong.")


def test_what_the_caller_sent_is_echoed_short() -> None:
    tool = {"type": "function", "function": {"name": HUGE}}
    hostile: list[dict[str, Any]] = [
        {"reasoning_effort": HUGE},
        {"tool_choice": HUGE},
        {"tools": [tool, tool]},
        {"messages": [{"role": HUGE, "content": "x"}]},
        {"messages": [{"role": "user", "content": {HUGE: 1}}]},
        {"messages": [{"role": "user", "content": [{"type": HUGE}]}]},
        {"seed": 10**4000},
        {"temperature": 10**300},
        {"n": HUGE},
        {"n": 10**4000},
        {"stop_token_ids": [10**4000]},
        {"truncation_side": HUGE},
        {"documents": [HUGE]},
        {"stop": {HUGE: 1}},
    ]
    for fields in hostile:
        for violation in refused(**fields):
            assert len(violation.message) < 300, violation.field
            assert len(violation.field) < 100
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request({**REQUIRED, HUGE: 1}, strict=True)
    assert all(len(item.field) + len(item.message) < 200 for item in caught.value.violations)


def test_a_prompt_in_place_of_messages_is_led_to_its_endpoint() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request({"model": "demo", "prompt": "Hi"})
    hint = "messages is required: prompt is for text completions, at /v3/completions."
    assert hint in caught.value.message
