"""Agents of OpenAI's Agents SDK, with its models for responses and for chat completions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import agents
import pytest

from tests.rest.agents.person import ANNA, WHO, Person
from tests.rest.agents.weather import (
    BOTH_CITIES,
    DESCRIPTIONS,
    IN_PARIS,
    IN_ROME,
    RESULTS,
    sentences,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import openai

CALLS: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "auto": ({}, [IN_PARIS, IN_ROME]),
    "required": ({"tool_choice": "required"}, [IN_PARIS, IN_ROME]),
    "named": ({"tool_choice": "get_weather"}, [IN_PARIS]),
    "one at a time": ({"parallel_tool_calls": False}, [IN_PARIS]),
}


@agents.function_tool(description_override=DESCRIPTIONS["get_weather"])
def get_weather(city: str) -> str:
    return json.dumps(RESULTS["get_weather"][city])


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def untold() -> Iterator[None]:
    """It sends traces to OpenAI unless told not to."""
    agents.set_tracing_disabled(disabled=True)
    yield
    agents.set_tracing_disabled(disabled=False)


@pytest.fixture(params=[agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel])
def model(request: pytest.FixtureRequest, fresh_sdk: openai.AsyncOpenAI) -> agents.Model:
    made: agents.Model = request.param(model="demo", openai_client=fresh_sdk)
    return made


def called(items: list[agents.RunItem]) -> list[tuple[str, str]]:
    """The calls of a run, each with a result of its own."""
    calls: list[Any] = [item.raw_item for item in items if item.type == "tool_call_item"]
    results: list[Any] = [item.raw_item for item in items if item.type == "tool_call_output_item"]
    assert len({call.call_id for call in calls}) == len(calls)
    assert [result["call_id"] for result in results] == [call.call_id for call in calls]
    return [(call.name, json.loads(call.arguments)["city"]) for call in calls]


@pytest.mark.parametrize("way", CALLS)
async def test_an_agent_comes_to_its_answer_whole_and_streamed(
    model: agents.Model, way: str
) -> None:
    fields, calls = CALLS[way]
    settings = agents.ModelSettings(temperature=0, **fields)
    agent = agents.Agent("weather", model=model, tools=[get_weather], model_settings=settings)

    whole = await agents.Runner.run(agent, BOTH_CITIES)
    stream = agents.Runner.run_streamed(agent, BOTH_CITIES)
    events = [event async for event in stream.stream_events()]

    assert whole.final_output == stream.final_output == sentences(*calls)
    assert called(whole.new_items) == called(stream.new_items) == calls
    pieces = [
        event.data.delta
        for event in events
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert "".join(pieces) == sentences(*calls)


async def test_its_answer_may_be_a_model(model: agents.Model) -> None:
    settings = agents.ModelSettings(temperature=0)
    agent = agents.Agent("clerk", model=model, output_type=Person, model_settings=settings)

    whole = await agents.Runner.run(agent, WHO)
    stream = agents.Runner.run_streamed(agent, WHO)
    async for _ in stream.stream_events():
        pass

    assert whole.final_output == stream.final_output == ANNA
