"""The rules of tokenize and detokenize requests, and that both doors read the same."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat.v1 import tokenizer_service_pb2
from ovchat_server.domain.chat import ChatRequest, Message, Role, ToolMode
from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.parameters import TOKENIZE
from ovchat_server.domain.tokenization import PaddingSide, TextsInput, TokenizeRequest
from ovchat_server.domain.tokenization_request import (
    MAX_TOKENS,
    read_detokenize_request,
    read_tokenize_request,
)
from ovchat_server.rpc.request import tokenize_request
from tests.tokenization import REFUSED, SERVED, TOOL, USER, typed, typed_field

# Refused where the model is known, not where the fields are read.
LATER = {"padding without end", "padding of many without end"}


def read(**fields: Any) -> TokenizeRequest:
    return read_tokenize_request({"model": "demo", **fields})


def refused(fields: dict[str, Any]) -> tuple[Violation, ...]:
    with pytest.raises(InvalidRequestError) as caught:
        read_tokenize_request(fields)
    for violation in caught.value.violations:
        assert violation.field in violation.message
    return caught.value.violations


@pytest.mark.parametrize("name", SERVED)
def test_both_doors_read_the_same_request(name: str) -> None:
    assert tokenize_request(typed(SERVED[name])) == read(**SERVED[name])


@pytest.mark.parametrize("name", sorted(REFUSED.keys() - LATER))
def test_both_doors_refuse_naming_the_field(name: str) -> None:
    fields, field = REFUSED[name]
    plain = refused({"model": "demo", **fields})
    assert plain[0].field == field
    with pytest.raises(InvalidRequestError) as caught:
        tokenize_request(typed(fields))
    told = [(typed_field(item.field), item.message) for item in plain]
    assert [(item.field, item.message) for item in caught.value.violations] == told


def test_the_tables_cover_every_field_of_the_contract_and_the_rules_know_them() -> None:
    contract = set(tokenizer_service_pb2.TokenizeRequest.DESCRIPTOR.fields_by_name)
    asked = [*SERVED.values(), *(fields for fields, _ in REFUSED.values())]
    assert contract == {"model"}.union(*asked)
    assert contract <= TOKENIZE.served | TOKENIZE.refused.keys()


def test_texts_take_the_defaults() -> None:
    assert read(text="a") == read(text=["a"]) == read(prompt="a")
    assert read(text="a") == TokenizeRequest("demo", TextsInput(("a",)))
    assert read(text="a").input == TextsInput(
        ("a",), special_tokens=True, pad=False, padding_side=PaddingSide.RIGHT
    )


def test_a_conversation_is_a_chat_request() -> None:
    request = read(messages=[USER], tools=[TOOL], reasoning_effort="low")
    assert isinstance(request.input, ChatRequest)
    assert request.input.messages == (Message(Role.USER, ("Hi",)),)
    assert request.input.tool_choice.mode is ToolMode.AUTO
    unasked = read(messages=[USER], tools=[TOOL], tool_choice="none").input
    assert isinstance(unasked, ChatRequest)
    assert unasked.tool_choice.mode is ToolMode.NONE
    assert request.input.template_arguments == {"reasoning_effort": "low", "enable_thinking": True}


@pytest.mark.parametrize("name", sorted((TOKENIZE.served | TOKENIZE.refused.keys()) - {"model"}))
@pytest.mark.parametrize("form", [{"text": "a"}, {"messages": [USER]}], ids=["text", "messages"])
def test_null_counts_as_absent(form: dict[str, Any], name: str) -> None:
    assert read(**{name: None, **form}) == read(**form)


def test_unknown_keys_are_listed_in_the_callers_order() -> None:
    assert read(zeta=1, text="a", temperature=None).ignored == ("zeta", "temperature")
    request = read_detokenize_request({"zeta": 1, "model": "demo", "tokens": [], "text": 1})
    assert request.ignored == ("zeta", "text")


# What protobuf has no way to say.
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "model": ({"model": 5, "text": "a"}, "model", "invalid_type"),
    "text of a number": ({"text": 5}, "text", "invalid_type"),
    "text of an object": ({"text": {}}, "text", "invalid_type"),
    "no texts": ({"text": []}, "text", "invalid_value"),
    "a text of a number": ({"text": ["a", 5]}, "text[1]", "invalid_type"),
    "a text of tokens": ({"text": [[1]]}, "text[0]", "invalid_type"),
    "a text of null": ({"text": [None]}, "text[0]", "invalid_type"),
    "several prompts": ({"prompt": ["a"]}, "prompt", "invalid_type"),
    "messages of a string": ({"messages": "a"}, "messages", "invalid_type"),
    "no messages": ({"messages": []}, "messages", "invalid_value"),
    "max_length of a float": ({"text": "a", "max_length": 1.5}, "max_length", "invalid_type"),
    "max_length below": ({"text": "a", "max_length": -1}, "max_length", "invalid_value"),
    "pad_to_max_length": ({"text": "a", "pad_to_max_length": 1}, "pad_to_max_length", ""),
    "padding_side": ({"text": "a", "padding_side": "top"}, "padding_side", "invalid_value"),
    "add_special_tokens": ({"text": "a", "add_special_tokens": "no"}, "add_special_tokens", ""),
    "return_token_strs": ({"prompt": "a", "return_token_strs": 1}, "return_token_strs", ""),
    "add_generation_prompt": (
        {"messages": [USER], "add_generation_prompt": "no"},
        "add_generation_prompt",
        "invalid_type",
    ),
    "chat_template": (
        {"messages": [USER], "chat_template": "{{ messages }}"},
        "chat_template",
        "unsupported_parameter",
    ),
    "documents": ({"messages": [USER], "documents": ["a"]}, "documents[0]", "invalid_type"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_field_is_named(name: str) -> None:
    fields, field, code = WRONG[name]
    [violation] = refused({"model": "demo", **fields})
    assert (violation.field, violation.code) == (field, code or "invalid_type")


@pytest.mark.parametrize(
    ("name", "value"), [("documents", []), ("mm_processor_kwargs", {}), ("chat_template", "")]
)
def test_what_is_not_supported_may_be_empty(name: str, value: Any) -> None:
    assert read(messages=[USER], **{name: value}) == read(messages=[USER])


def test_what_is_not_supported_is_refused_as_such() -> None:
    violations = refused(
        {
            "model": "demo",
            "messages": [USER],
            "add_special_tokens": True,
            "chat_template": "{{ messages }}",
        }
    )
    assert [item.code for item in violations] == ["unsupported_parameter"] * 2
    assert violations[0].message == "add_special_tokens is only supported as false with messages."


def test_a_prompt_may_end_as_that_of_a_chat() -> None:
    assert read(messages=[USER], add_generation_prompt=False).input.prompt_ending == "nothing"
    assert read(messages=[USER], continue_final_message=True).input.prompt_ending == "final_message"
    [violation] = refused(
        {
            "model": "demo",
            "messages": [USER],
            "add_generation_prompt": True,
            "continue_final_message": True,
        }
    )
    assert violation.field == "continue_final_message"


def test_all_forms_are_named_where_there_is_not_exactly_one() -> None:
    for fields in ({}, {"text": "a", "messages": [USER]}):
        [violation] = refused({"model": "demo", **fields})
        assert "text, prompt and messages" in violation.message


def test_every_fault_is_told_at_once() -> None:
    violations = refused({"text": [1], "max_length": 0, "padding_side": "up"})
    assert {item.field for item in violations} == {"text[0]", "max_length", "padding_side"}


@pytest.mark.parametrize("tokens", [[], [0], [5, 2**70, -1], [7] * 1000])
def test_tokens_are_read_whatever_they_are(tokens: list[int]) -> None:
    assert read_detokenize_request({"model": "demo", "tokens": tokens}).tokens == tokens


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"model": "demo"}, "tokens", "missing_required_parameter"),
        ({"model": "demo", "tokens": None}, "tokens", "missing_required_parameter"),
        ({"model": "demo", "tokens": 5}, "tokens", "invalid_type"),
        ({"model": "demo", "tokens": "a"}, "tokens", "invalid_type"),
        ({"model": "demo", "tokens": [1, "2"]}, "tokens[1]", "invalid_type"),
        ({"model": "demo", "tokens": [1.0]}, "tokens[0]", "invalid_type"),
        ({"model": "demo", "tokens": [True]}, "tokens[0]", "invalid_type"),
        ({"model": "demo", "tokens": [None]}, "tokens[0]", "invalid_type"),
        ({"model": "demo", "tokens": [[1]]}, "tokens[0]", "invalid_type"),
        ({"model": "demo", "tokens": [1] * (MAX_TOKENS + 1)}, "tokens", "invalid_value"),
    ],
)
def test_wrong_tokens_are_refused_by_name(fields: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_detokenize_request(fields)
    [violation] = caught.value.violations
    assert (violation.field, violation.code) == (field, code)
