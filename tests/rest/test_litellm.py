"""LiteLLM, pointed at us as an OpenAI-compatible provider, must not notice the difference."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import openai
import pytest
from pydantic import BaseModel

from tests.rest.questions import HELLO, LETTER, PARIS, STORY, SUM, SUNNY, WEATHER
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.rest.conftest import Stack


class City(BaseModel):
    """A city."""

    name: str


CITY_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "city", "schema": City.model_json_schema()},
}
CAPITAL = [{"role": "user", "content": "What is the capital of France?"}]


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def litellm(only_local: None) -> Iterator[Any]:  # noqa: ARG001 - checks at the end
    with pytest.MonkeyPatch.context() as patch:
        # Or its import fetches the prices of everybody's models.
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        patch.setenv("LITELLM_MODE", "PRODUCTION")  # no reading of .env files
        module: Any = importlib.import_module("litellm")
        module.suppress_debug_info = True
        yield module


@pytest.fixture
def provider(stack: Stack) -> dict[str, Any]:
    return {"api_base": f"{stack.url}/v3", "api_key": "unused", "max_retries": 0, "temperature": 0}


def joined(chunks: list[Any]) -> dict[int, str]:
    texts: dict[int, str] = {}
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
    return texts


def test_answers_with_reasoning_and_usage(litellm: Any, provider: dict[str, Any]) -> None:
    answer = litellm.completion("custom_openai/demo", SUM, **provider)

    [choice] = answer.choices
    assert "42" in choice.message.content
    assert choice.message.reasoning_content
    assert choice.finish_reason == "stop"
    details = answer.usage.completion_tokens_details
    assert 0 < details.reasoning_tokens < answer.usage.completion_tokens


async def test_streams_and_answers_asynchronously(litellm: Any, provider: dict[str, Any]) -> None:
    request = {"model": "custom_openai/successor", "messages": LETTER, "max_tokens": 40}

    whole = await litellm.acompletion(**request, **provider)
    stream = await litellm.acompletion(**request, **provider, stream=True)
    later = [chunk async for chunk in stream]
    chunks = list(
        litellm.completion(
            **request, **provider, stream=True, stream_options={"include_usage": True}
        )
    )

    assert whole.choices[0].message.content == successor_text("a", 40)
    assert joined(chunks) == joined(later) == {0: successor_text("a", 40)}
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens == 40
    assert "length" in [chunk.choices[0].finish_reason for chunk in chunks]


def test_several_choices_come_at_once(litellm: Any, provider: dict[str, Any]) -> None:
    # Not streamed: LiteLLM loses the ends of some choices once others have ended.
    request = {**provider, "model": "custom_openai/demo", "messages": STORY, "temperature": 1}

    first, again = (litellm.completion(**request, n=3, seed=5) for _ in range(2))

    texts = [choice.message.content for choice in first.choices]
    assert len(set(texts)) == 3
    assert texts == [choice.message.content for choice in again.choices]


def test_log_probabilities_and_stops_come_through(litellm: Any, provider: dict[str, Any]) -> None:
    answer = litellm.completion(
        "custom_openai/successor", LETTER, logprobs=True, top_logprobs=1, stop=["ef"], **provider
    )

    [choice] = answer.choices
    assert choice.message.content == "bcd"
    assert [token.token for token in choice.logprobs.content] == ["b", "c", "d"]
    assert choice.provider_specific_fields["stop_reason"] == "ef"


def test_parameters_beyond_openais_come_through(litellm: Any, provider: dict[str, Any]) -> None:
    answer = litellm.completion(
        "custom_openai/successor",
        LETTER,
        stop=["c", "f"],
        extra_body={"min_tokens": 3, "include_stop_str_in_output": True},
        **provider,
    )

    assert answer.choices[0].message.content == "bcdef"


def test_an_agent_calls_a_tool_and_answers_from_its_result(
    litellm: Any, provider: dict[str, Any]
) -> None:
    request = {"model": "custom_openai/demo", "tools": [WEATHER], **provider}

    called = litellm.completion(messages=PARIS, **request).choices[0]
    streamed = litellm.stream_chunk_builder(
        list(litellm.completion(messages=PARIS, stream=True, **request))
    ).choices[0]
    [call] = called.message.tool_calls
    result = {"role": "tool", "tool_call_id": call.id, "content": SUNNY}
    answer = litellm.completion(
        messages=[*PARIS, called.message.model_dump(exclude_none=True), result], **request
    )

    assert called.finish_reason == streamed.finish_reason == "tool_calls"
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Paris"}')
    assert [call.function.arguments for call in streamed.message.tool_calls] == [
        '{"city": "Paris"}'
    ]
    assert "21" in answer.choices[0].message.content


@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_litellms_own(
    litellm: Any,
    provider: dict[str, Any],
    stream: bool,  # noqa: FBT001 - a case of the test
) -> None:
    request = {**provider, "stream": stream, "messages": HELLO, "model": "custom_openai/demo"}

    with pytest.raises(litellm.NotFoundError):
        litellm.completion(**{**request, "model": "custom_openai/nobody"})
    with pytest.raises(litellm.BadRequestError, match="temperature"):
        litellm.completion(**{**request, "temperature": 3})
    with pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(**{**request, "messages": [{"role": "user", "content": "a " * 9000}]})
    with pytest.raises(openai.BadRequestError, match="response_format"):
        litellm.completion(**request, response_format={"type": "nonsense"})


@pytest.mark.parametrize("form", [City, CITY_FORMAT], ids=["model", "json_schema"])
def test_answers_have_the_form_whole_and_streamed(
    litellm: Any, provider: dict[str, Any], form: Any
) -> None:
    request = {"messages": CAPITAL, "model": "custom_openai/demo", **provider}

    whole = litellm.completion(**request, response_format=form)
    chunks = list(litellm.completion(**request, response_format=form, stream=True))

    [choice] = whole.choices
    assert choice.finish_reason == "stop"
    assert City.model_validate_json(choice.message.content, strict=True).name
    assert joined(chunks) == {0: choice.message.content}


def test_completes_texts(litellm: Any, provider: dict[str, Any]) -> None:
    request = {"model": "text-completion-openai/successor", "max_tokens": 4, **provider}

    whole = litellm.text_completion(prompt=["a", "f"], n=2, logprobs=1, **request)
    chunks = list(litellm.text_completion(prompt="a", stream=True, **request))

    assert [choice.text for choice in whole.choices] == ["bcde", "bcde", "ghij", "ghij"]
    assert whole.choices[2].logprobs.tokens == ["g", "h", "i", "j"]
    assert whole.usage.completion_tokens == 16
    assert "".join(chunk.choices[0].text or "" for chunk in chunks) == "bcde"
