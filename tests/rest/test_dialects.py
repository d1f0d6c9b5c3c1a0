"""Models of other dialects than the demo model's: the demo model, held to write as they do."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import openai
import pytest

from tests.conftest import ROOT
from tests.json_schemas import validate
from tests.rest.conftest import running_stack
from tests.rest.questions import HELLO, PARIS, WEATHER
from tests.structured_output import SCHEMA, assert_valid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.settings import ModelSettings

DIALECTS = ["gpt_oss", "mistral", "llama3", "deepseek", "qwen3_coder", "glm"]
ANSWER = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
STRICT: dict[str, Any] = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": CITY, "strict": True},
}

NAMED = {"type": "function", "function": {"name": "get_weather"}}

pytestmark = pytest.mark.slow

# The demo model, too, with a template that knows no tools: they are described to it.
DESCRIBED = "described"
every_dialect = pytest.mark.parametrize("dialect", [*DIALECTS, DESCRIBED])


@pytest.fixture(scope="module")
def others(
    tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings
) -> Iterator[openai.OpenAI]:
    models = [
        msgspec.structs.replace(
            demo,
            name=dialect,
            tool_parser=dialect,
            reasoning_parser=dialect if dialect == "gpt_oss" else "none",
        )
        for dialect in DIALECTS
    ]
    directory = tmp_path_factory.mktemp("dialects")
    path = directory / DESCRIBED
    shutil.copytree(demo.path, path)
    shutil.copy(ROOT / "tests/data/templates/chatml.jinja", path / "chat_template.jinja")
    models.append(msgspec.structs.replace(demo, name=DESCRIBED, path=path))
    with (
        running_stack(directory, *models) as stack,
        openai.OpenAI(base_url=f"{stack.url}/v1", api_key="unused", max_retries=0) as client,
    ):
        yield client


def answers(sdk: openai.OpenAI, dialect: str, **fields: Any) -> list[Any]:
    """Choices that came to an end: the demo model is lost in other dialects now and then."""
    asked: dict[str, Any] = {"model": dialect, "max_tokens": 150, "n": 8, "seed": 1, **fields}
    ended = [
        choice
        for choice in sdk.chat.completions.create(**asked).choices
        if choice.finish_reason != "length"
    ]
    assert ended
    return ended


def arguments(choice: Any) -> list[dict[str, Any]]:
    return [json.loads(call.function.arguments) for call in choice.message.tool_calls or []]


@every_dialect
@pytest.mark.parametrize("tool_choice", ["required", NAMED], ids=["required", "named"])
def test_a_call_can_be_forced(others: openai.OpenAI, dialect: str, tool_choice: Any) -> None:
    for choice in answers(
        others,
        dialect,
        messages=PARIS,
        tools=[STRICT],
        tool_choice=tool_choice,
        parallel_tool_calls=False,
    ):
        [found] = arguments(choice)
        validate(found, CITY)
        assert (choice.message.content, choice.finish_reason) == (None, "tool_calls")


@every_dialect
def test_an_answer_has_its_format(others: openai.OpenAI, dialect: str) -> None:
    for choice in answers(others, dialect, messages=HELLO, response_format=ANSWER):
        assert_valid(choice.message.content, SCHEMA)


@every_dialect
def test_an_answer_has_its_format_or_calls(others: openai.OpenAI, dialect: str) -> None:
    both = {"tools": [STRICT], "response_format": ANSWER, "parallel_tool_calls": False}
    for choice in answers(others, dialect, messages=PARIS, **both):
        if calls := arguments(choice):
            assert choice.message.content is None
            for found in calls:
                validate(found, CITY)
        else:
            assert_valid(choice.message.content, SCHEMA)


@every_dialect
def test_a_model_is_answered_where_it_does_not_call(others: openai.OpenAI, dialect: str) -> None:
    for choice in answers(others, dialect, messages=HELLO, tools=[WEATHER]):
        assert (choice.finish_reason, arguments(choice)) == ("stop", [])
        assert choice.message.content
