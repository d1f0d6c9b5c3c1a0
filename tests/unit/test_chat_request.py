"""The rules of a chat request: every parameter, its bounds, and what is said of a wrong one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ovchat_server.domain.chat import CallTags, ChatRequest, PromptEnding, Role, ToolMode
from ovchat_server.domain.chat_request import (
    REASONING_EFFORTS,
    RESERVED_TEMPLATE_ARGUMENTS,
    read_chat_request,
)
from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.generation import GenerationParams, StreamOptions
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.parameters import CHAT
from tests.parameters.values import BESIDE

REQUIRED: dict[str, Any] = {"model": "demo", "messages": [{"role": "user", "content": "Hi"}]}


def read(**fields: Any) -> ChatRequest:
    return read_chat_request(REQUIRED | fields)


def refused(**fields: Any) -> tuple[Violation, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        read(**fields)
    return caught.value.violations


def test_a_request_with_nothing_but_the_required_fields_takes_the_defaults() -> None:
    request = read()
    assert (request.model, [message.role for message in request.messages]) == ("demo", [Role.USER])
    assert request.generation == GenerationParams()
    assert request.tools == ()
    assert request.tool_choice.mode is ToolMode.NONE
    assert request.template_arguments == {}
    assert request.documents == ()
    assert request.prompt_ending is PromptEnding.ASSISTANT_TURN
    assert not request.echo
    assert request.stream is None
    assert request.ignored == ()


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
        ("thinking_token_budget", ["1", 1.5, True], "an integer"),
        ("chat_template_kwargs", ["{}", []], "an object"),
        ("tools", ["x", {}], "an array"),
        ("tool_choice", [1, True, []], "a string"),
        ("functions", ["x", {}], "an array"),
        ("function_call", [1, True, []], "a string"),
        ("agent_format", [1, True], "a string"),
        ("parallel_tool_calls", [1, "yes"], "true or false"),
        ("include_reasoning", [1, "yes"], "true or false"),
        ("stop", [1, True, {}], "a string or an array of strings"),
        ("min_tokens", ["1", 1.5, True], "an integer"),
        ("ignore_eos", [0, "false"], "true or false"),
        ("stop_token_ids", [1, "1", {}], "an array"),
        ("include_stop_str_in_output", [1, "true"], "true or false"),
        ("skip_special_tokens", [0, "true"], "true or false"),
        ("truncate_prompt_tokens", ["1", 1.5, True], "an integer"),
        ("truncation_side", [1, True, []], "a string"),
        ("min_p", ["1", False], "a number"),
        ("repetition_penalty", ["1", True], "a number"),
        ("presence_penalty", ["1", True, []], "a number"),
        ("frequency_penalty", ["1", False, {}], "a number"),
        ("logit_bias", [1, True, "x", []], "an object"),
        ("allowed_token_ids", [1, "x", {}], "an array"),
        ("bad_words", [1, "x", {}], "an array"),
        ("n", ["1", 1.5, True, {}], "an integer"),
        ("best_of", ["1", 1.5, True], "an integer"),
        ("use_beam_search", [1, "true"], "true or false"),
        ("length_penalty", ["1", True], "a number"),
        ("priority", ["1", 1.5, True], "an integer"),
        ("cache_salt", [1, True, [], {}], "a string"),
        ("num_assistant_tokens", ["1", 1.5, True], "an integer"),
        ("max_ngram_size", ["1", 1.5, True], "an integer"),
        ("assistant_confidence_threshold", ["1", True, {}], "a number"),
        ("prediction", ["x", 1, True, []], "an object"),
        ("logprobs", [1, "true"], "true or false"),
        ("top_logprobs", ["1", 1.5, True], "an integer"),
        ("prompt_logprobs", ["x", 1.5, True, []], "an integer"),
        ("echo", [1, "true"], "true or false"),
        ("documents", ["x", {}, True], "an array"),
        ("add_generation_prompt", [1, "true"], "true or false"),
        ("continue_final_message", [0, []], "true or false"),
        ("response_format", ["x", 1, True, []], "an object"),
        ("structured_outputs", ["x", 1, True, []], "an object"),
        ("guided_json", ["x", 1, True, []], "an object"),
        ("guided_regex", [1, True, [], {}], "a string"),
        ("guided_choice", ["x", 1, True, {}], "an array"),
        ("guided_grammar", [1, True, [], {}], "a string"),
        ("structural_tag", ["x", 1, True, []], "an object"),
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
    marks = test_a_value_of_the_wrong_type_is_refused_by_name.pytestmark
    assert {row[0] for row in marks[0].args[1]} == CHAT.served


@pytest.mark.parametrize(
    "field", sorted((CHAT.served | CHAT.refused.keys()) - {"model", "messages"})
)
def test_null_counts_as_absent(field: str) -> None:
    assert read(**{field: None}) == read()


@pytest.mark.parametrize("fields", [{}, {"model": None, "messages": None}])
def test_what_is_required_is_missed_by_name(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request(fields)
    (violation,) = caught.value.violations
    assert violation.message == "messages is required."
    assert violation.code == "missing_required_parameter"


@pytest.mark.parametrize("effort", REASONING_EFFORTS)
def test_reasoning_effort_reaches_the_template(effort: str) -> None:
    arguments = read(reasoning_effort=effort).template_arguments
    assert arguments == {"reasoning_effort": effort, "enable_thinking": effort != "none"}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("Qwen/Qwen3-4B", CallTags.QWEN3),
        ("ollama/llama3:latest", CallTags.LLAMA3),
        ("ollama/gpt-oss", None),
    ],
)
def test_an_automatic_agent_format_is_the_models(model: str, expected: CallTags | None) -> None:
    assert read(model=model, agent_format="auto").call_tags is expected


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
    ("fields", "expected"),
    [
        ({}, PromptEnding.ASSISTANT_TURN),
        ({"add_generation_prompt": True}, PromptEnding.ASSISTANT_TURN),
        ({"add_generation_prompt": False}, PromptEnding.NOTHING),
        ({"add_generation_prompt": None}, PromptEnding.ASSISTANT_TURN),
        ({"continue_final_message": True}, PromptEnding.FINAL_MESSAGE),
        ({"continue_final_message": False}, PromptEnding.ASSISTANT_TURN),
        (
            {"continue_final_message": True, "add_generation_prompt": False},
            PromptEnding.FINAL_MESSAGE,
        ),
        ({"continue_final_message": False, "add_generation_prompt": False}, PromptEnding.NOTHING),
    ],
)
def test_a_prompt_ends_as_asked_for(fields: dict[str, Any], expected: PromptEnding) -> None:
    assert read(**fields).prompt_ending is expected


def test_a_turn_is_either_opened_or_gone_on_with() -> None:
    (violation,) = refused(add_generation_prompt=True, continue_final_message=True)
    assert violation.field == "continue_final_message"
    assert "add_generation_prompt" in violation.message


@pytest.mark.parametrize(("value", "expected"), [(True, True), (False, False)])
def test_the_message_that_is_gone_on_with_may_be_echoed(
    value: bool,  # noqa: FBT001
    expected: bool,  # noqa: FBT001
) -> None:
    assert read(echo=value).echo is expected


def test_documents_are_objects_with_keys_in_the_callers_order() -> None:
    documents = [{"title": "a", "text": {"z": 1, "a": None}}, {}]
    assert [list(item) for item in read(documents=documents).documents] == [["title", "text"], []]
    assert read(documents=documents).documents == tuple(documents)
    assert read(documents=[]).documents == ()


@pytest.mark.parametrize(
    ("value", "path", "code"),
    [
        (["text"], "documents[0]", "invalid_type"),
        ([{}, None], "documents[1]", "invalid_type"),
        ([{}] * (DEFAULT_LIMITS.max_documents + 1), "documents", "invalid_value"),
    ],
)
def test_a_wrong_document_is_refused_by_its_place(value: Any, path: str, code: str) -> None:
    assert [(item.field, item.code) for item in refused(documents=value)] == [(path, code)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", ""),
        ("a b", "a b"),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
    ],
)
def test_a_prediction_is_a_text(content: Any, expected: str) -> None:
    fields = {"prediction": {"type": "content", "content": content}}
    assert read(**fields).generation.speculation.prediction == expected


@pytest.mark.parametrize(
    ("content", "path", "code"),
    [
        (None, "prediction.content", "missing_required_parameter"),
        (1, "prediction.content", "invalid_type"),
        (["a"], "prediction.content[0]", "invalid_type"),
        ([{"type": "text"}], "prediction.content[0].text", "missing_required_parameter"),
        ([{"type": "refusal", "refusal": "a"}], "prediction.content[0].type", "invalid_value"),
        ([{"type": "text", "text": "a"}] * 1025, "prediction.content", "invalid_value"),
    ],
)
def test_a_wrong_prediction_is_refused_by_its_place(content: Any, path: str, code: str) -> None:
    violations = refused(prediction={"type": "content", "content": content})
    assert [(item.field, item.code) for item in violations] == [(path, code)]


@pytest.mark.parametrize(
    ("fields", "logprobs", "alternatives"),
    [
        ({}, False, 0),
        ({"logprobs": False, "top_logprobs": 0}, False, 0),
        ({"logprobs": True}, True, 0),
        ({"logprobs": True, "top_logprobs": 0}, True, 0),
        ({"logprobs": True, "top_logprobs": 1}, True, 1),
        ({"logprobs": True, "top_logprobs": 20}, True, 20),
        ({"logprobs": True, "top_logprobs": 0, "best_of": 2}, True, 0),
    ],
)
def test_log_probabilities_are_reported_where_asked_for(
    fields: dict[str, Any],
    logprobs: bool,  # noqa: FBT001
    alternatives: int,
) -> None:
    generation = read(**fields).generation
    assert (generation.logprobs, generation.top_logprobs) == (logprobs, alternatives)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"top_logprobs": 1}, "invalid_value"),
        ({"logprobs": False, "top_logprobs": 1}, "invalid_value"),
        ({"logprobs": True, "top_logprobs": 1, "best_of": 2}, "unsupported_parameter"),
        ({"logprobs": True, "top_logprobs": 21}, "invalid_value"),
        ({"logprobs": True, "top_logprobs": -1}, "invalid_value"),
    ],
)
def test_alternatives_that_cannot_be_reported_are_refused(
    fields: dict[str, Any], code: str
) -> None:
    assert [(item.field, item.code) for item in refused(**fields)] == [("top_logprobs", code)]


def test_options_of_a_stream_need_one() -> None:
    assert read(stream=True, stream_options=None).stream == StreamOptions()
    for stream in (None, False):
        (violation,) = refused(stream=stream, stream_options={"include_usage": True})
        assert violation.field == "stream_options"


def test_unknown_keys_are_listed_in_the_callers_order() -> None:
    assert read(zeta=1, temperature=1, alpha=None, user="me").ignored == ("zeta", "alpha")


def test_strictly_read_unknown_keys_are_refused_by_name() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request(REQUIRED | {"zeta": 1, "user": "me", "alpha": None}, strict=True)
    violations = [(item.field, item.code) for item in caught.value.violations]
    assert violations == [("zeta", "unknown_parameter"), ("alpha", "unknown_parameter")]
    assert "zeta is not a known parameter." in caught.value.message


def test_strictly_read_a_request_of_known_keys_is_the_same() -> None:
    fields = REQUIRED | {"user": "me", "temperature": 1, "watermarking": False}
    assert read_chat_request(fields, strict=True) == read_chat_request(fields)


def test_a_parameter_of_texts_is_none_of_chats() -> None:
    assert read(prompt="x", best_of=None).ignored == ("prompt",)


@pytest.mark.parametrize("name", sorted(CHAT.accepted))
def test_bookkeeping_is_accepted_whatever_it_is(name: str) -> None:
    assert read(**{name: {"any": ["thing"]}}) == replace(read(), accepted=(name,))


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in CHAT.refused.items() for value in values]
)
def test_what_is_not_supported_may_ask_for_what_happens_anyway(name: str, value: Any) -> None:
    assert read(**{name: value}) == read()


@pytest.mark.parametrize("name", sorted(CHAT.refused))
def test_what_is_not_supported_is_refused_by_name(name: str) -> None:
    (violation,) = refused(**BESIDE.get(name, {}), **{name: {"no": "neutral value"}})
    assert (violation.field, violation.code) == (name, "unsupported_parameter")
    assert violation.message.startswith(f"{name} is ")


@pytest.mark.parametrize("name", sorted(CHAT.acting))
def test_what_cannot_act_may_have_any_value(name: str) -> None:
    assert read(**{name: {"no": "neutral value"}}) == read()


def test_a_parameter_has_one_fate() -> None:
    assert not CHAT.served & CHAT.accepted
    assert not (CHAT.served | CHAT.accepted) & CHAT.refused.keys()


def test_unknown_keys_inside_are_named_by_their_path() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "x": 1}}
    request = read_chat_request(
        {
            "model": "demo",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a", "x": 1}], "foo": 1},
                {"role": "assistant", "tool_calls": [{**call, "y": 1}], "annotations": []},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "bar": 1}, "foo": 1}],
            "stream": True,
            "stream_options": {"include_usages": True},
            "zeta": None,
        }
    )
    assert set(request.ignored) == {
        "zeta",
        "messages[0].foo",
        "messages[0].content[0].x",
        "messages[1].tool_calls[0].y",
        "messages[1].tool_calls[0].function.x",
        "tools[0].foo",
        "tools[0].function.bar",
        "stream_options.include_usages",
    }


def test_unknown_keys_inside_are_refused_where_that_is_asked_for() -> None:
    message = {"role": "user", "content": "a", "foo": 1}
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request({"model": "demo", "messages": [message]}, strict=True)
    assert (caught.value.param, caught.value.code) == ("messages[0].foo", "unknown_parameter")


@pytest.mark.parametrize(
    ("name", "value"), [("top_p", 1e-46), ("min_p", 1 - 1e-13), ("repetition_penalty", 1e-40)]
)
def test_what_the_engine_would_round_to_a_bound_is_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_chat_request(REQUIRED | {name: value})
    assert caught.value.param == name


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "schema", [deep(55), {"type": "object", "properties": {"a": {"enum": [*range(100_000)]}}}]
)
def test_a_forced_calls_schema_has_the_limits_of_every_form(schema: dict[str, Any]) -> None:
    function = {"name": "f", "parameters": schema}
    tools: dict[str, Any] = {"tools": [{"type": "function", "function": function}]}
    assert read_chat_request(REQUIRED | tools).tools
    for forced, field in (
        (tools | {"tool_choice": "required"}, "tools[0].function.parameters"),
        (
            {"functions": [function], "function_call": {"name": "f"}},
            "functions[0].parameters",
        ),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            read_chat_request(REQUIRED | forced)
        assert caught.value.param == field
