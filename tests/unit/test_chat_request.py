"""The rules of a chat request: every parameter, its bounds, and what is said of a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.api.chat import ChatRequest, Role, SamplingParams, ToolMode
from ovchat_server.api.chat_request import (
    MAX_STOP_STRINGS,
    REASONING_EFFORTS,
    RESERVED_TEMPLATE_ARGUMENTS,
    read_chat_request,
)
from ovchat_server.api.errors import (
    MAX_REPORTED_CHARACTERS,
    MAX_REPORTED_VIOLATIONS,
    InvalidRequestError,
    Violation,
)
from ovchat_server.api.parameters import ACCEPTED, SERVED, UNSUPPORTED
from ovchat_server.api.reader import MAX_VIOLATIONS

HUGE = "x" * 100_000


def read(**fields: Any) -> ChatRequest:
    return read_chat_request(
        {"model": "demo", "messages": [{"role": "user", "content": "Hi"}]} | fields
    )


def refused(**fields: Any) -> tuple[Violation, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        read(**fields)
    return caught.value.violations


def test_a_request_with_nothing_but_the_required_fields_takes_the_defaults() -> None:
    request = read()
    assert (request.model, [message.role for message in request.messages]) == ("demo", [Role.USER])
    assert request.sampling == SamplingParams(None, None, None, None)
    assert request.max_tokens is None
    assert request.stop == ()
    assert request.tools == ()
    assert request.tool_mode is ToolMode.NONE
    assert request.template_arguments == {}
    assert not request.stream
    assert not request.include_usage
    assert request.ignored == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0),
        ("temperature", 2),
        ("temperature", 0.7),
        ("top_p", 1),
        ("top_p", 1e-9),
        ("top_k", -1),
        ("top_k", 0),
        ("top_k", 2**31 - 1),
        ("seed", 0),
        ("seed", 2**32 - 1),
    ],
)
def test_sampling_takes_every_value_within_its_bounds(field: str, value: float) -> None:
    assert getattr(read(**{field: value}).sampling, field) == value


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("value", [1, 2**32 - 1])
def test_the_length_has_two_names(field: str, value: int) -> None:
    assert read(**{field: value}).max_tokens == value


def test_the_newer_name_of_the_length_wins() -> None:
    assert read(max_tokens=5, max_completion_tokens=7).max_tokens == 7


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.01),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        pytest.param("temperature", 10**400, id="temperature-huge"),
        ("top_p", 0),
        ("top_p", 1.01),
        ("top_k", -2),
        ("top_k", 2**31),
        ("seed", -1),
        ("seed", 2**32),
        ("max_tokens", 0),
        ("max_tokens", 2**32),
        ("max_completion_tokens", 0),
        ("max_completion_tokens", -1),
        ("reasoning_effort", "hard"),
        ("stop", ""),
        ("stop", ["a"] * (MAX_STOP_STRINGS + 1)),
        ("stream_options", {}),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(field: str, value: Any) -> None:
    (violation,) = refused(**{field: value})
    assert violation.field == field
    assert violation.code == "invalid_value"
    assert violation.message.startswith(f"{field} ")


def test_a_number_out_of_bounds_is_told_its_bounds_and_itself() -> None:
    (violation,) = refused(temperature=2.5)
    assert violation.message == "temperature must be between 0 and 2, got 2.5."
    (violation,) = refused(top_p=0)
    assert violation.message == "top_p must be greater than 0 and at most 1, got 0."
    (violation,) = refused(temperature=-(10**400))
    assert violation.message == "temperature must be between 0 and 2, got -inf."


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("model", [1, True, [], {}], "a string"),
        ("messages", ["Hi", 1, {}], "an array"),
        ("temperature", ["1", True, [], {}], "a number"),
        ("top_p", ["1", False], "a number"),
        ("top_k", ["1", 1.5, True], "an integer"),
        ("seed", [1.0, "1"], "an integer"),
        ("max_tokens", [1.0, "1", True], "an integer"),
        ("max_completion_tokens", [[1]], "an integer"),
        ("stream", [1, "true"], "true or false"),
        ("stream_options", [True, []], "an object"),
        ("reasoning_effort", [1, {}], "a string"),
        ("chat_template_kwargs", ["{}", []], "an object"),
        ("tools", ["x", {}], "an array"),
        ("tool_choice", [1, True, []], "a string"),
        ("stop", [1, True, {}], "a string or an array of strings"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(
    field: str, values: list[Any], expected: str
) -> None:
    for value in values:
        violations = [item for item in refused(**{field: value}) if item.field == field]
        assert [item.code for item in violations] == ["invalid_type"]
        assert f"must be {expected}" in violations[0].message


def test_the_table_of_wrong_types_covers_every_served_parameter() -> None:
    marks = test_a_value_of_the_wrong_type_is_refused_by_name.pytestmark  # type: ignore[attr-defined]
    assert {row[0] for row in marks[0].args[1]} == SERVED


@pytest.mark.parametrize("field", sorted((SERVED | set(UNSUPPORTED)) - {"model", "messages"}))
def test_null_counts_as_absent(field: str) -> None:
    assert read(**{field: None}) == read()


@pytest.mark.parametrize("field", ["model", "messages"])
@pytest.mark.parametrize("fields", [{}, {"model": None, "messages": None}])
def test_what_is_required_is_missed_by_name(field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request(fields)
    (violation,) = [item for item in caught.value.violations if item.field == field]
    assert violation.message == f"{field} is required."
    assert violation.code == "missing_required_parameter"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("END", ("END",)), (["a", "b"], ("a", "b")), ([], ()), (["\n"] * 16, ("\n",) * 16)],
)
def test_stop_is_a_string_or_several(value: Any, expected: tuple[str, ...]) -> None:
    assert read(stop=value).stop == expected


@pytest.mark.parametrize(
    ("value", "path", "code"),
    [
        (["a", ""], "stop[1]", "invalid_value"),
        (["a", 1], "stop[1]", "invalid_type"),
        ([None], "stop[0]", "invalid_type"),
    ],
)
def test_a_wrong_stop_string_is_refused_by_its_place(value: Any, path: str, code: str) -> None:
    assert [(item.field, item.code) for item in refused(stop=value)] == [(path, code)]


@pytest.mark.parametrize("effort", REASONING_EFFORTS)
def test_reasoning_effort_reaches_the_template(effort: str) -> None:
    arguments = read(reasoning_effort=effort).template_arguments
    assert arguments == {"reasoning_effort": effort, "enable_thinking": effort != "none"}


def test_template_arguments_win_over_the_reasoning_effort() -> None:
    given = {"enable_thinking": False, "x": [1, {"b": 1, "a": 2}]}
    arguments = read(chat_template_kwargs=given, reasoning_effort="high").template_arguments
    assert arguments == {**given, "reasoning_effort": "high"}
    assert given.keys() == {"enable_thinking", "x"}


@pytest.mark.parametrize("name", sorted(RESERVED_TEMPLATE_ARGUMENTS))
def test_template_arguments_cannot_forge_what_the_server_sets(name: str) -> None:
    (violation,) = refused(chat_template_kwargs={name: "x"})
    assert violation.field == f"chat_template_kwargs.{name}"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, False),
        ({}, False),
        ({"include_usage": None}, False),
        ({"include_usage": False, "continuous_usage_stats": False}, False),
        ({"include_usage": True, "include_obfuscation": True}, True),
    ],
)
def test_a_stream_carries_its_usage_where_asked_for(options: Any, expected: bool) -> None:  # noqa: FBT001
    request = read(stream=True, stream_options=options)
    assert (request.stream, request.include_usage) == (True, expected)


@pytest.mark.parametrize(
    ("options", "path", "code"),
    [
        ({"include_usage": 1}, "stream_options.include_usage", "invalid_type"),
        (
            {"continuous_usage_stats": True},
            "stream_options.continuous_usage_stats",
            "unsupported_parameter",
        ),
    ],
)
def test_a_wrong_stream_option_is_refused_by_name(options: Any, path: str, code: str) -> None:
    violations = refused(stream=True, stream_options=options)
    assert [(item.field, item.code) for item in violations] == [(path, code)]


def test_unknown_keys_are_listed_in_the_callers_order() -> None:
    assert read(zeta=1, temperature=1, alpha=None, user="me").ignored == ("zeta", "alpha")


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_bookkeeping_is_accepted_whatever_it_is(name: str) -> None:
    assert read(**{name: {"any": ["thing"]}}) == read()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in UNSUPPORTED.items() for value in values]
)
def test_what_is_not_supported_may_ask_for_what_happens_anyway(name: str, value: Any) -> None:
    assert read(**{name: value}) == read()


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_what_is_not_supported_is_refused_by_name(name: str) -> None:
    (violation,) = refused(**{name: {"no": "neutral value"}})
    assert (violation.field, violation.code) == (name, "unsupported_parameter")
    assert violation.message.startswith(f"{name} is ")


def test_a_parameter_has_one_fate() -> None:
    assert not SERVED & ACCEPTED
    assert not (SERVED | ACCEPTED) & UNSUPPORTED.keys()


def test_every_fault_is_told_at_once_and_the_first_leads() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(temperature=3, top_p="x", messages=[{"role": "user"}], n=2)
    error = caught.value
    paths = [violation.field for violation in error.violations]
    assert paths == ["messages[0].content", "temperature", "top_p", "n"]
    assert error.param == "messages[0].content"
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
        read(messages=[{}] * 5000)
    assert caught.value.message.endswith(f"{MAX_VIOLATIONS - 10} more fields are wrong.")


def test_more_messages_than_anybody_has_are_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(messages=[{"role": "user", "content": "x"}] * 10_001)
    assert caught.value.param == "messages"


@pytest.mark.parametrize(("name", "value"), [("n", True), ("ignore_eos", 0), ("min_p", False)])
def test_a_boolean_is_no_number_and_a_number_no_boolean(name: str, value: object) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(**{name: value})
    assert caught.value.param == name


def test_the_one_value_that_is_supported_is_shown_as_json() -> None:
    with pytest.raises(InvalidRequestError, match=r'only supported as \{"type": "text"\}'):
        read(response_format={"type": "json_object"})


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
        {"stop": {HUGE: 1}},
    ]
    for fields in hostile:
        for violation in refused(**fields):
            assert len(violation.message) < 300, violation.field
            assert len(violation.field) < 100
