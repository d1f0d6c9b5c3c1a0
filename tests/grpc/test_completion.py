"""Text completions, whole and streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from ovchat.v1 import chat_pb2, completion_pb2
from tests.grpc.requests import go_on
from tests.grpc.test_errors import details
from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.grpc.conftest import Client

LENGTH = chat_pb2.FINISH_REASON_LENGTH


async def stream(
    client: Client, request: completion_pb2.CreateCompletionRequest
) -> list[completion_pb2.CompletionChunk]:
    return [chunk async for chunk in client.texts.StreamCompletion(request)]


def joined(chunks: list[completion_pb2.CompletionChunk]) -> dict[int, str]:
    answers: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            answers[choice.index] = answers.get(choice.index, "") + choice.text
    return answers


async def test_goes_on_with_a_text(client: Client) -> None:
    completion = await client.texts.CreateCompletion(go_on("hello", max_tokens=7))

    [choice] = completion.choices
    assert completion.id.startswith("cmpl-")
    assert (completion.model, choice.index) == ("successor", 0)
    assert (choice.text, choice.finish_reason) == (successor_text("o", 7), LENGTH)
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (5, 7, 12)


async def test_an_answer_has_sixteen_tokens_unless_asked_otherwise(client: Client) -> None:
    completion = await client.texts.CreateCompletion(go_on("a"))

    assert completion.choices[0].text == successor_text("a", 16)


async def test_a_stream_joins_to_the_whole(client: Client) -> None:
    chunks = await stream(client, go_on("a", "k", n=2, max_tokens=30))

    a, k = successor_text("a", 30), successor_text("k", 30)
    assert joined(chunks) == {0: a, 1: a, 2: k, 3: k}
    ended = [choice.index for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert sorted(ended) == [0, 1, 2, 3]
    assert len({(chunk.id, chunk.created, chunk.system_fingerprint) for chunk in chunks}) == 1


async def test_every_prompt_is_answered_by_itself(client: Client) -> None:
    tokens = completion_pb2.Prompt(token_ids=completion_pb2.TokenIds(values=b"xyA"))
    request = go_on("a", "bb", n=2, max_tokens=5)
    request.prompt.append(tokens)
    completion = await client.texts.CreateCompletion(request)

    assert [choice.index for choice in completion.choices] == list(range(6))
    expected = [successor_text(last, 5) for last in "aabbAA"]
    assert [choice.text for choice in completion.choices] == expected
    # Each prompt counts once.
    assert completion.usage.prompt_tokens == 1 + 2 + 3
    assert completion.usage.completion_tokens == 30


async def test_the_prompt_can_be_echoed(client: Client) -> None:
    request = go_on("héllo", "b", echo=True, max_tokens=3)
    completion = await client.texts.CreateCompletion(request)

    assert [choice.text for choice in completion.choices] == ["héllopqr", "bcde"]
    assert joined(await stream(client, request)) == {0: "héllopqr", 1: "bcde"}


async def test_the_prompt_alone_can_be_echoed(client: Client) -> None:
    request = go_on("hello", echo=True, max_tokens=0, n=2)
    completion = await client.texts.CreateCompletion(request)

    assert [choice.text for choice in completion.choices] == ["hello"] * 2
    assert {choice.finish_reason for choice in completion.choices} == {LENGTH}
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (5, 0)
    assert joined(await stream(client, request)) == {0: "hello", 1: "hello"}


async def test_tokens_are_returned_where_asked_for(client: Client) -> None:
    request = go_on("ab", max_tokens=3, return_token_ids=True)
    [choice] = (await client.texts.CreateCompletion(request)).choices
    chunks = await stream(client, request)

    assert (bytes(choice.prompt_token_ids), bytes(choice.token_ids)) == (b"ab", b"cde")
    choices = [chunk.choices[0] for chunk in chunks]
    assert bytes(choices[0].prompt_token_ids) == b"ab"
    assert not any(item.prompt_token_ids for item in choices[1:])
    assert b"".join(bytes(item.token_ids) for item in choices) == b"cde"


async def test_usage_comes_where_asked_for(client: Client) -> None:
    options = chat_pb2.StreamOptions(include_usage=True)
    chunks = await stream(client, go_on("a", "b", max_tokens=3, stream_options=options))

    assert [chunk.HasField("usage") for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert not chunks[-1].choices
    assert chunks[-1].usage.total_tokens == 2 + 6


async def test_log_probabilities_join_to_the_text(client: Client) -> None:
    [choice] = (await client.texts.CreateCompletion(go_on("a", logprobs=1))).choices

    assert "".join(item.token for item in choice.logprobs.content) == choice.text
    assert all(len(item.top_logprobs) == 1 for item in choice.logprobs.content)
    [choice] = (await client.texts.CreateCompletion(go_on("a", logprobs=0))).choices
    tops = [[top.token for top in item.top_logprobs] for item in choice.logprobs.content]
    assert tops == [[token] for token in choice.text]


async def test_a_stop_text_ends_the_answer(client: Client) -> None:
    [choice] = (await client.texts.CreateCompletion(go_on("a", stop=["fg"]))).choices

    assert (choice.text, choice.stop_reason) == ("bcde", "fg")
    assert choice.finish_reason == chat_pb2.FINISH_REASON_STOP


@pytest.mark.parametrize(
    ("request_", "reason", "field"),
    [
        (go_on(), "MISSING_REQUIRED_PARAMETER", "prompt"),
        (go_on("a", ""), "INVALID_VALUE", "prompt[1]"),
        (go_on("a", n=0), "INVALID_VALUE", "n"),
        (go_on("a", suffix="x"), "UNSUPPORTED_PARAMETER", "suffix"),
        (go_on("a", "x" * 5000), "CONTEXT_LENGTH_EXCEEDED", "prompt[1]"),
        (go_on("x" * 5000), "CONTEXT_LENGTH_EXCEEDED", "prompt"),
        (
            go_on("x" * 96, max_tokens=5000, truncate_prompt_tokens=-1),
            "CONTEXT_LENGTH_EXCEEDED",
            "max_tokens",
        ),
        (
            go_on(
                prompt=[
                    completion_pb2.Prompt(text="a"),
                    completion_pb2.Prompt(token_ids=completion_pb2.TokenIds(values=[1, 10**6])),
                ]
            ),
            "INVALID_VALUE",
            "prompt[1]",
        ),
        (go_on("a", model="nobody"), "MODEL_NOT_FOUND", "model"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_bad_request_is_refused_naming_the_field(
    client: Client,
    request_: completion_pb2.CreateCompletionRequest,
    reason: str,
    field: str,
    streamed: bool,  # noqa: FBT001
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await (stream(client, request_) if streamed else client.texts.CreateCompletion(request_))

    told, [path] = details(caught.value)
    assert told == reason
    assert path.startswith(field)
