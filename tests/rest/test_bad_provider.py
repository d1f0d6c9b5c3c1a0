"""A provider that misbehaves: the documented error, nobody else harmed, nothing left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest

from ovchat_server.providers.egress import MAX_ANSWER_BYTES
from tests.bad_provider import KEY, BadProvider, bad_provider
from tests.rest.conftest import Stack, running_stack, sdk_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

# Of whole answers: how the provider misbehaves, the status and what the message says.
WHOLE = [
    ("hangs", 504, "'bad' did not answer in time"),
    ("closes", 503, "'bad' cannot be reached"),
    ("endless-body", 502, f"it has more than {MAX_ANSWER_BYTES} bytes"),
    ("wrong-json", 502, "'bad' cannot be read"),
    ("no-json", 502, "'bad' cannot be read"),
    ("invalid", 400, "'bad' answered 400: no such temperature"),
    ("unknown", 404, "'bad' answered 404: no such model"),
    ("full", 429, "'bad' answered 429: slow down"),
    ("fails", 502, "'bad' answered 500: it broke"),
    ("key", 503, "'bad' refused this server's API key"),
    ("full-for-ever", 429, "answered 429: \N{SNAIL}"),
    ("key-in-answer", 502, "what is [API key]"),
    ("key-told", 400, "what is [API key]"),
]
STREAMED = [
    ("dies", "'bad' broke off its answer"),
    ("no-done", "'bad' broke off its answer"),
    ("broken-events", "'bad' cannot be read"),
    ("key-in-event", r"what is \[API key\]"),
    ("error-event", "'bad' ended its answer with an error: out of memory"),
]


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[BadProvider]:
    async with bad_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def router(provider: BadProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A server that has nothing but that provider."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAD_PROVIDER_KEY", KEY)
        with running_stack(tmp_path_factory.mktemp("router"), tables=provider.table) as stack:
            yield stack


@pytest.fixture(scope="module")
async def sdk(router: Stack) -> AsyncIterator[openai.AsyncOpenAI]:
    async with sdk_of(router) as client:
        yield client


def asked(model: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Hi"}]
    return {"model": f"bad/{model}", "messages": messages, "temperature": 0.5, **fields}


@pytest.fixture(autouse=True)
async def unharmed(sdk: openai.AsyncOpenAI, router: Stack) -> AsyncIterator[None]:
    """Whatever happened, the next request is answered, and nobody learned the key."""
    yield
    answer = await sdk.chat.completions.create(**asked("good"))
    assert answer.choices[0].message.content == "all is well"
    assert (answer.model, answer.usage and answer.usage.prompt_tokens) == ("bad/good", 3)
    assert KEY not in router.log.read_text()


@pytest.mark.parametrize(("manner", "status", "message"), WHOLE)
async def test_an_answer_that_fails_is_the_documented_error(
    sdk: openai.AsyncOpenAI, manner: str, status: int, message: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await sdk.chat.completions.create(**asked(manner))

    assert caught.value.status_code == status
    assert message in caught.value.message
    assert KEY not in caught.value.message
    if manner == "full":
        assert caught.value.response.headers["retry-after"] == "7"
    if manner == "invalid":
        assert caught.value.param == "temperature"


@pytest.mark.parametrize(("manner", "message"), STREAMED)
async def test_a_stream_that_fails_ends_with_the_error(
    sdk: openai.AsyncOpenAI, manner: str, message: str
) -> None:
    stream = await sdk.chat.completions.create(**asked(manner, stream=True))
    # The role, and the text that came.
    told = [(await anext(stream)).choices[0].delta.content for _ in range(2)]

    with pytest.raises(openai.APIError, match=message):
        await anext(stream)
    assert "".join(filter(None, told)) == "a"


async def test_a_provider_that_does_not_stream_answers_all_the_same(
    sdk: openai.AsyncOpenAI,
) -> None:
    stream = await sdk.chat.completions.create(**asked("streams-nothing", stream=True))
    texts = [chunk.choices[0].delta.content async for chunk in stream]
    assert "".join(filter(None, texts)) == "all is well"


@pytest.mark.parametrize(("manner", "stream"), [("hangs", False), ("endless", True)])
async def test_a_caller_who_leaves_is_gone_at_the_provider(
    router: Stack, provider: BadProvider, manner: str, *, stream: bool
) -> None:
    provider.left.clear()
    provider.asked.clear()
    async with httpx.AsyncClient(base_url=router.url, timeout=None) as http:
        # One of whom it is not known when it hangs.
        body = {**asked(manner, stream=stream), "model": f"patient/{manner}"}
        asking = asyncio.create_task(http.post("/v1/chat/completions", json=body))
        await provider.asked.wait()
        asking.cancel()
        await provider.left.wait()


async def test_what_a_provider_is_not_told_is_named(sdk: openai.AsyncOpenAI) -> None:
    fields: Any = {"user": "me", "service_tier": "flex", "store": False, "seed": 7}
    told = await sdk.chat.completions.with_raw_response.create(**asked("good", **fields))
    assert told.headers["x-ignored-parameters"] == "service_tier, user"


async def test_the_next_model_of_a_route_answers_where_one_fails(sdk: openai.AsyncOpenAI) -> None:
    answer = await sdk.chat.completions.create(**{**asked(""), "model": "careful"})
    assert (answer.model, answer.choices[0].message.content) == ("bad/good", "all is well")

    with pytest.raises(openai.RateLimitError, match="slow down"):
        await sdk.chat.completions.create(**{**asked(""), "model": "in-vain"})


async def test_the_provider_learns_its_key_and_nothing_of_the_caller(
    sdk: openai.AsyncOpenAI, provider: BadProvider
) -> None:
    provider.headers.clear()
    await sdk.chat.completions.create(**asked("good"))

    [headers] = provider.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["host"] == f"127.0.0.1:{provider.port}"
    assert set(headers) == {
        *("host", "authorization", "content-type", "content-length", "accept"),
        *("accept-encoding", "user-agent"),
    }
