"""LangChain's agents: tools bound to `ChatOpenAI`, forms of its answers, and `create_agent`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.tools import tool

from tests.rest.agents.person import ANNA, AS_JSON, WHO, Person
from tests.rest.agents.weather import (
    BOTH_CITIES,
    DESCRIPTIONS,
    IN_PARIS,
    IN_ROME,
    RESULTS,
    sentences,
)
from tests.rest.test_langchain import chat

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

CHOICES = {
    "auto": ("auto", [IN_PARIS, IN_ROME]),
    "any": ("any", [IN_PARIS, IN_ROME]),
    "by name": ("get_time", [("get_time", "Paris")]),
}

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("untraced")]


@tool(description=DESCRIPTIONS["get_weather"])
def get_weather(city: str) -> dict[str, Any]:
    return RESULTS["get_weather"][city]


@tool(description=DESCRIPTIONS["get_time"])
def get_time(city: str) -> dict[str, Any]:
    return RESULTS["get_time"][city]


TOOLS = {"get_weather": get_weather, "get_time": get_time}


def called(message: AIMessage) -> list[tuple[str, str]]:
    ids = [call["id"] for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert message.invalid_tool_calls == []
    return [(call["name"], call["args"]["city"]) for call in message.tool_calls]


def joined(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    first, *others = chunks
    for chunk in others:
        first += chunk
    return first


@pytest.mark.parametrize("choice", CHOICES)
def test_bound_tools_are_called_whole_and_streamed(stack: Stack, choice: str) -> None:
    tool_choice, calls = CHOICES[choice]
    model = chat(stack).bind_tools(list(TOOLS.values()), tool_choice=tool_choice)

    whole = model.invoke(BOTH_CITIES)
    stream = joined(list(model.stream(BOTH_CITIES)))  # type: ignore[arg-type]

    assert called(whole) == called(stream) == calls
    assert whole.response_metadata["finish_reason"] == "tool_calls"
    assert stream.response_metadata["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("choice", CHOICES)
async def test_an_agent_comes_to_its_answer(stack: Stack, choice: str) -> None:
    tool_choice, calls = CHOICES[choice]
    first = chat(stack).bind_tools(list(TOOLS.values()), tool_choice=tool_choice)
    then = chat(stack).bind_tools(list(TOOLS.values()))
    messages: list[AnyMessage] = [HumanMessage(BOTH_CITIES)]

    asking = await first.ainvoke(messages)
    messages.append(asking)
    for call in asking.tool_calls:
        result = TOOLS[call["name"]].invoke(call)
        assert isinstance(result, ToolMessage)
        messages.append(result)
    whole = await then.ainvoke(messages)
    stream = joined([chunk async for chunk in then.astream(messages)])  # type: ignore[misc]

    assert whole.content == stream.content == sentences(*calls)
    assert whole.tool_calls == stream.tool_calls == []


def test_an_agent_of_langchains_own_comes_to_its_answer(stack: Stack) -> None:
    agent = create_agent(chat(stack), list(TOOLS.values()))
    asked: Any = {"messages": [HumanMessage(BOTH_CITIES)]}

    messages = agent.invoke(asked)["messages"]
    stream: Any = agent.stream(asked, stream_mode="messages")
    streamed = [chunk.content for chunk, told in stream if told["langgraph_node"] == "model"]

    kinds = [HumanMessage, AIMessage, ToolMessage, ToolMessage, AIMessage]
    assert [type(message) for message in messages] == kinds
    assert called(messages[1]) == [IN_PARIS, IN_ROME]
    assert messages[-1].content == "".join(streamed) == sentences(IN_PARIS, IN_ROME)


@pytest.mark.parametrize("tools", [[], None], ids=["empty", "none"])
def test_an_agent_without_tools_answers_whole_and_streamed(stack: Stack, tools: Any) -> None:
    agent = create_agent(chat(stack), tools)
    asked: Any = {"messages": [HumanMessage("What is the capital of France?")]}

    [_, said] = agent.invoke(asked)["messages"]
    stream: Any = agent.stream(asked, stream_mode="messages")

    assert said.content == "The capital of France is Paris."
    assert "".join(chunk.content for chunk, _ in stream) == said.content


def test_no_tools_bound_are_none(stack: Stack) -> None:
    model = chat(stack).bind_tools([])

    assert model.invoke("Count to 3").content == "1, 2, 3"
    assert joined(list(model.stream("Count to 3"))).content == "1, 2, 3"  # type: ignore[arg-type]


def test_its_answer_may_be_a_model(stack: Stack) -> None:
    agent = create_agent(chat(stack), [get_weather], response_format=ToolStrategy(Person))

    state = agent.invoke({"messages": [HumanMessage(AS_JSON)]})

    assert state["structured_response"] == ANNA


@pytest.mark.parametrize("include_raw", [False, True], ids=["alone", "with the message"])
@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
async def test_answers_are_models(
    stack: Stack,
    method: Literal["json_schema", "function_calling", "json_mode"],
    include_raw: bool,  # noqa: FBT001 - a case of the test
) -> None:
    question = AS_JSON if method == "json_mode" else WHO
    model = chat(stack).with_structured_output(Person, method=method, include_raw=include_raw)

    whole: Any = model.invoke(question)
    later: Any = await model.ainvoke(question)
    streamed: list[Any] = list(model.stream(question))

    if not include_raw:
        assert whole == later == streamed[-1] == ANNA
        return
    assert whole["parsed"] == later["parsed"] == ANNA
    assert whole["parsing_error"] is later["parsing_error"] is None
    assert bool(whole["raw"].tool_calls) == (method == "function_calling")
    assert [part["parsed"] for part in streamed if "parsed" in part][-1] == ANNA
