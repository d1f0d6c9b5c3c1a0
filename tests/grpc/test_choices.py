"""Several choices of one request: sampled or searched, whole or streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ovchat.v1 import chat_pb2, message_pb2
from tests.grpc.engines import given_up, until_idle
from tests.grpc.requests import ask, successor
from tests.grpc.test_chat import stream
from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.grpc.conftest import Client


def texts(completion: chat_pb2.ChatCompletion) -> list[str]:
    return [choice.message.content[0].text for choice in completion.choices]


def joined(chunks: list[chat_pb2.ChatCompletionChunk]) -> dict[int, str]:
    answers: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            answers[choice.index] = answers.get(choice.index, "") + choice.delta.content
    return answers


async def test_choices_are_told_by_index(client: Client) -> None:
    completion = await client.chat.CreateChatCompletion(successor("a", 20, n=3))

    assert [choice.index for choice in completion.choices] == [0, 1, 2]
    assert texts(completion) == [successor_text("a", 20)] * 3
    # The prompt counts once, the answers all.
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (1, 60)


async def test_a_stream_opens_all_choices_in_order_before_any_text(client: Client) -> None:
    chunks = await stream(client, successor("a", 20, n=3))

    opening = [chunk.choices[0] for chunk in chunks[:3]]
    assert [choice.index for choice in opening] == [0, 1, 2]
    for choice in opening:
        assert choice.delta == chat_pb2.Delta(role=message_pb2.ROLE_ASSISTANT)
    for chunk in chunks[3:]:
        assert chunk.choices[0].delta.role == message_pb2.ROLE_UNSPECIFIED
    assert joined(chunks) == dict.fromkeys(range(3), successor_text("a", 20))
    last = [chunk.choices[0].index for chunk in chunks if chunk.choices[0].finish_reason]
    assert sorted(last) == [0, 1, 2]


async def test_choices_of_one_seed_differ_and_are_the_same_again(client: Client) -> None:
    request = ask("Tell me something.", temperature=2, top_k=0, seed=7, n=4, max_tokens=30)
    first, again = [texts(await client.chat.CreateChatCompletion(request)) for _ in range(2)]

    assert first == again
    assert len(set(first)) == 4
    # Choice i is that of the seed + i alone.
    alone = ask("Tell me something.", temperature=2, top_k=0, seed=9, max_tokens=30)
    assert texts(await client.chat.CreateChatCompletion(alone)) == [first[2]]


async def test_a_streamed_choice_is_the_whole_one(client: Client) -> None:
    request = ask("Tell me something.", temperature=1, seed=3, n=3, max_tokens=30)
    whole = texts(await client.chat.CreateChatCompletion(request))

    assert joined(await stream(client, request)) == dict(enumerate(whole))


async def test_a_stop_text_ends_its_own_choice_only(client: Client) -> None:
    request = ask("Tell me something.", temperature=2, top_k=0, seed=7, n=4, max_tokens=30)
    plain = texts(await client.chat.CreateChatCompletion(request))
    stop = plain[0][2:5]
    request.stop.append(stop)

    stopped = await client.chat.CreateChatCompletion(request)

    for before, choice in zip(plain, stopped.choices, strict=True):
        text = "".join(part.text for part in choice.message.content)
        assert text == before.partition(stop)[0]
        assert choice.stop_reason == (stop if stop in before else "")
    await until_idle(client, "demo")


async def test_a_search_returns_its_best_answers(client: Client) -> None:
    request = successor("a", 20, n=2, best_of=4, logprobs=True)
    completion = await client.chat.CreateChatCompletion(request)

    best, other = completion.choices
    assert best.message.content[0].text == successor_text("a", 20)
    scores = [sum(item.logprob for item in choice.logprobs.content) for choice in (best, other)]
    assert scores[0] > scores[1]
    assert completion.usage.completion_tokens == 40
    assert joined(await stream(client, request))[0] == successor_text("a", 20)


async def test_usage_so_far_grows_to_the_whole(client: Client) -> None:
    options = chat_pb2.StreamOptions(include_usage=True, continuous_usage_stats=True)
    chunks = await stream(client, successor("ab", 10, n=2, stream_options=options))

    counts = [chunk.usage.completion_tokens for chunk in chunks]
    assert all(chunk.HasField("usage") for chunk in chunks)
    assert counts == sorted(counts)
    assert counts[-1] == 20
    assert {chunk.usage.prompt_tokens for chunk in chunks} == {2}


async def test_log_probabilities_come_with_their_text(client: Client) -> None:
    request = successor("a", 10, logprobs=True, top_logprobs=1)
    [choice] = (await client.chat.CreateChatCompletion(request)).choices
    chunks = await stream(client, request)

    assert "".join(item.token for item in choice.logprobs.content) == successor_text("a", 10)
    for item in choice.logprobs.content:
        assert item.bytes == item.token.encode()
        [top] = item.top_logprobs
        assert (top.token, top.logprob, top.bytes) == (item.token, item.logprob, item.bytes)
    streamed = [item for chunk in chunks for item in chunk.choices[0].logprobs.content]
    assert streamed == list(choice.logprobs.content)


async def test_an_empty_answer_has_no_log_probabilities_but_tells_so(client: Client) -> None:
    [end] = b"b"
    request = successor("a", 3, logprobs=True, stop_token_ids=[end])
    [choice] = (await client.chat.CreateChatCompletion(request)).choices
    assert choice.finish_reason == chat_pb2.FINISH_REASON_STOP
    assert choice.HasField("logprobs")
    assert not choice.logprobs.content


async def test_usage_so_far_without_usage_is_none(client: Client) -> None:
    options = chat_pb2.StreamOptions(continuous_usage_stats=True)
    chunks = await stream(client, successor("ab", 3, stream_options=options))
    assert not any(chunk.HasField("usage") for chunk in chunks)


async def test_without_asking_there_are_no_log_probabilities(client: Client) -> None:
    [choice] = (await client.chat.CreateChatCompletion(successor("a", 3))).choices

    assert not choice.HasField("logprobs")


@pytest.mark.parametrize(("include", "text"), [(False, "bcd"), (True, "bcde")])
async def test_a_stop_token_is_told(client: Client, include: bool, text: str) -> None:  # noqa: FBT001
    request = successor("a", 10, stop_token_ids=[ord("e")], include_stop_str_in_output=include)
    [choice] = (await client.chat.CreateChatCompletion(request)).choices

    assert choice.message.content[0].text == text
    assert choice.finish_reason == chat_pb2.FINISH_REASON_STOP
    assert choice.stop_token_id == ord("e")
    assert not choice.HasField("stop_reason")


async def test_a_stop_token_ends_what_ignores_the_end(client: Client) -> None:
    request = successor("a", 4000, stop_token_ids=[ord("e")], ignore_eos=True)
    async with given_up(client, "successor", 4000):
        completion = await client.chat.CreateChatCompletion(request)

    assert texts(completion) == ["bcd"]
    assert completion.choices[0].stop_token_id == ord("e")


async def test_nothing_ends_an_answer_before_the_fewest_tokens(client: Client) -> None:
    request = successor("a", 60, stop=["d"], min_tokens=10)
    [text] = texts(await client.chat.CreateChatCompletion(request))

    whole = successor_text("a", 200)
    assert text == whole[: whole.index("d", 10)][:60]


async def test_a_long_prompt_can_be_cut(client: Client) -> None:
    prompt = "a" * 4999 + "k"
    for fields, used in (
        ({"truncate_prompt_tokens": 7}, 7),
        ({"truncate_prompt_tokens": -1}, 4096 - 5),
    ):
        completion = await client.chat.CreateChatCompletion(successor(prompt, 5, **fields))
        assert texts(completion) == ["lmnop"]
        assert completion.usage.prompt_tokens == used
    right = successor(prompt, 5, truncate_prompt_tokens=7, truncation_side="right")
    assert texts(await client.chat.CreateChatCompletion(right)) == ["bcdef"]
