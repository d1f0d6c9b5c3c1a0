"""Where one model is served, no request has to name it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from google.api import httpbody_pb2

from ovchat.v1 import (
    chat_pb2,
    completion_pb2,
    rest_service_pb2,
    rest_service_pb2_grpc,
    tokenizer_service_pb2,
)
from ovchat_server.app import Server
from tests.grpc.conftest import Client, running
from tests.grpc.requests import ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import ModelSettings, Settings

# What the model says after "abc".
MESSAGES = [{"role": "user", "content": "abc"}]
REST: dict[str, dict[str, Any]] = {
    "CreateChatCompletion": {"messages": MESSAGES, "max_tokens": 3},
    "CreateCompletion": {"prompt": "abc", "max_tokens": 3},
    "Tokenize": {"prompt": "abc"},
    "Detokenize": {"tokens": [1, 2]},
}


@pytest.fixture(scope="module")
async def alone(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> AsyncIterator[Client]:
    async with running(Server(make_settings(successor))) as client:
        yield client


def chat_request() -> chat_pb2.CreateChatCompletionRequest:
    request = ask("abc", model="successor", max_tokens=3)
    request.ClearField("model")
    return request


async def test_typed_requests_need_no_model(alone: Client) -> None:
    chat = await alone.chat.CreateChatCompletion(chat_request())
    chunks = [chunk async for chunk in alone.chat.StreamChatCompletion(chat_request())]
    text = await alone.texts.CreateCompletion(
        completion_pb2.CreateCompletionRequest(
            prompt=[completion_pb2.Prompt(text="abc")], max_tokens=3
        )
    )
    tokens = await alone.tokenizer.Tokenize(tokenizer_service_pb2.TokenizeRequest(prompt="abc"))
    back = await alone.tokenizer.Detokenize(
        tokenizer_service_pb2.DetokenizeRequest(tokens=tokens.sequences[0].tokens)
    )

    assert {chat.model, chunks[0].model, text.model} == {"successor"}
    assert chat.choices[0].message.content[0].text == "def"
    assert back.prompt.endswith("abc")


@pytest.mark.parametrize("method", REST)
@pytest.mark.parametrize("model", [{}, {"model": None}, {"model": ""}], ids=str)
async def test_rest_requests_need_no_model(
    alone: Client, method: str, model: dict[str, Any]
) -> None:
    answer = await posted(alone, method, {**REST[method], **model})

    assert answer.get("model", "successor") == "successor"


async def posted(client: Client, method: str, body: dict[str, Any]) -> Any:
    call = getattr(rest_service_pb2_grpc.RestServiceStub(client.channel), method)
    parts = call(httpbody_pb2.HttpBody(data=json.dumps(body).encode()))
    return json.loads(b"".join([part.data async for part in parts]))


async def test_a_tokenizer_is_described_without_its_model_being_named(alone: Client) -> None:
    stub = rest_service_pb2_grpc.RestServiceStub(alone.channel)
    answer = await stub.GetTokenizerInfo(rest_service_pb2.RestServiceGetTokenizerInfoRequest())

    assert json.loads(answer.data)["tokenizer_class"]


@pytest.mark.parametrize("method", REST)
async def test_with_several_models_one_has_to_be_named(client: Client, method: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await posted(client, method, REST[method])

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == (
        "model is required unless a single model is served. Available models: demo, successor."
    )
