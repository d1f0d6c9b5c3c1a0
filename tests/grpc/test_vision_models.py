"""Vision models answer text, through the whole server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest

from ovchat.v1 import chat_pb2, completion_pb2, message_pb2
from ovchat_server.app import Server
from tests.conftest import ROOT, model_settings
from tests.grpc.conftest import Client, running
from tests.grpc.requests import ask, prompt, text_of
from tests.vision_models import as_vision_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import Settings


@pytest.fixture(scope="module")
async def seeing(
    make_settings: Callable[..., Settings], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Client]:
    folder = tmp_path_factory.mktemp("models") / "sees"
    model = model_settings("sees", path=as_vision_model(ROOT / "models/demo", folder))
    async with running(Server(make_settings(model, model_settings("demo-vision")))) as client:
        yield client


async def test_a_chat_is_answered_as_by_the_same_model_without_eyes(
    client: Client, seeing: Client
) -> None:
    question = "What is the capital of France?"
    expected = await client.chat.CreateChatCompletion(ask(question, temperature=0))
    told = await seeing.chat.CreateChatCompletion(ask(question, "sees", temperature=0))
    assert text_of(told) == text_of(expected) != ""
    assert told.usage == expected.usage


async def test_a_model_as_it_was_exported_answers_text(seeing: Client) -> None:
    told = await seeing.chat.CreateChatCompletion(ask("Hello!", "demo-vision", temperature=0))
    assert text_of(told) == (
        "I am a small demo model: show me a picture of a circle, a square or a triangle."
    )
    assert told.choices[0].finish_reason == chat_pb2.FINISH_REASON_STOP


async def refused(call: grpc.aio.UnaryUnaryCall) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    return caught.value.details() or ""


async def test_what_it_cannot_do_yet_is_refused_by_name(seeing: Client) -> None:
    image = message_pb2.ContentPart(image_url=message_pb2.ImageUrl(url="data:,"))
    request = ask("?", "sees")
    request.messages[0].content.append(image)
    assert await refused(seeing.chat.CreateChatCompletion(request)) == (
        "messages[0].content[1].image_url is not supported by this model, which takes text only."
    )
    texts = completion_pb2.CreateCompletionRequest(
        model="sees", prompt=[prompt("a")], prompt_logprobs=1
    )
    assert await refused(seeing.texts.CreateCompletion(texts)) == (
        "prompt_logprobs is not supported by vision models: "
        "OpenVINO GenAI does not score their prompts."
    )
