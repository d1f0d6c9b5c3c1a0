"""A provider over gRPC that misbehaves: the documented error, nothing left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.providers.ovchat.client import OvchatClient
from tests.bad_ovchat import KEY, BadOvchat, bad_ovchat
from tests.certificates import Authority
from tests.ports import unused_port
from tests.rest.conftest import Stack, running_stack, sdk_of
from tests.unit.readers import read_chat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

TABLES = """
[[providers]]
name = "bad"
kind = "ovchat"
base_url = "http://127.0.0.1:{provider.port}"
api_key_env = "BAD_PROVIDER_KEY"
timeout = 1

[[providers]]
name = "safe"
kind = "ovchat"
base_url = "https://localhost:{provider.tls_port}"
ca_file = "{ca_file}"

[[providers]]
name = "down"
kind = "ovchat"
base_url = "http://127.0.0.1:{unused}"
"""
# Of whole answers: the model, the status and what the message says.
WHOLE = [
    ("bad/hangs", 504, "'bad' did not answer in time"),
    ("bad/full", 429, "'bad' answered RESOURCE_EXHAUSTED: slow down"),
    ("bad/key", 503, "'bad' refused this server's API key"),
    ("bad/fails", 502, "'bad' answered UNAVAILABLE: the engine died"),
    ("down/x", 503, "'down' cannot be reached"),
]
STREAMED = [
    ("bad/fails", "'bad' ended its answer with an error: the engine died"),
    ("bad/hangs", "'bad' broke off its answer"),
    ("bad/stops", "'bad' broke off its answer"),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.new(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
async def provider(authority: Authority) -> AsyncIterator[BadOvchat]:
    async with bad_ovchat(authority) as provider:
        yield provider


@pytest.fixture(scope="module")
def router(
    provider: BadOvchat, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A server that has nothing but those providers."""
    tables = TABLES.format(provider=provider, ca_file=authority.file, unused=unused_port())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAD_PROVIDER_KEY", KEY)
        with running_stack(tmp_path_factory.mktemp("router"), tables=tables) as stack:
            yield stack


@pytest.fixture(scope="module")
async def sdk(router: Stack) -> AsyncIterator[openai.AsyncOpenAI]:
    async with sdk_of(router) as client:
        yield client


def asked(model: str, **fields: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "Hi"}], **fields}


@pytest.mark.parametrize(("name", "key"), [("bad", KEY), ("safe", None)])
async def test_a_provider_is_reached_with_tls_and_without(
    sdk: openai.AsyncOpenAI, provider: BadOvchat, name: str, key: str | None
) -> None:
    provider.metadata.clear()
    answer = await sdk.chat.completions.create(**asked(f"{name}/good"))

    assert answer.choices[0].message.content == "all is well"
    [metadata] = provider.metadata
    assert metadata.pop("authorization", None) == (key and f"Bearer {key}")
    # Nothing of the caller.
    assert metadata.keys() <= {"user-agent", "grpc-accept-encoding"}


async def test_its_own_models_are_listed(provider: BadOvchat) -> None:
    provider.listed.clear()
    client = OvchatClient("p", f"127.0.0.1:{provider.port}", "")

    assert await client.model_ids() == ["good"]
    [request] = provider.listed
    assert (request.type, request.provider) == ("text-generation", "openvino")
    await client.close()


@pytest.mark.parametrize(("model", "status", "message"), WHOLE)
async def test_an_answer_that_fails_is_the_documented_error(
    sdk: openai.AsyncOpenAI, router: Stack, model: str, status: int, message: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await sdk.chat.completions.create(**asked(model))

    assert caught.value.status_code == status
    assert message in caught.value.message
    if model == "bad/full":
        assert caught.value.response.headers["retry-after"] == "7"
    assert KEY not in router.log.read_text() + caught.value.message


@pytest.mark.parametrize(("model", "message"), STREAMED)
async def test_a_stream_that_fails_ends_with_the_error(
    sdk: openai.AsyncOpenAI, model: str, message: str
) -> None:
    stream = await sdk.chat.completions.create(**asked(model, stream=True))
    assert (await anext(stream)).choices[0].delta.content == "a"

    with pytest.raises(openai.APIError, match=message):
        await anext(stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_who_leaves_is_gone_at_the_provider(
    router: Stack, provider: BadOvchat, *, stream: bool
) -> None:
    provider.left.clear()
    provider.asked.clear()
    async with httpx.AsyncClient(base_url=router.url, timeout=None) as http:
        # Of this one Envoy does not lose patience.
        body = asked("safe/hangs", stream=stream)
        asking = asyncio.create_task(http.post("/v1/chat/completions", json=body))
        await provider.asked.wait()
        asking.cancel()
        await provider.left.wait()


async def test_what_is_under_way_when_the_server_stops_fails(provider: BadOvchat) -> None:
    client = OvchatClient("p", f"127.0.0.1:{provider.port}", "")
    exchange = client.exchange(read_chat(stream=True), "hangs")
    async with exchange.sent():
        chunks = exchange.chunks()
        await anext(chunks)
        reading = asyncio.ensure_future(anext(chunks))
        await client.close()
        with pytest.raises(UnavailableError, match="stopping"):
            await reading
