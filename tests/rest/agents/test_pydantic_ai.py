"""Agents of Pydantic AI, with its models for responses and for chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Agent, NativeOutput, PromptedOutput, Tool, ToolOutput
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.rest.agents.person import ANNA, AS_JSON, WHO, Person
from tests.rest.agents.weather import (
    BOTH_CITIES,
    DESCRIPTIONS,
    IN_PARIS,
    IN_ROME,
    RESULTS,
    sentences,
)

if TYPE_CHECKING:
    import openai
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model


FORMS: dict[str, Any] = {
    "tool": (ToolOutput(Person), WHO),
    "json_schema": (NativeOutput(Person), WHO),
    "prompt": (PromptedOutput(Person), AS_JSON),
}


def get_weather(city: str) -> dict[str, Any]:
    return RESULTS["get_weather"][city]


pytestmark = pytest.mark.slow


@pytest.fixture(params=[OpenAIResponsesModel, OpenAIChatModel])
def model(request: pytest.FixtureRequest, fresh_sdk: openai.AsyncOpenAI) -> Model:
    provider = OpenAIProvider(openai_client=fresh_sdk)
    made: Model = request.param("demo", provider=provider, settings={"temperature": 0})
    return made


@pytest.fixture
def agent(model: Model) -> Agent[None, str]:
    return Agent(model, tools=[Tool(get_weather, description=DESCRIPTIONS["get_weather"])])


def calls_answered(messages: list[ModelMessage]) -> list[tuple[str, str]]:
    """The calls of a conversation, each with a result of its own."""
    parts = [part for message in messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    assert len({call.tool_call_id for call in calls}) == len(calls)
    returns = [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)]
    assert returns == [call.tool_call_id for call in calls]
    return [(call.tool_name, call.args_as_dict()["city"]) for call in calls]


async def test_an_agent_comes_to_its_answer(agent: Agent[None, str]) -> None:
    result = await agent.run(BOTH_CITIES)

    assert result.output == sentences(IN_PARIS, IN_ROME)
    assert calls_answered(result.all_messages()) == [IN_PARIS, IN_ROME]


async def test_so_does_one_that_streams(agent: Agent[None, str]) -> None:
    async with agent.run_stream(BOTH_CITIES) as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    assert "".join(pieces) == sentences(IN_PARIS, IN_ROME)
    assert calls_answered(result.all_messages()) == [IN_PARIS, IN_ROME]


@pytest.mark.parametrize("form", FORMS)
async def test_its_answer_may_be_a_model(model: Model, form: str) -> None:
    output, question = FORMS[form]
    agent = Agent(model, output_type=output)

    whole = await agent.run(question)
    async with agent.run_stream(question) as stream:
        *_, last = [output async for output in stream.stream_output(debounce_by=None)]

    assert whole.output == last == ANNA
