"""`prompt_logprobs`: how likely the tokens of a prompt were, in a list of their own."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.limits import Limits
from ovchat_server.engine.contract.generation import PromptScore
from ovchat_server.engine.contract.messages import Capabilities
from ovchat_server.rest.openai import objects
from ovchat_server.rpc import response
from tests.unit.prompt_tools import chat, piece, scores, text, token
from tests.unit.serving_tools import READY, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat.v1 import chat_pb2
    from ovchat_server.domain.completion import Completion

BLIND = dataclasses.replace(READY, capabilities=Capabilities(sees_logits=False))


def of_chat(completion: Completion) -> Any:
    return objects.chat_completion(completion)


def of_texts(completion: Completion) -> Any:
    return objects.text_completion(completion)["choices"]


def entry(item: tuple[str, float, int]) -> dict[str, Any]:
    said, logprob, rank = item
    return {"logprob": logprob, "rank": rank, "decoded_token": said}


def listed(*items: tuple[str, float, int]) -> dict[str, Any]:
    """What is told of one token, its own first."""
    return {str(token(item[0])): entry(item) for item in items}


def shown(item: chat_pb2.TokenLogprob | chat_pb2.TopLogprob) -> tuple[Any, ...]:
    logprob = item.logprob if item.HasField("logprob") else None
    rank = item.rank if item.HasField("rank") else None
    return (item.token, item.bytes, item.token_id, logprob, rank)


async def test_a_chat_tells_of_its_prompt_beside_its_choices() -> None:
    engine = ScriptedEngine([piece(0, "x", scores(3, "ab"))])
    body = of_chat(await (await chat(engine, "Hi!", prompt_logprobs=2)).whole())

    assert body["prompt_logprobs"] == [
        None,
        listed(("i", -1, 101), ("a", -0.1, 1), ("b", -0.2, 2)),
        listed(("!", -2, 102), ("a", -0.1, 1), ("b", -0.2, 2)),
    ]
    [choice] = body["choices"]
    assert "prompt_logprobs" not in choice


async def test_over_grpc_a_token_has_its_likeliest_beside_it() -> None:
    engine = ScriptedEngine([piece(0, "x", scores(3, "ab"))])
    whole = await (await chat(engine, "Hi!", prompt_logprobs=2)).whole()
    told = response.chat_completion(whole).prompt_logprobs

    assert [shown(item) for item in told] == [
        ("H", b"H", token("H"), None, None),
        ("i", b"i", token("i"), -1, 101),
        ("!", b"!", token("!"), -2, 102),
    ]
    assert [[shown(top) for top in item.top_logprobs] for item in told] == [
        [],
        *[[("a", b"a", token("a"), -0.1, 1), ("b", b"b", token("b"), -0.2, 2)]] * 2,
    ]


@pytest.mark.parametrize("fields", [{}, {"prompt_logprobs": None}, {"echo": True}])
async def test_nothing_is_told_of_a_prompt_unasked(fields: dict[str, Any]) -> None:
    for ask in (chat, text):
        engine = ScriptedEngine([piece(0, "x")])
        answer = await ask(engine, "Hi", **fields)
        assert [request.prompt_logprobs for request in answer.plan.requests] == [None]
        whole = await answer.whole()
        # vLLM's clients look at them without asking whether there are any.
        assert of_chat(whole)["prompt_logprobs"] is None
        assert of_texts(whole)[0]["prompt_logprobs"] is None
        assert not response.chat_completion(whole).prompt_logprobs
        assert not response.completion(whole).choices[0].prompt_logprobs


async def test_a_token_that_is_among_the_likeliest_is_told_once_and_first() -> None:
    # As likely as another it may have another rank by itself, and be rounded otherwise.
    score = PromptScore(-0.7, 2, ((token("a"), -0.7), (token("i"), -0.7001), (token("b"), -3)))
    engine = ScriptedEngine([piece(0, "x", [dataclasses.replace(score, rank=1)])])
    whole = await (await chat(engine, "Hi", prompt_logprobs=3)).whole()

    [_, told] = of_chat(whole)["prompt_logprobs"]
    assert [*told.items()] == [
        (str(token("i")), entry(("i", -0.7, 2))),
        (str(token("a")), entry(("a", -0.7, 1))),
        (str(token("b")), entry(("b", -3, 3))),
    ]
    [_, message] = response.chat_completion(whole).prompt_logprobs
    assert shown(message) == ("i", b"i", token("i"), -0.7, 2)
    assert [shown(top)[2:] for top in message.top_logprobs] == [
        (token("a"), -0.7, 1),
        (token("i"), -0.7, 2),
        (token("b"), -3, 3),
    ]


async def test_without_alternatives_a_token_has_its_own_rank() -> None:
    engine = ScriptedEngine([piece(0, "x", scores(2))])
    whole = await (await chat(engine, "Hi", prompt_logprobs=0)).whole()

    assert engine.asked[0].prompt_logprobs == 0
    assert of_chat(whole)["prompt_logprobs"] == [None, listed(("i", -1, 101))]


async def test_numbers_that_json_does_not_know_are_openais() -> None:
    score = PromptScore(-math.inf, 9, ((token("a"), 1e-7), (token("b"), -math.inf)))
    engine = ScriptedEngine([piece(0, "x", [score])])
    whole = await (await chat(engine, "Hi", prompt_logprobs=2)).whole()

    [_, told] = of_chat(whole)["prompt_logprobs"]
    assert told == listed(("i", -9999, 9), ("a", 0, 1), ("b", -9999, 2))


async def test_a_token_that_is_no_text_by_itself_is_replaced() -> None:
    engine = ScriptedEngine([piece(0, "x", scores(2))])
    whole = await (await chat(engine, "é", prompt_logprobs=0)).whole()

    told = response.chat_completion(whole).prompt_logprobs
    assert [shown(item)[:2] for item in told] == [("\ufffd", b"\xc3"), ("\ufffd", b"\xa9")]


async def test_a_prompt_of_one_token_follows_nothing() -> None:
    for ask in (chat, text):
        engine = ScriptedEngine([piece(0, "x")])
        whole = await (await ask(engine, "H", prompt_logprobs=5)).whole()
        assert of_chat(whole)["prompt_logprobs"] == [None]
        assert of_texts(whole)[0]["prompt_logprobs"] == [None]
        assert whole.choices[0].message.text == "x"


async def test_each_choice_of_a_text_tells_of_its_prompt() -> None:
    engine = ScriptedEngine(
        # They come in any order.
        [
            piece(3, "d"),
            piece(1, "b"),
            piece(2, "c", scores(3)),
            piece(0, "a", scores(2)),
        ]
    )
    answer = await text(engine, ["Hi", "you"], n=2, prompt_logprobs=0)
    whole = await answer.whole()

    assert [request.prompt_logprobs for request in answer.plan.requests] == [0, None, 0, None]
    first = [None, listed(("i", -1, 101))]
    second = [None, listed(("o", -1, 101)), listed(("u", -2, 102))]
    choices = of_texts(whole)
    assert [item["text"] for item in choices] == [*"abcd"]
    assert [item["prompt_logprobs"] for item in choices] == [first, first, second, second]
    messages = response.completion(whole).choices
    assert [[item.token for item in choice.prompt_logprobs] for choice in messages] == [
        *[["H", "i"]] * 2,
        *[["y", "o", "u"]] * 2,
    ]


async def test_a_chats_choices_have_their_prompt_once() -> None:
    engine = ScriptedEngine([piece(1, "b"), piece(0, "a", scores(2))])
    answer = await chat(engine, "Hi", n=2, prompt_logprobs=0)
    body = of_chat(await answer.whole())

    assert [request.prompt_logprobs for request in answer.plan.requests] == [0, None]
    assert [item["message"]["content"] for item in body["choices"]] == ["a", "b"]
    assert body["prompt_logprobs"] == [None, listed(("i", -1, 101))]


async def test_what_is_cut_off_a_prompt_is_not_told_of() -> None:
    engine = ScriptedEngine([piece(0, "x", scores(2))])
    whole = await (await text(engine, "Hello", prompt_logprobs=0, truncate_prompt_tokens=2)).whole()
    assert of_texts(whole)[0]["prompt_logprobs"] == [None, listed(("o", -1, 101))]


@pytest.mark.parametrize(
    ("ask", "fields", "field"),
    [
        (chat, {"prompt_logprobs": 0}, "prompt_logprobs"),
        (chat, {"prompt_logprobs": 5}, "prompt_logprobs"),
        (text, {"prompt_logprobs": 0}, "prompt_logprobs"),
        # Without the echo it can be told.
        (text, {"logprobs": 0, "echo": True}, "logprobs"),
        (text, {"logprobs": 1, "echo": True}, "logprobs"),
        (text, {"logprobs": 0, "echo": True, "max_tokens": 0}, "logprobs"),
    ],
)
async def test_a_device_that_shows_no_logits_tells_nothing_of_prompts(
    ask: Callable[..., Any], fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await ask(ScriptedEngine(status=BLIND), "Hi", **fields)
    [violation] = caught.value.violations
    assert (violation.field, violation.code) == (field, "unsupported_parameter")
    assert field in violation.message


@pytest.mark.parametrize(
    ("ask", "prompt", "fields", "field", "count"),
    [
        (chat, "Hello", {"prompt_logprobs": 3}, "prompt_logprobs", 20),
        # A chat tells of it once.
        (chat, "Hello", {"prompt_logprobs": 3, "n": 2}, "prompt_logprobs", 20),
        (text, "Hello", {"prompt_logprobs": 3}, "prompt_logprobs", 20),
        (text, ["Hello", "world"], {"prompt_logprobs": 1}, "prompt_logprobs", 20),
        (text, "Hello", {"prompt_logprobs": 1, "n": 2}, "prompt_logprobs", 20),
        (text, "Hello", {"logprobs": 3, "echo": True}, "logprobs", 20),
        (text, "Hello", {"logprobs": 1, "echo": True, "max_tokens": 0, "n": 2}, "logprobs", 20),
        (text, "Hello", {"logprobs": 3, "echo": True, "prompt_logprobs": 2}, "prompt_logprobs", 35),
    ],
)
async def test_so_many_are_told_and_no_more(
    ask: Callable[..., Any], prompt: Any, fields: dict[str, Any], field: str, count: int
) -> None:
    engine = ScriptedEngine()
    assert (await ask(engine, prompt, Limits(max_prompt_logprobs=count), **fields)).plan.requests
    with pytest.raises(InvalidRequestError) as caught:
        await ask(engine, prompt, Limits(max_prompt_logprobs=count - 1), **fields)
    assert caught.value.param == field
    assert caught.value.message.startswith(field)
    assert f" {count} log probabilities of prompts" in caught.value.message
    assert f"at most {count - 1} " in caught.value.message
