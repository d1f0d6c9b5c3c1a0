"""Vision models answer text, through the whole server."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from ovchat.v1 import (
    chat_pb2,
    completion_pb2,
    message_pb2,
    model_service_pb2,
    tokenizer_service_pb2,
)
from ovchat_server.app import Server
from tests.conftest import ROOT, model_settings
from tests.figures import figure
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


async def test_what_vision_models_cannot_do_is_refused_by_name(seeing: Client) -> None:
    request = ask("?", "sees")
    request.messages[0].content.append(by_url(figure("circle", "red")))
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


def by_url(file: bytes) -> message_pb2.ContentPart:
    url = f"data:image/png;base64,{base64.b64encode(file).decode()}"
    return message_pb2.ContentPart(image_url=message_pb2.ImageUrl(url=url))


def by_value(file: bytes) -> message_pb2.ContentPart:
    image = message_pb2.Image(data=file, mime_type="image/png")
    return message_pb2.ContentPart(image=image)


CIRCLE, SQUARE = figure("circle", "red"), figure("square", "blue")
QUESTION = message_pb2.ContentPart(text="What do you see?")


def turn(role: message_pb2.Role, *parts: message_pb2.ContentPart) -> message_pb2.Message:
    return message_pb2.Message(role=role, content=parts)


def conversation(
    *messages: message_pb2.Message, **fields: Any
) -> chat_pb2.CreateChatCompletionRequest:
    return chat_pb2.CreateChatCompletionRequest(
        model="demo-vision", messages=messages, temperature=0, **fields
    )


USER, ASSISTANT = message_pb2.ROLE_USER, message_pb2.ROLE_ASSISTANT
ASKED = {
    "by URL": ([turn(USER, by_url(CIRCLE), QUESTION)], "A red circle.", 1),
    "by value": ([turn(USER, by_value(SQUARE), QUESTION)], "A blue square.", 1),
    "behind the question": ([turn(USER, QUESTION, by_value(SQUARE))], "A blue square.", 1),
    "two images": (
        [turn(USER, by_value(CIRCLE), by_url(SQUARE), QUESTION)],
        "A red circle and a blue square.",
        2,
    ),
    "a tool's result": (
        [
            turn(USER, QUESTION),
            message_pb2.Message(
                role=ASSISTANT,
                tool_calls=[
                    message_pb2.ToolCall(
                        id="1", function=message_pb2.FunctionCall(name="look", arguments="{}")
                    )
                ],
            ),
            message_pb2.Message(
                role=message_pb2.ROLE_TOOL, tool_call_id="1", content=[by_value(CIRCLE)]
            ),
            turn(USER, QUESTION),
        ],
        "A red circle.",
        1,
    ),
    "a later turn": (
        [
            turn(USER, by_value(CIRCLE), QUESTION),
            turn(ASSISTANT, message_pb2.ContentPart(text="A red circle.")),
            turn(USER, by_value(SQUARE), message_pb2.ContentPart(text="And this?")),
        ],
        "A blue square.",
        2,
    ),
}


@pytest.mark.parametrize("name", ASKED)
async def test_images_are_answered(seeing: Client, name: str) -> None:
    messages, answer, images = ASKED[name]
    told = await seeing.chat.CreateChatCompletion(conversation(*messages))
    assert text_of(told) == answer
    # 64 patches, and the line break behind them.
    assert told.usage.prompt_tokens_details.image_tokens == 65 * images
    assert told.usage.prompt_tokens > 65 * images
    tokenized = await seeing.tokenizer.Tokenize(
        tokenizer_service_pb2.TokenizeRequest(model="demo-vision", messages=messages)
    )
    assert len(tokenized.sequences[0].tokens) == told.usage.prompt_tokens


async def test_an_image_that_is_none_is_refused_by_name(seeing: Client) -> None:
    request = conversation(turn(USER, QUESTION, by_value(CIRCLE[:100])))
    assert await refused(seeing.chat.CreateChatCompletion(request)) == (
        "messages[0].content[1].image is damaged: it cannot be decoded."
    )


async def test_prompts_with_images_are_not_truncated(seeing: Client) -> None:
    request = conversation(turn(USER, by_value(CIRCLE), QUESTION), truncate_prompt_tokens=50)
    assert "cannot be truncated to 50 of" in await refused(
        seeing.chat.CreateChatCompletion(request)
    )


async def test_it_says_that_it_takes_images(seeing: Client) -> None:
    listed = await seeing.models.ListModels(model_service_pb2.ListModelsRequest())
    takes = {
        model.id: model_service_pb2.CAPABILITY_VISION in model.capabilities
        for model in listed.models
    }
    assert takes == {"demo-vision": True, "sees": False}
