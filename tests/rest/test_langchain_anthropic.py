"""LangChain's model for Anthropic must not notice the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from tests.rest.agents.person import ANNA, WHO, Person
from tests.rest.agents.test_langchain import CHOICES, TOOLS, called, joined
from tests.rest.agents.weather import BOTH_CITIES, IN_PARIS, IN_ROME, sentences
from tests.rest.test_langchain import CAPITAL
from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

SUM = "What is 17 + 25?"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("untraced")]


def chat(stack: Stack, model: str = "demo", **fields: Any) -> ChatAnthropic:
    defaults: dict[str, Any] = {"temperature": 0, "max_retries": 0, "api_key": "unused"}
    return ChatAnthropic(model=model, base_url=stack.url, **{**defaults, **fields})


async def test_a_stream_joins_to_the_whole_answer_with_its_usage(stack: Stack) -> None:
    model = chat(stack)

    whole = model.invoke([SystemMessage("Be short."), HumanMessage(CAPITAL)])
    stream = joined(list(model.stream([SystemMessage("Be short."), HumanMessage(CAPITAL)])))  # type: ignore[arg-type]
    later = await model.ainvoke(CAPITAL)

    assert "Paris" in whole.text
    assert whole.text == stream.text
    assert later.text == "The capital of France is Paris."
    assert whole.response_metadata["stop_reason"] == "end_turn"
    assert stream.response_metadata["stop_reason"] == "end_turn"
    assert whole.usage_metadata
    assert stream.usage_metadata
    for count in ("input_tokens", "output_tokens", "total_tokens"):
        assert stream.usage_metadata[count] == whole.usage_metadata[count]  # type: ignore[literal-required]


def test_an_answer_ends_at_stops_and_at_the_most_tokens(stack: Stack) -> None:
    stopped = chat(stack, "successor", stop=["de", "zz"]).invoke("a")
    cut = chat(stack, "successor", max_tokens=4).invoke("a")

    assert (stopped.content, stopped.response_metadata["stop_sequence"]) == ("bc", "de")
    assert (cut.content, cut.response_metadata["stop_reason"]) == (
        successor_text("a", 4),
        "max_tokens",
    )


def test_it_thinks_and_gives_its_thoughts_back(stack: Stack) -> None:
    model = chat(stack, thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000)

    whole = model.invoke(SUM)
    stream = joined(list(model.stream(SUM)))  # type: ignore[arg-type]
    later = model.invoke([HumanMessage(SUM), whole, HumanMessage(CAPITAL)])

    for message in (whole, stream):
        thought, said = message.content_blocks
        assert "carry 1" in thought["reasoning"]  # type: ignore[typeddict-item]
        assert said["text"] == "17 + 25 = 42"  # type: ignore[typeddict-item]
    assert "Paris" in later.text


@pytest.mark.parametrize("choice", CHOICES)
def test_bound_tools_are_called_whole_and_streamed(stack: Stack, choice: str) -> None:
    tool_choice, calls = CHOICES[choice]
    model = chat(stack).bind_tools(list(TOOLS.values()), tool_choice=tool_choice)

    whole = model.invoke(BOTH_CITIES)
    stream = joined(list(model.stream(BOTH_CITIES)))  # type: ignore[arg-type]

    assert called(whole) == called(stream) == calls


def test_an_agent_comes_to_its_answer(stack: Stack) -> None:
    agent = create_agent(chat(stack), list(TOOLS.values()))
    asked: Any = {"messages": [HumanMessage(BOTH_CITIES)]}

    messages = agent.invoke(asked)["messages"]
    stream: Any = agent.stream(asked, stream_mode="messages")
    streamed = [chunk.text for chunk, told in stream if told["langgraph_node"] == "model"]

    assert isinstance(messages[1], AIMessage)
    assert called(messages[1]) == [IN_PARIS, IN_ROME]
    assert messages[-1].text == "".join(streamed) == sentences(IN_PARIS, IN_ROME)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_answers_are_models(stack: Stack, method: Any) -> None:
    model = chat(stack).with_structured_output(Person, method=method)

    streamed: list[Any] = list(model.stream(WHO))

    assert model.invoke(WHO) == streamed[-1] == ANNA


def test_errors_are_langchains_own(stack: Stack) -> None:
    with pytest.raises(ContextOverflowError):
        chat(stack).invoke("word " * 5000)
    with pytest.raises(anthropic.NotFoundError):
        chat(stack, "nobody").invoke(CAPITAL)
