"""API keys: which models they may use, how much, and what changes with their file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import grpc.aio
import msgspec
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from ovchat.v1 import model_service_pb2, tokenizer_service_pb2
from ovchat_server.app import Server
from ovchat_server.keys.key_file import read_keys
from tests.grpc import requests
from tests.grpc.conftest import running
from tests.grpc.engines import until, until_under_way

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from ovchat_server.settings import ModelSettings, Settings
    from tests.grpc.conftest import Client

KEYS = """
free      k-free
one-model k-one   models=successor
three     k-three requests_per_minute=3
thrifty   k-thrifty tokens_per_minute=20
single    k-single concurrent_requests=1
"""
LIST = model_service_pb2.ListModelsRequest()
HELLO = requests.successor("abc", 3)


def key(name: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer k-{name}"),)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text(KEYS)
    return path


@pytest.fixture
async def client(
    make_settings: Callable[..., Settings], successor: ModelSettings, key_file: Path
) -> AsyncIterator[Client]:
    other = msgspec.structs.replace(successor, name="other")
    settings = make_settings(successor, other, api_key_file=key_file, api_keys=read_keys(key_file))
    server = Server(dataclasses.replace(settings, aliases={"mine": "successor", "theirs": "other"}))
    async with running(server) as client:
        yield client


async def refused(call: Awaitable[object]) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def retry_delay(error: grpc.aio.AioRpcError) -> float:
    status, info = rpc_status.from_call(error), error_details_pb2.RetryInfo()
    assert status is not None
    assert any(detail.Unpack(info) for detail in status.details)
    return float(info.retry_delay.ToTimedelta().total_seconds())


async def test_a_key_sees_the_models_that_it_may_use_alone(client: Client) -> None:
    mine = key("one")
    listed = await client.models.ListModels(LIST, metadata=mine)
    assert [model.id for model in listed.models] == ["successor", "mine"]
    assert len((await client.models.ListModels(LIST, metadata=key("free"))).models) == 4
    for model in ("successor", "mine", ""):
        await client.chat.CreateChatCompletion(
            requests.ask("abc", model, max_tokens=1), metadata=mine
        )
    missing = await refused(
        client.chat.CreateChatCompletion(requests.ask("a", "nobody"), metadata=mine)
    )
    for model in ("other", "theirs", "ovchat/other"):
        for call in (
            client.chat.CreateChatCompletion(requests.ask("a", model), metadata=mine),
            client.models.GetModel(model_service_pb2.GetModelRequest(id=model), metadata=mine),
            client.tokenizer.Tokenize(
                tokenizer_service_pb2.TokenizeRequest(model=model, prompt="a"), metadata=mine
            ),
        ):
            error = await refused(call)
            # As if it did not exist.
            assert error.code() is grpc.StatusCode.NOT_FOUND
            assert error.details() == (missing.details() or "").replace("nobody", model)


async def test_requests_beyond_those_of_a_minute_are_refused(client: Client) -> None:
    for left in ("2", "1", "0"):
        call = client.chat.CreateChatCompletion(HELLO, metadata=key("three"))
        await call
        trailing = dict(await call.trailing_metadata())
        assert trailing["x-ratelimit-limit-requests"] == "3"
        assert trailing["x-ratelimit-remaining-requests"] == left
    for call in (
        client.chat.CreateChatCompletion(HELLO, metadata=key("three")),
        anext(aiter(client.chat.StreamChatCompletion(HELLO, metadata=key("three")))),
    ):
        error = await refused(call)
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert 0 < retry_delay(error) <= 60
        trailing = dict(error.trailing_metadata())
        assert trailing["x-ratelimit-remaining-requests"] == "0"
    # To look costs nothing; others have limits of their own.
    await client.models.ListModels(LIST, metadata=key("three"))
    await client.chat.CreateChatCompletion(HELLO, metadata=key("free"))


async def test_tokens_are_charged_when_they_are_known(client: Client) -> None:
    asked = requests.successor("abc", 30)
    answer = await client.chat.CreateChatCompletion(asked, metadata=key("thrifty"))
    assert answer.usage.total_tokens > 20
    error = await refused(client.chat.CreateChatCompletion(asked, metadata=key("thrifty")))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "20 tokens per minute" in (error.details() or "")
    assert 0 < retry_delay(error) <= 120


async def test_a_request_that_is_given_up_makes_room_at_once(client: Client) -> None:
    running = client.chat.CreateChatCompletion(
        requests.successor("abc", None), metadata=key("single")
    )
    await until_under_way(client, "successor", 1)
    error = await refused(client.chat.CreateChatCompletion(HELLO, metadata=key("single")))
    assert "'single' may have 1 requests at once" in (error.details() or "")
    running.cancel()
    calls = client.server._calls
    await until(lambda: not calls.under_way)
    await client.chat.CreateChatCompletion(HELLO, metadata=key("single"))


async def test_a_key_that_is_taken_out_of_its_file_is_valid_no_more(
    client: Client, key_file: Path
) -> None:
    running = client.chat.CreateChatCompletion(
        requests.successor("abc", None), metadata=key("free")
    )
    await until_under_way(client, "successor", 1)
    key_file.write_text("new k-new\n")
    ring = client.server._keys
    await until(lambda: [found.name for found in ring.keys] == ["new"])
    error = await refused(client.models.ListModels(LIST, metadata=key("free")))
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    await client.chat.CreateChatCompletion(HELLO, metadata=key("new"))
    # Who is being answered is answered.
    assert not running.done()
    running.cancel()


async def cached(client: Client, name: str, prompt: str, **fields: str) -> int:
    """How many tokens of a prompt were found in the prefix cache."""
    asked = requests.ask(prompt, "successor", max_tokens=2, **fields)
    answer = await client.chat.CreateChatCompletion(asked, metadata=key(name))
    return int(answer.usage.prompt_tokens_details.cached_tokens)


async def test_what_a_prompt_leaves_in_the_prefix_cache_is_found_by_its_key_alone(
    client: Client,
) -> None:
    prompt = "a secret " * 40
    assert await cached(client, "free", prompt) == 0
    assert await cached(client, "free", prompt) > 200
    assert await cached(client, "one", prompt) == 0
    assert await cached(client, "one", prompt) > 200
    # A salt of the request's own keeps others of the same key away, too.
    assert await cached(client, "free", prompt, cache_salt="s") == 0
    assert await cached(client, "free", prompt, cache_salt="s") > 200
    assert await cached(client, "one", prompt, cache_salt="s") == 0
