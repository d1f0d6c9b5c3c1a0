"""Reasoning before an answer of a given form: only where the template or the caller asks for it.

All at the default temperature, at which the demo model begins reasoning that it never ends.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.structured_output import QUESTION, SCHEMA, assert_valid

if TYPE_CHECKING:
    import httpx

CHOICES = 40
SUM = "What is 12 + 30?"
COLUMN = """
root ::= "SELECT " column " FROM " table
column ::= "name" | "age"
table ::= "users" | "orders"
"""
FORMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "choice": (
        "Classify this sentiment: it is wonderful!",
        {"structured_outputs": {"choice": ["positive", "negative"]}},
        "positive|negative",
    ),
    "grammar": (
        "Generate an SQL query to show the name of a user.",
        {"structured_outputs": {"grammar": COLUMN}},
        "SELECT (name|age) FROM (users|orders)",
    ),
    "json_schema": (
        QUESTION,
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "person", "schema": SCHEMA},
            }
        },
        r"\{.*\}",
    ),
    "a call": (
        "Classify this sentiment: it is wonderful!",
        {
            "tool_choice": "required",
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "classify",
                        "parameters": {
                            "type": "object",
                            "properties": {"label": {"enum": ["positive", "negative"]}},
                            "required": ["label"],
                        },
                    },
                }
            ],
        },
        r'\{"label": "(positive|negative)"\}',
    ),
}
ASKED: dict[str, dict[str, Any]] = {
    "enable_thinking": {"chat_template_kwargs": {"enable_thinking": True}},
    "thinking": {"chat_template_kwargs": {"thinking": True}},
    "reasoning_effort": {"reasoning_effort": "low"},
}
NOT_ASKED: dict[str, dict[str, Any]] = {
    "nothing said": {},
    "no effort": {"reasoning_effort": "none"},
    "both": {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}},
}


async def choices(http: httpx.AsyncClient, question: str, **fields: Any) -> list[dict[str, Any]]:
    messages = [{"role": "user", "content": question}]
    body = {"model": "demo", "messages": messages, "max_tokens": 150, "seed": 1, **fields}
    response = await http.post("/v3/chat/completions", json=body)
    assert response.status_code == 200, response.text
    answered: list[dict[str, Any]] = response.json()["choices"]
    return answered


def text_of(choice: dict[str, Any]) -> str:
    message = choice["message"]
    text = message["content"] or message["tool_calls"][0]["function"]["arguments"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("form", FORMS)
async def test_no_answer_is_lost_in_reasoning_that_nobody_asked_for(
    http: httpx.AsyncClient, form: str
) -> None:
    question, fields, pattern = FORMS[form]

    answers = await choices(http, question, n=CHOICES, **fields)

    assert len(answers) == CHOICES
    for choice in answers:
        assert choice["finish_reason"] in {"stop", "tool_calls"}
        assert choice["message"].get("reasoning_content") is None
        assert re.fullmatch(pattern, text_of(choice))
        if form == "json_schema":
            assert_valid(text_of(choice), SCHEMA)


@pytest.mark.parametrize("asked", ASKED)
async def test_who_asks_for_reasoning_gets_it_before_the_form(
    http: httpx.AsyncClient, asked: str
) -> None:
    form = {"structured_outputs": {"regex": "[0-9]{2}"}}

    [choice] = await choices(http, SUM, temperature=0, **ASKED[asked], **form)

    assert "carry" in choice["message"]["reasoning_content"]
    assert re.fullmatch("[0-9]{2}", text_of(choice))


@pytest.mark.parametrize("form", FORMS)
async def test_reasoning_that_was_asked_for_leaves_half_of_the_tokens_to_the_form(
    http: httpx.AsyncClient, form: str
) -> None:
    question, fields, pattern = FORMS[form]

    answers = await choices(http, question, n=CHOICES, reasoning_effort="low", **fields)

    for choice in answers:
        assert choice["finish_reason"] in {"stop", "tool_calls"}
        assert re.fullmatch(pattern, text_of(choice))


async def test_reasoning_is_closed_however_its_opening_is_spelled(http: httpx.AsyncClient) -> None:
    # Where the model is at a loss it spells the tag with tokens of other words.
    question = "Extract name and age as JSON: Anna is 31."
    form = {"structured_outputs": {"choice": ["yes", "no"]}, "max_tokens": 40}

    answers = await choices(http, question, n=120, reasoning_effort="high", **form)

    assert {choice["finish_reason"] for choice in answers} == {"stop"}
    assert {text_of(choice) for choice in answers} <= {"yes", "no"}


@pytest.mark.parametrize("said", NOT_ASKED)
async def test_otherwise_the_form_begins_at_once(http: httpx.AsyncClient, said: str) -> None:
    form = {"structured_outputs": {"regex": "[0-9]{2}"}}

    [choice] = await choices(http, SUM, temperature=0, **NOT_ASKED[said], **form)

    assert choice["message"].get("reasoning_content") is None
    assert re.fullmatch("[0-9]{2}", text_of(choice))


async def test_an_answer_of_no_form_reasons_as_the_model_likes(http: httpx.AsyncClient) -> None:
    [choice] = await choices(http, SUM, temperature=0)

    assert "carry" in choice["message"]["reasoning_content"]


async def test_reasoning_that_the_conversation_began_goes_on(http: httpx.AsyncClient) -> None:
    messages = [
        {"role": "user", "content": SUM},
        {"role": "assistant", "content": "<think>\nOnes: 2 + 0 = 2, write 2, carry 0.\n"},
    ]
    body = {
        "model": "demo",
        "messages": messages,
        "temperature": 0,
        "max_tokens": 150,
        "add_generation_prompt": False,
        "continue_final_message": True,
        "structured_outputs": {"regex": "[0-9]{2}"},
    }

    response = await http.post("/v3/chat/completions", json=body)

    message = response.json()["choices"][0]["message"]
    assert message["reasoning_content"].startswith("Tens:"), json.dumps(message)
    assert re.fullmatch("[0-9]{2}", message["content"])
