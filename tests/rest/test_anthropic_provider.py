"""A provider with Anthropic's API, asked by OpenAI's SDK through Envoy, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest

from tests.messages_provider import KEY, MODEL, MessagesProvider, messages_provider
from tests.parameters.endpoints import WEATHER
from tests.rest.conftest import running_stack, sdk_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion

ASKED: dict[str, Any] = {"model": f"anthropic/{MODEL}", "tools": [WEATHER]}
ASK: Any = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[MessagesProvider]:
    async with messages_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
async def sdk(
    provider: MessagesProvider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[openai.AsyncOpenAI]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_API_KEY", KEY)
        with running_stack(tmp_path_factory.mktemp("router"), tables=provider.table) as stack:
            async with sdk_of(stack) as client:
                yield client


async def answer(
    sdk: openai.AsyncOpenAI, messages: list[Any], *, stream: bool
) -> tuple[Any, CompletionUsage]:
    """A whole answer; of one that is streamed, as the SDK joins it."""
    completions = sdk.chat.completions
    if stream:
        asked: Any = {**ASKED, "stream_options": {"include_usage": True}}
        async with completions.stream(messages=messages, **asked) as events:
            completion: ChatCompletion = await events.get_final_completion()
    else:
        completion = await completions.create(messages=messages, **ASKED)
    [choice] = completion.choices
    assert completion.usage is not None
    return choice, completion.usage


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_is_called_and_its_result_answered(
    sdk: openai.AsyncOpenAI, provider: MessagesProvider, *, stream: bool
) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "How is the weather in Rome?"},
    ]
    choice, _ = await answer(sdk, messages, stream=stream)

    [call] = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert choice.message.reasoning_content == "Let us see."
    assert (call.id, call.function.name) == ("toolu_1", "get_weather")

    said = choice.message.model_dump(exclude_none=True)
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    choice, usage = await answer(sdk, [*messages, said, result], stream=stream)

    assert (choice.message.content, choice.finish_reason) == ("It is sunny", "stop")
    assert (usage.prompt_tokens, usage.completion_tokens) == (16, 7)
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 5
    for _, headers in provider.asked:
        assert headers["x-api-key"] == KEY
        assert headers["anthropic-version"] == "2023-06-01"
        assert "authorization" not in headers


async def test_errors_are_the_documented_ones(sdk: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="answered 404: model: nobody"):
        await sdk.chat.completions.create(model="anthropic/nobody", messages=ASK)
    with pytest.raises(openai.BadRequestError, match=r"seed .* by the provider") as caught:
        await sdk.chat.completions.create(messages=ASK, seed=1, **ASKED)
    assert (caught.value.param, caught.value.code) == ("seed", "unsupported_parameter")
    with pytest.raises(openai.BadRequestError, match="answers chats only"):
        await sdk.completions.create(model=ASKED["model"], prompt="Hi")


async def test_its_models_are_listed(sdk: openai.AsyncOpenAI, provider: MessagesProvider) -> None:
    await sdk.chat.completions.create(model=ASKED["model"], messages=ASK)
    # It is being asked for them, if it was not yet.
    while ASKED["model"] not in [model.id async for model in sdk.models.list()]:
        pass
    assert {request for request, _ in provider.asked} == {
        "POST /v1/messages HTTP/1.1",
        "GET /v1/models?limit=1000 HTTP/1.1",
    }
