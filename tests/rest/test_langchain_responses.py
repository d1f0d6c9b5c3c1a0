"""LangChain's chat model on the Responses API must not notice the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk

from tests.rest.agents.person import ANNA, WHO, Person
from tests.rest.agents.test_langchain import get_weather
from tests.rest.agents.weather import BOTH_CITIES, IN_PARIS, IN_ROME, sentences
from tests.rest.test_langchain import CAPITAL, chat

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

    from tests.rest.conftest import Stack

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("untraced")]


@pytest.fixture(params=[False, True])
def model(request: pytest.FixtureRequest, stack: Stack) -> ChatOpenAI:
    """One that sends the whole conversation, and one that sends what is new."""
    return chat(stack, use_responses_api=True, use_previous_response_id=request.param)


def test_a_stream_joins_to_the_whole_answer_with_its_usage(model: ChatOpenAI) -> None:
    whole = model.invoke(CAPITAL)
    joined: AIMessageChunk | None = None
    for chunk in model.stream(CAPITAL):
        assert isinstance(chunk, AIMessageChunk)
        joined = chunk if joined is None else joined + chunk

    assert joined is not None
    assert joined.text == whole.text == "The capital of France is Paris."
    assert joined.usage_metadata
    assert whole.usage_metadata
    assert joined.usage_metadata["total_tokens"] == whole.usage_metadata["total_tokens"]


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_comes_to_its_answer(model: ChatOpenAI, *, streamed: bool) -> None:
    agent: Any = create_agent(model, [get_weather])
    question = {"messages": [{"role": "user", "content": BOTH_CITIES}]}
    if streamed:
        *_, ended = agent.stream(question, stream_mode="values")
    else:
        ended = agent.invoke(question)

    last = ended["messages"][-1]
    assert isinstance(last, AIMessage)
    assert last.text == sentences(IN_PARIS, IN_ROME)


def test_an_answer_may_be_a_model(model: ChatOpenAI) -> None:
    assert model.with_structured_output(Person, method="json_schema").invoke(WHO) == ANNA
