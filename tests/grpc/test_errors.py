from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from ovchat.v1 import chat_pb2, message_pb2, model_service_pb2, tool_pb2
from tests.grpc.requests import ask, user

if TYPE_CHECKING:
    from tests.grpc.conftest import Client

Request = chat_pb2.CreateChatCompletionRequest


def details(error: grpc.aio.AioRpcError) -> tuple[str, list[str]]:
    """Reason and fields of an error."""
    status = rpc_status.from_call(error)
    assert status is not None
    info, bad_request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        for message in (info, bad_request):
            if detail.Is(message.DESCRIPTOR):
                detail.Unpack(message)
    assert info.domain == "ovchat"
    return info.reason, [violation.field for violation in bad_request.field_violations]


BAD_REQUESTS: dict[str, tuple[Request, str]] = {
    "no model": (Request(messages=[user("hi")]), "model"),
    "no messages": (Request(model="demo"), "messages"),
    "no role": (
        Request(model="demo", messages=[message_pb2.Message(content=user("x").content)]),
        "messages[0].role",
    ),
    "unknown role": (
        Request(model="demo", messages=[message_pb2.Message(role=99, content=user("x").content)]),  # type: ignore[arg-type]
        "messages[0].role",
    ),
    "no call": (
        Request(model="demo", messages=[message_pb2.Message(role=message_pb2.ROLE_TOOL)]),
        "messages[0].tool_call_id",
    ),
    "an image": (
        Request(
            model="demo",
            messages=[
                message_pb2.Message(
                    role=message_pb2.ROLE_USER,
                    content=[message_pb2.ContentPart(image_url=message_pb2.ImageUrl(url="x"))],
                )
            ],
        ),
        "messages[0].content[0].image_url",
    ),
    "temperature": (ask("x", temperature=2.1), "temperature"),
    "temperature nan": (ask("x", temperature=float("nan")), "temperature"),
    "top_p": (ask("x", top_p=0), "top_p"),
    "top_k": (ask("x", top_k=-2), "top_k"),
    "min_p": (ask("x", min_p=1), "min_p"),
    "max_tokens": (ask("x", max_tokens=0), "max_tokens"),
    "stop": (ask("x", stop=["a", ""]), "stop[1]"),
    "n": (ask("x", n=129), "n"),
    "best_of": (ask("x", n=3, best_of=2), "best_of"),
    "top_logprobs": (ask("x", logprobs=True, top_logprobs=21), "top_logprobs"),
    "logit_bias": (ask("x", logit_bias={10**6: 1}), "logit_bias"),
    "bad_words": (ask("x", bad_words=["a", ""]), "bad_words[1]"),
    "stop_token_ids": (ask("x", stop_token_ids=[1, 10**6]), "stop_token_ids[1]"),
    "documents": (ask("x", documents=["{}", "{"]), "documents[1]"),
    "presence_penalty": (ask("x", presence_penalty=2.5), "presence_penalty"),
    "prompt_logprobs": (ask("x", prompt_logprobs=21), "prompt_logprobs"),
    "thinking_token_budget": (ask("x", thinking_token_budget=-2), "thinking_token_budget"),
    "stream_options on a unary call": (
        ask("x", stream_options=chat_pb2.StreamOptions(include_usage=True)),
        "stream_options",
    ),
    "tool parameters": (
        ask(
            "x",
            tools=[tool_pb2.Tool(function=tool_pb2.FunctionDefinition(name="f", parameters="{"))],
        ),
        "tools[0].function.parameters",
    ),
    "template arguments": (
        ask("x", chat_template_kwargs='{"messages": []}'),
        "chat_template_kwargs",
    ),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
async def test_a_bad_request_is_refused_naming_the_field(client: Client, name: str) -> None:
    request, field = BAD_REQUESTS[name]

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(request)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    reason, fields = details(caught.value)
    assert field in fields
    assert reason
    assert field in (caught.value.details() or "")


async def test_an_error_full_of_the_callers_text_arrives_whole(client: Client) -> None:
    snowmen = chat_pb2.CreateChatCompletionRequest(
        model="demo",
        messages=[user("x")],
        reasoning_effort="\N{SNOWMAN}" * 5000,
        tools=[tool_pb2.Tool(function=tool_pb2.FunctionDefinition(name="\N{SNOWMAN}" * 5000))]
        * 100,
    )

    for _ in range(20):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.chat.CreateChatCompletion(snowmen)
        # gRPC drops calls at random whose metadata are over 8 KiB.
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert details(caught.value)[1][0] == "tools[0].function.name"


async def test_a_stream_refuses_before_its_first_message(client: Client) -> None:
    call = client.chat.StreamChatCompletion(ask("x", temperature=9))

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_stream_refuses_what_only_a_whole_answer_tells(client: Client) -> None:
    call = client.chat.StreamChatCompletion(ask("x", prompt_logprobs=1))

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()

    assert details(caught.value) == ("UNSUPPORTED_PARAMETER", ["prompt_logprobs"])
    assert "`prompt_logprobs` are not available when `stream=True`." in (
        caught.value.details() or ""
    )


async def test_an_unknown_model_is_not_found(client: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(ask("x", "nobody"))

    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert details(caught.value) == ("MODEL_NOT_FOUND", ["model"])
    assert "demo" in (caught.value.details() or "")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.models.GetModel(model_service_pb2.GetModelRequest(id="nobody"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert details(caught.value) == ("MODEL_NOT_FOUND", ["id"])
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.models.GetModel(model_service_pb2.GetModelRequest())
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value) == ("MISSING_REQUIRED_PARAMETER", ["id"])


@pytest.mark.parametrize(
    ("fields", "field"),
    [({}, "messages"), ({"max_tokens": 1}, "messages")],
    ids=["unlimited", "limited"],
)
async def test_a_prompt_longer_than_the_context_is_refused(
    client: Client, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(ask("x" * 5000, "successor", **fields))

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value) == ("CONTEXT_LENGTH_EXCEEDED", [field])
    assert "4096" in (caught.value.details() or "")


async def test_an_empty_prompt_is_refused_and_the_engine_lives(client: Client) -> None:
    # The successor's template is the text alone.
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(ask("", "successor", max_tokens=2))

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value)[1] == ["messages"]
    assert (await client.model("successor")).state == model_service_pb2.MODEL_STATE_READY


async def test_text_that_surely_is_too_long_is_not_tokenised(client: Client) -> None:
    tokenizer = client.server._models.get("demo").files.tokenizer
    text = "x" * (7 << 20)

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(ask(text))

    assert details(caught.value) == ("CONTEXT_LENGTH_EXCEEDED", ["messages"])
    # What is told is the bound that needs no tokenising; the template adds a little.
    told = int(re.findall(r"too long: (\d+) tokens", str(caught.value.details()))[0])
    assert tokenizer.fewest_tokens(text) <= told < tokenizer.fewest_tokens(text) + 10


@pytest.mark.parametrize(
    "method",
    [
        "ChatService/CreateChatCompletion",
        "ChatService/StreamChatCompletion",
        "CompletionService/CreateCompletion",
        "CompletionService/StreamCompletion",
    ],
)
async def test_bytes_that_are_no_message_are_refused(client: Client, method: str) -> None:
    kind = client.channel.unary_unary if "Create" in method else client.channel.unary_stream
    call = kind(f"/ovchat.v1.{method}")(b"\xff\xff\xff")

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await (call if "Create" in method else call.read())

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value)[0] == "MALFORMED_MESSAGE"


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("asked", [4001, 2**32 - 1])
async def test_more_tokens_than_the_context_has_left_end_where_it_does(
    client: Client, field: str, asked: int
) -> None:
    completion = await client.chat.CreateChatCompletion(
        ask("x" * 96, "successor", temperature=0, **{field: asked})
    )

    assert completion.choices[0].finish_reason == chat_pb2.FINISH_REASON_LENGTH
    assert completion.usage.total_tokens == 4096


@pytest.mark.slow
async def test_prompt_and_answer_may_fill_the_context_to_the_last_token(client: Client) -> None:
    completion = await client.chat.CreateChatCompletion(
        ask("x" * 96, "successor", max_tokens=4000, temperature=0)
    )

    assert completion.usage.total_tokens == 4096


async def test_every_answer_carries_a_request_id(client: Client) -> None:
    call = client.chat.CreateChatCompletion(ask("hi"), metadata=(("x-request-id", "mine-1"),))
    await call
    assert dict(await call.trailing_metadata())["x-request-id"] == "mine-1"

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(ask("x", n=0))
    metadata = caught.value.trailing_metadata()
    assert metadata is not None
    assert len(str(metadata["x-request-id"])) == 32


async def test_a_message_over_the_limit_is_refused(client: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.chat.CreateChatCompletion(ask("x" * (9 << 20)))

    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_bytes_that_are_no_message_are_refused_in_a_stream_of_them(client: Client) -> None:
    method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    call = client.channel.stream_stream(method)(iter([b"\xff\xff\xff"]))

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value)[0] == "MALFORMED_MESSAGE"
