"""The rules of a text completion request that chats do not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import Ending, GenerationParams
from ovchat_server.domain.generation_request import MAX_TOP_LOGPROBS
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.parameters import TEXT
from ovchat_server.domain.text import TextRequest
from ovchat_server.domain.text_request import (
    DEFAULT_MAX_TOKENS,
    MAX_TEXT_CHOICES,
    read_text_request,
)
from tests.parameters.values import BESIDE, BESIDE_IN_TEXTS


def read(**fields: Any) -> TextRequest:
    return read_text_request({"model": "demo", "prompt": "Hi"} | fields)


def refused(**fields: Any) -> tuple[Violation, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        read(**fields)
    return caught.value.violations


def paths(**fields: Any) -> list[tuple[str, str]]:
    return [(item.field, item.code) for item in refused(**fields)]


def test_a_request_with_nothing_but_the_required_fields_takes_the_defaults() -> None:
    ending = Ending(max_tokens=DEFAULT_MAX_TOKENS)
    generation = GenerationParams(ending=ending, top_logprobs_field=FieldPath.of("logprobs"))
    assert read() == TextRequest("demo", ("Hi",), ("prompt",), generation)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "prompt is required."),
        ({"model": None, "prompt": None}, "prompt is required."),
        (
            {"messages": [{"role": "user", "content": "Hi"}]},
            "prompt is required: messages are for chat completions, at /v3/chat/completions.",
        ),
    ],
)
def test_what_is_required_is_missed_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_text_request(fields)
    (violation,) = caught.value.violations
    assert violation.message == message
    assert violation.code == "missing_required_parameter"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x", ("x",)),
        (["x"], ("x",)),
        (["x", "y"], ("x", "y")),
        ([1], ((1,),)),
        ([0, 2**32 - 1], ((0, 2**32 - 1),)),
        ([[1, 2], [3]], ((1, 2), (3,))),
        (["x", [1, 2]], ("x", (1, 2))),
        (["x"] * DEFAULT_LIMITS.max_prompts, ("x",) * DEFAULT_LIMITS.max_prompts),
        ([1] * 1000, ((1,) * 1000,)),
        (" ", (" ",)),
    ],
)
def test_a_prompt_is_text_or_tokens_or_several(value: Any, expected: tuple[Any, ...]) -> None:
    assert read(prompt=value).prompts == expected


@pytest.mark.parametrize(
    ("value", "path", "code"),
    [
        ("", "prompt", "invalid_value"),
        ([], "prompt", "invalid_value"),
        (1, "prompt", "invalid_type"),
        (True, "prompt", "invalid_type"),
        ({"text": "x"}, "prompt", "invalid_type"),
        (["x", ""], "prompt[1]", "invalid_value"),
        (["x", []], "prompt[1]", "invalid_value"),
        (["x", None], "prompt[1]", "invalid_type"),
        (["x", 1], "prompt[1]", "invalid_type"),
        ([True], "prompt[0]", "invalid_type"),
        ([1.5], "prompt[0]", "invalid_type"),
        ([-1], "prompt[0]", "invalid_value"),
        ([1, 2**32], "prompt[1]", "invalid_value"),
        ([[1, -2]], "prompt[0][1]", "invalid_value"),
        (["x", [1, "2"]], "prompt[1][1]", "invalid_type"),
        (["x", [True]], "prompt[1][0]", "invalid_type"),
        (["x"] * (DEFAULT_LIMITS.max_prompts + 1), "prompt", "invalid_value"),
    ],
)
def test_a_wrong_prompt_is_refused_by_its_place(value: Any, path: str, code: str) -> None:
    assert paths(prompt=value) == [(path, code)]


def test_all_prompts_together_make_only_so_many_choices() -> None:
    assert 8 * DEFAULT_LIMITS.max_prompts == MAX_TEXT_CHOICES
    assert read(prompt=["x"] * DEFAULT_LIMITS.max_prompts, n=8).generation.n == 8
    assert read(prompt=["x"] * 8, n=128).generation.n == 128
    assert paths(prompt=["x"] * DEFAULT_LIMITS.max_prompts, n=9) == [("n", "invalid_value")]
    assert str(MAX_TEXT_CHOICES) in refused(prompt=["x"] * 9, n=128)[0].message


@pytest.mark.parametrize(
    ("value", "logprobs", "alternatives"),
    [(None, False, 0), (0, True, 0), (1, True, 1), (MAX_TOP_LOGPROBS, True, MAX_TOP_LOGPROBS)],
)
def test_log_probabilities_are_asked_for_by_number(
    value: int | None,
    logprobs: bool,  # noqa: FBT001
    alternatives: int,
) -> None:
    generation = read(logprobs=value).generation
    assert (generation.logprobs, generation.top_logprobs) == (logprobs, alternatives)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (MAX_TOP_LOGPROBS + 1, "invalid_value"),
        (-1, "invalid_value"),
        (True, "invalid_type"),
        ("1", "invalid_type"),
    ],
)
def test_alternatives_that_cannot_be_reported_are_refused(value: Any, code: str) -> None:
    assert paths(logprobs=value) == [("logprobs", code)]


def test_a_search_tells_log_probabilities_without_alternatives() -> None:
    assert read(logprobs=0, best_of=2).generation.logprobs
    assert paths(logprobs=1, best_of=2) == [("logprobs", "unsupported_parameter")]


@pytest.mark.parametrize("value", [0, 1])
def test_an_echo_has_log_probabilities_as_the_answer_has(value: int) -> None:
    generation = read(logprobs=value, echo=True).generation
    assert generation.prompt_alternatives() == {FieldPath.of("logprobs"): value}
    assert read(logprobs=value, echo=True, stream=True).generation == generation
    for fields in ({"logprobs": value}, {"echo": True}):
        assert read(**fields).generation.prompt_alternatives() == {}


@pytest.mark.parametrize("value", [0, 1])
def test_a_search_knows_nothing_of_an_echo(value: int) -> None:
    asked = {"logprobs": value, "echo": True}
    assert paths(**asked, best_of=2) == [("logprobs", "unsupported_parameter")]
    # Greedy, and no search.
    assert read(**asked, use_beam_search=True).generation.echo_logprobs


def test_an_echo_and_a_list_are_asked_for_together() -> None:
    asked = read(logprobs=2, echo=True, prompt_logprobs=5).generation.prompt_alternatives()
    assert {str(field): count for field, count in asked.items()} == {
        "prompt_logprobs": 5,
        "logprobs": 2,
    }


def test_nothing_may_be_generated_only_where_the_prompt_is_echoed() -> None:
    assert read(echo=True, max_tokens=0).generation.ending.max_tokens == 0
    assert paths(max_tokens=0) == [("max_tokens", "invalid_value")]
    assert paths(echo=False, max_tokens=0) == [("max_tokens", "invalid_value")]


@pytest.mark.parametrize("field", ["special_tokens", "echo", "return_token_ids"])
def test_switches_are_read(field: str) -> None:
    name = "add_special_tokens" if field == "special_tokens" else field
    for value in (True, False):
        assert getattr(read(**{name: value}), field) is value
    assert getattr(read(**{name: None}), field) == getattr(read(), field)
    assert paths(**{name: 1}) == [(name, "invalid_type")]


@pytest.mark.parametrize("name", sorted((TEXT.served | TEXT.refused.keys()) - {"model", "prompt"}))
def test_null_counts_as_absent(name: str) -> None:
    assert read(**{name: None}) == read()


@pytest.mark.parametrize("name", sorted(TEXT.accepted))
def test_bookkeeping_is_accepted_whatever_it_is(name: str) -> None:
    assert read(**{name: {"any": ["thing"]}}) == replace(read(), accepted=(name,))


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in TEXT.refused.items() for value in values]
)
def test_what_is_not_supported_may_ask_for_what_happens_anyway(name: str, value: Any) -> None:
    assert read(**{name: value}) == read()


@pytest.mark.parametrize("name", sorted(TEXT.refused))
def test_what_is_not_supported_is_refused_by_name(name: str) -> None:
    beside = BESIDE_IN_TEXTS.get(name, BESIDE.get(name, {}))
    assert paths(**beside, **{name: {"no": "neutral value"}}) == [(name, "unsupported_parameter")]


@pytest.mark.parametrize("name", sorted(TEXT.acting))
def test_what_cannot_act_may_have_any_value(name: str) -> None:
    assert read(**{name: {"no": "neutral value"}}) == read()


def test_a_parameter_has_one_fate() -> None:
    assert not TEXT.served & TEXT.accepted
    assert not (TEXT.served | TEXT.accepted) & TEXT.refused.keys()


def test_unknown_keys_are_listed_in_the_callers_order() -> None:
    assert read(zeta=1, temperature=1, messages=[], user="me").ignored == ("zeta", "messages")


def test_strictly_read_unknown_keys_are_refused_by_name() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_text_request({"model": "demo", "prompt": "Hi", "messages": []}, strict=True)
    assert [item.field for item in caught.value.violations] == ["messages"]
    assert caught.value.code == "unknown_parameter"


def test_every_fault_is_told_at_once() -> None:
    violations = refused(prompt=["", 1], n=0, logprobs=21, suffix="x", echo=1)
    assert [item.field for item in violations] == [
        "echo",
        "prompt[0]",
        "prompt[1]",
        "n",
        "logprobs",
        "suffix",
    ]
