"""The choices of one request, as an engine of any manners brings them."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.chat import Role
from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.engine.contract.generation import GeneratedTokens, TokenFinish
from ovchat_server.engine.contract.prompt import Prompt, PromptImage
from ovchat_server.rest.openai import objects
from ovchat_server.rpc import response
from tests.unit.serving_tools import TOKENIZER, WORKERS, ScriptedEngine, completions, served
from tests.unit.text_tools import byte_tokenizer

if TYPE_CHECKING:
    from typing import Any

    from ovchat_server.domain.completion import Chunk
    from ovchat_server.serving.answer import Answer
    from ovchat_server.tokenizer.huggingface import Tokenizer


def said(index: int, text: str, finish: TokenFinish | None = None) -> GeneratedTokens:
    return GeneratedTokens(index, tuple(TOKENIZER.encode(text)), finish)


async def answer(engine: ScriptedEngine, tokenizer: Tokenizer = TOKENIZER, **fields: Any) -> Answer:
    messages = [{"role": "user", "content": "Hello"}]
    request = read_chat_request({"model": "demo", "messages": messages} | fields)
    return await completions(served(engine, tokenizer=tokenizer)).answer(request)


async def streamed(answer: Answer, options: StreamOptions | None = None) -> list[Chunk]:
    return [chunk async for chunk in answer.stream(options or StreamOptions())]


async def test_the_roles_come_first_in_order_whichever_choice_speaks_first() -> None:
    length = TokenFinish.LENGTH
    engine = ScriptedEngine([said(2, "c", length), said(0, "a", length), said(1, "b", length)])
    chunks = await streamed(await answer(engine, n=3))

    told = [(chunk.choices[0].index, chunk.choices[0].delta) for chunk in chunks]
    assert [(index, delta.role) for index, delta in told[:3]] == [
        (index, Role.ASSISTANT) for index in range(3)
    ]
    assert [(index, delta.content) for index, delta in told[3:] if delta.content] == [
        (2, "c"),
        (0, "a"),
        (1, "b"),
    ]


async def test_the_likeliest_tokens_are_told_with_the_text_of_theirs() -> None:
    tokens = tuple(TOKENIZER.encode("ab"))
    [x, y] = TOKENIZER.encode("xy")
    tops = (((x, -0.1), (tokens[0], -2.0)), ((tokens[1], -0.2), (y, -3.0)))
    piece = GeneratedTokens(0, tokens, TokenFinish.LENGTH, (-2.0, -0.2), tops)
    asked: dict[str, Any] = {"logprobs": True, "top_logprobs": 2}
    [choice] = (await (await answer(ScriptedEngine([piece]), **asked)).whole()).choices

    told = [
        [(top.text, top.logprob) for top in item.alternatives] for item in choice.logprobs or ()
    ]
    assert told == [[("x", -0.1), ("a", -2.0)], [("b", -0.2), ("y", -3.0)]]


async def test_a_text_completion_names_its_own_token_in_any_case() -> None:
    tokens = tuple(TOKENIZER.encode("ab"))
    [x] = TOKENIZER.encode("x")
    piece = GeneratedTokens(
        0, tokens, TokenFinish.LENGTH, (-2.0, -0.2), (((x, -0.1),), ((tokens[1], -0.2),))
    )
    request = read_text_request({"model": "demo", "prompt": "Hi", "logprobs": 1})
    [choice] = (
        await (await completions(served(ScriptedEngine([piece]))).answer(request)).whole()
    ).choices

    told = [[top.text for top in item.alternatives] for item in choice.logprobs or ()]
    assert told == [["x", "a"], ["b"]]


@pytest.mark.parametrize("fields", [{"prompt": "Hi"}, {}])
async def test_an_empty_answer_has_lists_of_log_probabilities_that_are_empty(
    fields: dict[str, Any],
) -> None:
    async def asked() -> Answer:
        engine = ScriptedEngine([said(0, "<|im_end|>", TokenFinish.STOP)])
        if not fields:
            return await answer(engine, logprobs=True)
        request = read_text_request({"model": "demo", "logprobs": 1, **fields})
        return await completions(served(engine)).answer(request)

    whole, first = await (await asked()).whole(), (await streamed(await asked()))[0]
    if fields:
        keys = {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
        bodies = [objects.text_completion(whole), objects.text_chunk(first, StreamOptions())]
        messages: list[Any] = [response.completion(whole), response.completion_chunk(first)]
    else:
        keys = {"content"}
        bodies = [objects.chat_completion(whole), objects.chat_chunk(first, StreamOptions())]
        messages = [response.chat_completion(whole), response.chat_chunk(first)]
    for body in bodies:
        [choice] = body["choices"]  # type: ignore[misc,union-attr]
        assert {key: choice["logprobs"][key] for key in keys} == {key: [] for key in keys}  # type: ignore[call-overload,index]
    assert all(message.choices[0].HasField("logprobs") for message in messages)


async def test_a_choice_that_ends_before_the_engine_does_is_given_up_alone() -> None:
    engine = ScriptedEngine(
        [said(0, "a END"), said(1, "b"), said(0, "never"), said(1, "c", TokenFinish.LENGTH)]
    )
    whole = await (await answer(engine, n=2, stop="END")).whole()

    assert [choice.message.text for choice in whole.choices] == ["a ", "bc"]
    assert engine.generation.ended == [0]
    assert whole.usage.completion_tokens == 5 + 2


async def test_a_choice_that_the_engine_ended_is_not_given_up() -> None:
    engine = ScriptedEngine([said(0, "a<|im_end|>", TokenFinish.STOP)])
    await (await answer(engine)).whole()

    assert engine.generation.ended == []
    assert engine.generation.left


async def test_a_stream_that_is_closed_leaves_the_engine() -> None:
    engine = ScriptedEngine([said(0, "a"), said(0, "b", TokenFinish.LENGTH)])
    chunks = (await answer(engine)).stream(StreamOptions())
    await anext(chunks)
    assert not engine.generation.left

    await chunks.aclose()

    assert engine.generation.left


async def test_tokens_of_images_count_once_for_all_choices_of_their_prompt() -> None:
    told = await answer(ScriptedEngine(), n=2)
    [text] = told.plan.prompts
    seen = Prompt(text.tokens, (PromptImage(0, 2, 7), PromptImage(2, 1, 7)))
    told.plan = dataclasses.replace(told.plan, prompts=[dataclasses.replace(text, prompt=seen)])

    assert (told.usage().prompt_tokens, told.usage().image_tokens) == (len("Hello"), 3)


async def test_usage_so_far_counts_what_was_said() -> None:
    engine = ScriptedEngine([said(0, "ab"), said(1, "c"), said(0, "d"), said(1, "e")])
    options = StreamOptions(include_usage=True, continuous_usage=True)
    told = await answer(engine, n=2)
    assert told.info.prompt_tokens == len("Hello")
    chunks = await streamed(told, options)

    counts = [chunk.usage.completion_tokens for chunk in chunks if chunk.usage]
    # Both roles before any text, four pieces, and the whole.
    assert counts == [0, 0, 2, 3, 4, 5, 5]
    assert {chunk.usage.prompt_tokens for chunk in chunks if chunk.usage} == {len("Hello")}
    assert chunks[-1].choices == ()


async def test_the_models_end_token_is_only_told_where_it_was_to_be_ignored() -> None:
    [end] = TOKENIZER.encode("<|im_end|>")
    for ignore, reason in ((False, None), (True, end)):
        engine = ScriptedEngine([said(0, "a<|im_end|>", TokenFinish.STOP)])
        asked = await answer(engine, stop_token_ids=[end], ignore_eos=ignore)
        [choice] = (await asked.whole()).choices
        assert (choice.message.text, choice.stop_reason) == ("a", reason)


async def test_a_model_that_is_gone_leaves_nothing_of_its_tokenizer() -> None:
    tokenizer = byte_tokenizer()
    tokens = tuple(tokenizer.encode("a"))
    piece = GeneratedTokens(0, tokens, TokenFinish.LENGTH, (-1.0,))
    [choice] = (
        await (await answer(ScriptedEngine([piece]), tokenizer, logprobs=True)).whole()
    ).choices
    assert choice.logprobs

    gone = weakref.ref(tokenizer)
    del tokenizer
    # A worker thread may hold its last work until it takes the next.
    await WORKERS.run(int)
    gc.collect()

    assert gone() is None
