"""LangChain's models for OpenAI must not notice the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI

from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

CAPITAL = "What is the capital of France?"
STORY = "Tell me a story."


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("untraced")]


def chat(stack: Stack, model: str = "demo", **fields: Any) -> ChatOpenAI:
    defaults: dict[str, Any] = {"temperature": 0, "max_retries": 0, "api_key": "unused"}
    return ChatOpenAI(model=model, base_url=f"{stack.url}/v3", **{**defaults, **fields})


def text_model(stack: Stack, **fields: Any) -> OpenAI:
    return OpenAI(
        model="successor",
        base_url=f"{stack.url}/v3",
        api_key="unused",  # type: ignore[arg-type]
        temperature=0,
        max_retries=0,
        **fields,
    )


async def test_answers_whole_and_in_batches(stack: Stack) -> None:
    model = chat(stack)

    answer = model.invoke(CAPITAL)
    later = await model.ainvoke([SystemMessage("Be short."), HumanMessage(CAPITAL)])
    several = model.batch([CAPITAL, "Count to 3"])

    assert answer.content == "The capital of France is Paris."
    assert answer.response_metadata["finish_reason"] == "stop"
    assert "Paris" in str(later.content)
    assert [one.content for one in several] == [answer.content, "1, 2, 3"]


async def test_a_stream_joins_to_the_whole_answer_with_its_usage(stack: Stack) -> None:
    model = chat(stack, stream_usage=True)

    whole = model.invoke(CAPITAL)
    joined: AIMessageChunk | None = None
    for chunk in model.stream(CAPITAL):
        assert isinstance(chunk, AIMessageChunk)
        joined = chunk if joined is None else joined + chunk
    later = [chunk.content async for chunk in model.astream(CAPITAL)]

    assert joined is not None
    assert joined.content == "".join(map(str, later)) == whole.content
    assert joined.usage_metadata == whole.usage_metadata
    assert joined.response_metadata["finish_reason"] == "stop"


def test_n_gives_several_and_a_seed_gives_them_again(stack: Stack) -> None:
    model = chat(stack, n=3, temperature=1, seed=5)

    first, again = (model.generate([[HumanMessage(STORY)]]) for _ in range(2))

    texts = [generation.text for generation in first.generations[0]]
    assert len(set(texts)) == 3
    assert texts == [generation.text for generation in again.generations[0]]
    assert first.llm_output is not None
    assert first.llm_output["token_usage"]["completion_tokens"] > 3


def test_log_probabilities_come_along(stack: Stack) -> None:
    model = chat(stack, logprobs=True, top_logprobs=1)

    whole = model.invoke(CAPITAL)
    streamed = [chunk.response_metadata.get("logprobs") for chunk in model.stream(CAPITAL)]

    tokens = [token["token"] for token in whole.response_metadata["logprobs"]["content"]]
    assert "".join(tokens) == whole.content
    assert [t["token"] for part in streamed if part for t in part["content"]] == tokens


def test_an_answer_ends_at_stops_and_at_the_most_tokens(stack: Stack) -> None:
    stopped = chat(stack, "successor", stop=["de", "zz"]).invoke("a")
    cut = chat(stack, "successor", max_tokens=4).invoke("a")

    assert (stopped.content, stopped.response_metadata["finish_reason"]) == ("bc", "stop")
    assert (cut.content, cut.response_metadata["finish_reason"]) == ("bcde", "length")


def test_errors_are_langchains_own(stack: Stack) -> None:
    with pytest.raises(ContextOverflowError):
        chat(stack).invoke("word " * 5000)
    with pytest.raises(openai.NotFoundError):
        chat(stack, "nobody").invoke(CAPITAL)
    with pytest.raises(openai.BadRequestError) as refused:
        chat(stack).invoke(CAPITAL, response_format={"type": "nonsense"})

    assert refused.value.param == "response_format.type"


def test_completes_texts(stack: Stack) -> None:
    model = text_model(stack, max_tokens=5)

    assert model.invoke("a") == "".join(model.stream("a")) == successor_text("a", 5)
    assert model.batch(["a", "f"]) == ["bcdef", "ghijk"]
    assert model.invoke("a", stop=["d"]) == "bc"


def test_several_texts_complete_several_prompts(stack: Stack) -> None:
    result = text_model(stack, max_tokens=3, n=2).generate(["a", "f"])

    assert [[one.text for one in some] for some in result.generations] == [
        ["bcd", "bcd"],
        ["ghi", "ghi"],
    ]
    assert result.llm_output is not None
    assert result.llm_output["token_usage"]["completion_tokens"] == 12
