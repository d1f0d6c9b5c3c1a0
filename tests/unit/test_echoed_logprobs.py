"""`echo` with `logprobs`: a text completion whose prompt's tokens come before the answer's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.errors import ContextLengthExceededError, OverloadedError
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.rest.openai import objects
from ovchat_server.rpc import response
from tests.unit.prompt_tools import STOP, chat, piece, scores, text, token
from tests.unit.serving_tools import CONTEXT, TOKENIZER, ScriptedEngine

if TYPE_CHECKING:
    from ovchat_server.serving.answer import Answer

OPTIONS = StreamOptions()


async def bodies(answer: Answer) -> list[Any]:
    """The choices of a whole answer."""
    return objects.text_completion(await answer.whole())["choices"]  # type: ignore[return-value]


async def parts(answer: Answer) -> list[Any]:
    """Those of a stream's chunks, of which each has one."""
    chunks = [objects.text_chunk(chunk, OPTIONS) async for chunk in answer.stream(OPTIONS)]
    return [choice for chunk in chunks for choice in chunk["choices"]]  # type: ignore[union-attr]


def script(finish: Any = None) -> ScriptedEngine:
    return ScriptedEngine(
        [
            piece(0, "o", scores(2, "ab"), None, likeliest="cd"),
            piece(0, "k", finish=finish or STOP, likeliest="kd"),
        ]
    )


async def test_the_prompts_tokens_come_before_the_answers() -> None:
    [choice] = await bodies(await text(script(), "Hi", echo=True, logprobs=2))

    assert choice["text"] == "Hio"
    assert choice["logprobs"] == {
        "tokens": ["H", "i", "o"],
        "token_logprobs": [None, -1, -0.5],
        "top_logprobs": [
            None,
            {"a": -0.1, "b": -0.2, "i": -1},
            {"c": -0.25, "d": -0.25, "o": -0.5},
        ],
        "text_offset": [0, 1, 2],
    }


async def test_the_engine_is_asked_to_tell_of_the_prompt() -> None:
    answer = await text(script(), "Hi", echo=True, logprobs=2)
    [request] = answer.plan.requests
    assert (request.prompt_logprobs, request.logprobs, request.top_logprobs) == (2, True, 2)
    for fields in ({"logprobs": 2}, {"echo": True}):
        [request] = (await text(script(), "Hi", **fields)).plan.requests
        assert request.prompt_logprobs is None


async def test_a_chats_echo_is_no_prompt() -> None:
    [request] = (await chat(ScriptedEngine(), "Hi", echo=True, logprobs=True)).plan.requests
    assert request.prompt_logprobs is None


async def test_without_alternatives_each_token_is_its_own() -> None:
    engine = ScriptedEngine([piece(0, "o", scores(2))])
    [choice] = await bodies(await text(engine, "Hi", echo=True, logprobs=0))

    assert choice["logprobs"]["token_logprobs"] == [None, -1, -0.5]
    assert choice["logprobs"]["top_logprobs"] == [None, {"i": -1}, {"o": -0.5}]


async def test_over_grpc_only_the_first_token_has_no_log_probability() -> None:
    whole = await (await text(script(), "Hi", echo=True, logprobs=2)).whole()
    content = response.completion(whole).choices[0].logprobs.content

    assert [(item.token, item.bytes) for item in content] == [("H", b"H"), ("i", b"i"), ("o", b"o")]
    assert [item.HasField("logprob") for item in content] == [False, True, True]
    assert [[top.token for top in item.top_logprobs] for item in content] == [
        [],
        ["a", "b", "i"],
        ["c", "d", "o"],
    ]
    # They are those of prompt_logprobs only.
    assert not any(item.HasField("token_id") or item.HasField("rank") for item in content)


async def test_a_streams_first_chunk_has_the_prompt_and_its_tokens() -> None:
    [first, second, *_, last] = await parts(await text(script(), "Hi", echo=True, logprobs=2))

    assert first["text"] == "Hi"
    assert first["logprobs"] == {
        "tokens": ["H", "i"],
        "token_logprobs": [None, -1],
        "top_logprobs": [None, {"a": -0.1, "b": -0.2, "i": -1}],
        "text_offset": [0, 1],
    }
    assert second["text"] == "o"
    assert second["logprobs"]["text_offset"] == [2]
    assert last["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("prompt", "offsets"),
    [
        ("añb", [0, 1, 1, 2]),
        ("😀!", [0, 0, 0, 0, 1]),
        (TOKENIZER.encode("ab"), [0, 1]),
        # Half a character is a character that is none.
        ([*TOKENIZER.encode("a"), *TOKENIZER.encode("é")[:1]], [0, 1]),
        # Control tokens are text of a prompt.
        ("a<|im_end|>b", [0, 1, 11]),
    ],
)
async def test_offsets_count_in_the_text_that_is_returned(prompt: Any, offsets: list[int]) -> None:
    engine = ScriptedEngine([piece(0, "éx", scores(len(offsets)))])
    [choice] = await bodies(await text(engine, prompt, echo=True, logprobs=0))

    *_, last = choice["logprobs"]["text_offset"]
    assert choice["logprobs"]["text_offset"] == [*offsets, last - 1, last - 1, last]
    assert choice["text"][last:] == "x"


async def test_a_stop_text_counts_from_the_answer() -> None:
    engine = ScriptedEngine([piece(0, "Hi", scores(2), None), piece(0, "Hiya")])
    [choice] = await bodies(await text(engine, "Hi", echo=True, logprobs=0, stop="iH"))

    assert (choice["text"], choice["stop_reason"]) == ("HiH", "iH")
    assert choice["logprobs"]["tokens"] == [*"HiH"]


async def test_no_choice_begins_before_its_prompt_is_told_of() -> None:
    engine = ScriptedEngine(
        [
            piece(1, "b", finish=None),
            piece(1, "END", finish=None),
            # Nobody wants it any more.
            piece(1, "never", finish=None),
            piece(0, "a", scores(2), None),
            piece(1, "never", finish=None),
            piece(0, "c"),
        ]
    )
    answer = await text(engine, "Hi", n=2, echo=True, logprobs=0, stop="END")
    told = [(item["index"], item["text"], item["logprobs"]) for item in await parts(answer)]

    assert [(index, said) for index, said, _ in told if said] == [
        (0, "Hi"),
        (1, "Hi"),
        (1, "b"),
        (0, "a"),
        (0, "c"),
    ]
    assert told[0][2] == told[1][2]
    assert told[0][2]["tokens"] == ["H", "i"]
    assert engine.generation.ended == [1]


async def test_prompts_begin_in_their_order() -> None:
    engine = ScriptedEngine(
        [
            piece(2, "c", scores(3), None),
            piece(3, "d"),
            piece(0, "a", scores(2)),
            piece(2, "e"),
            piece(1, "b"),
        ]
    )
    asked = await text(engine, ["Hi", "you"], n=2, echo=True, logprobs=0)
    told = [(item["index"], item["text"]) for item in await parts(asked) if item["text"]]

    assert told == [
        (0, "Hi"),
        (1, "Hi"),
        (2, "you"),
        (3, "you"),
        (0, "a"),
        (2, "c"),
        (3, "d"),
        (2, "e"),
        (1, "b"),
    ]


async def test_every_choice_has_its_own_prompts_tokens() -> None:
    engine = ScriptedEngine(
        [
            piece(1, "b"),
            piece(3, "d"),
            piece(0, "a", scores(2)),
            piece(2, "c", scores(3)),
        ]
    )
    choices = await bodies(await text(engine, ["Hi", "you"], n=2, echo=True, logprobs=0))

    assert [item["logprobs"]["tokens"] for item in choices] == [
        [*"Hia"],
        [*"Hib"],
        [*"youc"],
        [*"youd"],
    ]
    assert [item["logprobs"]["text_offset"] for item in choices] == [[0, 1, 2]] * 2 + [
        [0, 1, 2, 3]
    ] * 2


@pytest.mark.parametrize(("echoed", "listed"), [(1, 2), (2, 1), (0, 2)])
async def test_each_form_tells_as_many_as_it_was_asked_for(echoed: int, listed: int) -> None:
    engine = ScriptedEngine([piece(0, "o", scores(2, "ab"), likeliest="c")])
    answer = await text(engine, "Hi", echo=True, logprobs=echoed, prompt_logprobs=listed)
    [choice] = await bodies(answer)

    assert answer.plan.requests[0].prompt_logprobs == 2
    [_, told] = choice["prompt_logprobs"]
    assert [*told] == [str(token(item)) for item in "iab"[: listed + 1]]
    [_, tops, _] = choice["logprobs"]["top_logprobs"]
    assert [*tops] == [*"ab"[:echoed], "i"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_prompt_alone_is_told_of(streamed: bool) -> None:  # noqa: FBT001
    engine = ScriptedEngine([piece(1, "b", scores(3)), piece(0, "a", scores(2), STOP)])
    answer = await text(engine, ["Hi", "you"], n=2, echo=True, logprobs=0, max_tokens=0)
    choices = await (parts(answer) if streamed else bodies(answer))

    # One choice of each prompt is enough to know it.
    assert [(item.max_tokens, item.prompt_logprobs) for item in answer.plan.requests] == [
        (1, 0)
    ] * 2
    assert [item["index"] for item in choices] == [0, 1, 2, 3]
    assert [item["text"] for item in choices] == ["Hi", "Hi", "you", "you"]
    assert {item["finish_reason"] for item in choices} == {"length"}
    assert [item["logprobs"]["token_logprobs"] for item in choices] == [
        *[[None, -1]] * 2,
        *[[None, -1, -2]] * 2,
    ]
    usage = answer.usage()
    assert (usage.prompt_tokens, usage.completion_tokens) == (5, 0)


async def test_what_the_engine_says_to_a_prompt_alone_is_nobodys() -> None:
    engine = ScriptedEngine([piece(0, "a", scores(2), None), piece(0, "b")])
    answer = await text(engine, "Hi", echo=True, logprobs=0, max_tokens=0)
    [choice] = await bodies(answer)

    assert (choice["text"], choice["logprobs"]["tokens"]) == ("Hi", ["H", "i"])
    assert answer.usage().completion_tokens == 0


async def test_a_prompt_alone_is_listed_too() -> None:
    engine = ScriptedEngine([piece(0, "a", scores(2))])
    answer = await text(engine, "Hi", echo=True, prompt_logprobs=0, max_tokens=0)
    [choice] = await bodies(answer)

    assert (choice["text"], choice["logprobs"]) == ("Hi", None)
    assert [*choice["prompt_logprobs"][1]] == [str(token("i"))]


async def test_a_prompt_that_is_told_of_leaves_room_for_a_token() -> None:
    echo: dict[str, Any] = {"echo": True, "max_tokens": 0}
    assert not (await text(ScriptedEngine(), "a" * CONTEXT, **echo)).plan.requests
    assert (await text(ScriptedEngine(), "a" * (CONTEXT - 1), logprobs=0, **echo)).plan.requests
    with pytest.raises(ContextLengthExceededError) as caught:
        await text(ScriptedEngine(), "a" * CONTEXT, logprobs=0, **echo)
    assert caught.value.param == "prompt"


async def test_a_prompt_that_is_told_of_waits_in_line() -> None:
    with pytest.raises(OverloadedError):
        await text(ScriptedEngine(full=True), "Hi", echo=True, logprobs=0, max_tokens=0)


async def test_usage_counts_the_answer_alone() -> None:
    answer = await text(script(), "Hi", echo=True, logprobs=0)
    usage = (await answer.whole()).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (2, 2)
