"""Bounds that an operator moved hold on the typed door, and the error names the field."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import msgspec
import pytest

from ovchat.v1 import chat_pb2, message_pb2, tokenizer_service_pb2, tool_pb2
from ovchat_server.app import Server
from ovchat_server.domain.limits import Limits
from tests.grpc.conftest import Client, running
from tests.grpc.requests import go_on, successor, user
from tests.grpc.test_deadlines import serving
from tests.grpc.test_errors import details

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import ModelSettings, Settings

LIMITS = Limits(
    max_messages=3,
    max_parts=2,
    max_total_parts=5,
    max_tools=2,
    max_documents=2,
    max_stop_strings=2,
    max_stop_tokens=2,
    max_logit_biases=2,
    max_allowed_tokens=2,
    max_bad_words=2,
    max_choices=2,
    max_prompts=2,
    max_prompt_logprobs=6,
    max_texts=2,
    max_tokenized_bytes=8,
    max_json_depth=20,
)


@pytest.fixture(scope="module")
async def bounded(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> AsyncIterator[Client]:
    async with running(Server(make_settings(successor, limits=LIMITS))) as client:
        yield client


async def test_an_answer_ends_where_the_kv_cache_does(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    # Shorter than the model's context of 4,096 tokens.
    async with serving(make_settings(msgspec.structs.replace(successor, kv_blocks=8))) as client:
        request = go_on("a", max_tokens=32_000)
        answers = await asyncio.gather(*(client.texts.CreateCompletion(request) for _ in range(2)))
        model = await client.model("successor")

    assert 0 < model.context_length < 256
    for answer in answers:
        assert answer.choices[0].finish_reason == chat_pb2.FINISH_REASON_LENGTH
        assert answer.usage.total_tokens == model.context_length


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def parts(count: int) -> message_pb2.Message:
    return message_pb2.Message(
        role=message_pb2.ROLE_USER, content=[message_pb2.ContentPart(text="a")] * count
    )


def calls(count: int, arguments: str = "") -> list[message_pb2.Message]:
    function = message_pb2.FunctionCall(name="f", arguments=arguments)
    call = message_pb2.ToolCall(id="c", function=function)
    asked = message_pb2.Message(role=message_pb2.ROLE_ASSISTANT, tool_calls=[call] * count)
    return [asked, user("a")]


def tools(count: int, parameters: str = "{}") -> list[tool_pb2.Tool]:
    return [
        tool_pb2.Tool(
            function=tool_pb2.FunctionDefinition(name=f"f{number}", parameters=parameters)
        )
        for number in range(count)
    ]


def chat(*messages: message_pb2.Message, **fields: Any) -> chat_pb2.CreateChatCompletionRequest:
    request = successor("a", 2, **fields)
    if messages:
        del request.messages[:]
        request.messages.extend(messages)
    return request


def texts(count: int) -> tokenizer_service_pb2.TokenizeRequest:
    return tokenizer_service_pb2.TokenizeRequest(model="successor", text=["a"] * count)


def text_of_tokens(count: int) -> tokenizer_service_pb2.DetokenizeRequest:
    return tokenizer_service_pb2.DetokenizeRequest(model="successor", tokens=[97] * count)


def conversation(content: str) -> tokenizer_service_pb2.TokenizeRequest:
    return tokenizer_service_pb2.TokenizeRequest(model="successor", messages=[user(content)])


# The method, what is just within, what is just beyond, the field.
BOUNDS: dict[str, tuple[str, Any, Any, str]] = {
    "messages": ("chat", chat(*[user("a")] * 3), chat(*[user("a")] * 4), "messages"),
    "parts": ("chat", chat(parts(2)), chat(user("a"), parts(3)), "messages[1].content"),
    "calls": ("chat", chat(*calls(2)), chat(*calls(3)), "messages[0].tool_calls"),
    "parts of all messages": (
        "chat",
        chat(parts(2), parts(2), parts(1)),
        chat(parts(2), parts(2), parts(2)),
        "messages",
    ),
    "parts and calls of all messages": (
        "chat",
        chat(*calls(2), parts(2)),
        chat(*calls(2), user("a"), parts(2)),
        "messages",
    ),
    "tools": ("chat", chat(tools=tools(2)), chat(tools=tools(3)), "tools"),
    "documents": ("chat", chat(documents=["{}"] * 2), chat(documents=["{}"] * 3), "documents"),
    "stop": ("chat", chat(stop=["x"] * 2), chat(stop=["x"] * 3), "stop"),
    "stop tokens": (
        "chat",
        chat(stop_token_ids=[1] * 2),
        chat(stop_token_ids=[1] * 3),
        "stop_token_ids",
    ),
    "biases": (
        "chat",
        chat(logit_bias={1: 1, 2: 1}),
        chat(logit_bias={1: 1, 2: 1, 3: 1}),
        "logit_bias",
    ),
    "allowed tokens": (
        "chat",
        chat(allowed_token_ids=[97] * 2),
        chat(allowed_token_ids=[97] * 3),
        "allowed_token_ids",
    ),
    "bad words": ("chat", chat(bad_words=["x"] * 2), chat(bad_words=["x"] * 3), "bad_words"),
    "choices": ("chat", chat(n=2), chat(n=3), "n"),
    "prompts": ("text", go_on(*"ab"), go_on(*"abc"), "prompt"),
    "log probabilities of a prompt": (
        "chat",
        chat(prompt_logprobs=5),
        chat(prompt_logprobs=6),
        "prompt_logprobs",
    ),
    "log probabilities of prompts": (
        "text",
        go_on(*"ab", echo=True, logprobs=2),
        go_on(*"ab", echo=True, logprobs=3),
        "logprobs",
    ),
    "texts": ("tokenize", texts(2), texts(3), "text"),
    "bytes of texts": (
        "tokenize",
        tokenizer_service_pb2.TokenizeRequest(model="successor", text=["é" * 2, "aaaa"]),
        tokenizer_service_pb2.TokenizeRequest(model="successor", text=["é" * 2, "aaaaa"]),
        "text",
    ),
    "bytes of a conversation": (
        "tokenize",
        conversation("a" * 8),
        conversation("a" * 9),
        "messages",
    ),
    "bytes of the text of tokens": (
        "detokenize",
        text_of_tokens(8),
        text_of_tokens(9),
        "tokens",
    ),
    "depth of arguments": (
        "chat",
        chat(chat_template_kwargs=nested(20)),
        chat(chat_template_kwargs=nested(21)),
        "chat_template_kwargs",
    ),
    "depth of a call's arguments": (
        "chat",
        chat(*calls(1, nested(20))),
        chat(*calls(1, nested(21))),
        "messages[0].tool_calls[0].function.arguments",
    ),
    "depth of a document": (
        "chat",
        chat(documents=[nested(19)]),
        chat(documents=[nested(20)]),
        "documents",
    ),
    "depth of a schema": (
        "chat",
        chat(tools=tools(1, nested(17))),
        chat(tools=tools(1, nested(18))),
        "tools",
    ),
}


@pytest.mark.parametrize("name", BOUNDS)
async def test_a_bound_lets_pass_what_is_within_and_names_what_is_not(
    bounded: Client, name: str
) -> None:
    kind, within, beyond, field = BOUNDS[name]
    method: Any = {
        "chat": bounded.chat.CreateChatCompletion,
        "text": bounded.texts.CreateCompletion,
        "tokenize": bounded.tokenizer.Tokenize,
        "detokenize": bounded.tokenizer.Detokenize,
    }[kind]

    await method(within)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await method(beyond)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value)[1] == [field]
    assert field in str(caught.value.details())


@pytest.mark.slow
async def test_more_calls_than_a_connection_may_have_wait_for_their_turn(
    make_settings: Callable[..., Settings], successor: ModelSettings
) -> None:
    server = Server(make_settings(successor, max_concurrent_streams=2))
    async with (
        server.running(),
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
        # Another connection, not the same one shared.
        grpc.aio.insecure_channel(
            f"127.0.0.1:{server.port}", options=[("grpc.use_local_subchannel_pool", 1)]
        ) as other_channel,
    ):
        client, other = Client(server, channel), Client(server, other_channel)
        await other.wait_for_health("SERVING")
        running = [client.chat.StreamChatCompletion(chat()) for _ in range(2)]
        for call in running:
            assert len([chunk async for chunk in call]) > 1
        # Not before: which of four calls go first is gRPC's to choose.
        long = [client.chat.StreamChatCompletion(_long()) for _ in range(2)]
        for call in long:
            await call.read()

        waiting = client.chat.CreateChatCompletion(chat())
        await other.chat.CreateChatCompletion(chat())
        assert not waiting.done()
        long[0].cancel()

        assert (await waiting).usage.completion_tokens == 2
        long[1].cancel()


def _long() -> chat_pb2.CreateChatCompletionRequest:
    request = chat()
    request.max_tokens = 4000
    return request
