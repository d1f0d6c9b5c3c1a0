"""Changed logits: what of them the model can do, and what the engine is asked for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import ApiError, InvalidRequestError
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.engine.contract.generation import Sampling
from ovchat_server.engine.contract.messages import Capabilities
from ovchat_server.serving.bad_words import MAX_BANNED_TOKENS
from ovchat_server.tokenizer.huggingface import Tokenizer
from tests.unit.serving_tools import (
    READY,
    TOKENIZER,
    VOCABULARY,
    ScriptedEngine,
    completions,
    served,
)

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.serving.models import TextModel

BLIND = dataclasses.replace(READY, capabilities=Capabilities(sees_logits=False))
# Of each, a value that asks for something.
CHANGES: dict[str, Any] = {
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "logit_bias": {"5": 1},
    "allowed_token_ids": [5],
    "bad_words": ["x"],
}


async def asked(model: TextModel | None = None, **fields: Any) -> list[GenerationRequest]:
    """What the engine of the model is asked for by a chat; a text completion asks the same."""
    model = model or served()
    messages = [{"role": "user", "content": "Hi"}]
    chat = read_chat_request({"model": "demo", "messages": messages, "seed": 1, **fields})
    said = await completions(model).answer(chat)
    text = read_text_request({"model": "demo", "prompt": "Hi", "seed": 1, **fields})
    written = await completions(model).answer(text)
    assert [request.sampling for request in said.plan.requests] == [
        request.sampling for request in written.plan.requests
    ]
    return list(said.plan.requests)


async def sampling(model: TextModel | None = None, **fields: Any) -> Sampling:
    [request] = await asked(model, **fields)
    return request.sampling


async def refused(model: TextModel, **fields: Any) -> list[tuple[str, str]]:
    """The fields that both endpoints refuse, and the codes."""
    found = []
    for endpoint in (_chat, _text):
        with pytest.raises(InvalidRequestError) as caught:
            await endpoint(model, **fields)
        assert all(item.field in caught.value.message for item in caught.value.violations)
        found.append([(item.field, item.code) for item in caught.value.violations])
    assert found[0] == found[1]
    return found[0]


async def _chat(model: TextModel, **fields: Any) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    request = read_chat_request({"model": "demo", "messages": messages, **fields})
    await completions(model).answer(request)


async def _text(model: TextModel, **fields: Any) -> None:
    request = read_text_request({"model": "demo", "prompt": "Hi", **fields})
    await completions(model).answer(request)


async def test_the_engine_is_asked_for_all_of_it() -> None:
    last = VOCABULARY - 1
    one = await sampling(
        presence_penalty=0.5,
        frequency_penalty=-2,
        logit_bias={"7": -100, "8": 0, str(last): 1},
        allowed_token_ids=[7, last, 7],
        bad_words=["ab"],
    )
    assert (one.presence_penalty, one.frequency_penalty) == (0.5, -2)
    assert one.bias == ((7, -100), (last, 1))
    assert one.allowed == (7, last)
    assert one.banned == (tuple(TOKENIZER.encode("ab")),)


async def test_without_them_nothing_changes_logits() -> None:
    assert not (await sampling()).changes_logits
    assert not (
        await sampling(logit_bias={"5": 0}, bad_words=[], presence_penalty=0)
    ).changes_logits


@pytest.mark.parametrize("name", CHANGES)
async def test_each_of_them_changes_logits(name: str) -> None:
    assert (await sampling(**{name: CHANGES[name]})).changes_logits


async def test_every_choice_has_them() -> None:
    requests = await asked(n=3, **CHANGES)
    assert [request.sampling.bias for request in requests] == [((5, 1),)] * 3
    assert len({request.sampling.seed for request in requests}) == 3


@pytest.mark.parametrize("number", [0, 1, 20])
async def test_as_many_alternatives_are_asked_for(number: int) -> None:
    model = served()
    messages = [{"role": "user", "content": "Hi"}]
    chat = {"model": "demo", "messages": messages, "logprobs": True, "top_logprobs": number}
    text = {"model": "demo", "prompt": "Hi", "logprobs": number}
    said = await completions(model).answer(read_chat_request(chat))
    written = await completions(model).answer(read_text_request(text))
    for [request] in (said.plan.requests, written.plan.requests):
        assert (request.logprobs, request.top_logprobs) == (True, number)


async def test_a_search_changes_nothing() -> None:
    assert await sampling(best_of=2, temperature=1, presence_penalty=0) == Sampling()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"logit_bias": {"1": 1, str(VOCABULARY): 1}}, f"logit_bias.{VOCABULARY}"),
        # Also where it changes nothing.
        ({"logit_bias": {str(2**32 - 1): 0}}, f"logit_bias.{2**32 - 1}"),
        ({"allowed_token_ids": [1, VOCABULARY]}, "allowed_token_ids[1]"),
    ],
)
async def test_a_token_that_the_model_does_not_have_is_named(
    fields: dict[str, Any], path: str
) -> None:
    assert await refused(served(), **fields) == [(path, "invalid_value")]
    with pytest.raises(ApiError, match=f"vocabulary has {VOCABULARY} tokens"):
        await _chat(served(), **fields)


async def test_all_tokens_with_a_bias_that_the_model_does_not_have_are_named() -> None:
    bias = {str(token): 1 for token in (VOCABULARY + 7, 5, VOCABULARY)}

    wrong = [f"logit_bias.{token}" for token in (VOCABULARY + 7, VOCABULARY)]
    assert await refused(served(), logit_bias=bias) == [(path, "invalid_value") for path in wrong]


async def test_a_device_that_shows_no_logits_refuses_all_of_it_by_name() -> None:
    model = served(ScriptedEngine(status=BLIND))
    expected = [(name, "unsupported_parameter") for name in CHANGES]
    assert await refused(model, **CHANGES) == expected
    for name, value in CHANGES.items():
        assert await refused(model, **{name: value}) == [(name, "unsupported_parameter")]


@pytest.mark.parametrize("number", [1, 20])
async def test_a_device_that_shows_no_logits_has_no_alternatives(number: int) -> None:
    model = served(ScriptedEngine(status=BLIND))
    for endpoint, name, fields in (
        (_chat, "top_logprobs", {"logprobs": True, "top_logprobs": number}),
        (_text, "logprobs", {"logprobs": number}),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            await endpoint(model, **fields)
        assert (caught.value.param, caught.value.code) == (name, "unsupported_parameter")


async def test_a_device_that_shows_no_logits_serves_all_else() -> None:
    model = served(ScriptedEngine(status=BLIND))
    neutral = {"presence_penalty": 0, "logit_bias": {"5": 0}, "bad_words": []}
    one = await sampling(model, temperature=0.5, repetition_penalty=1.5, **neutral)
    assert one.temperature == 0.5
    await _chat(model, logprobs=True, top_logprobs=0)
    await _text(model, logprobs=0)


@pytest.mark.parametrize("sees", [True, False])
def test_a_model_tells_whether_it_can(sees: bool) -> None:  # noqa: FBT001
    status = dataclasses.replace(READY, capabilities=Capabilities(sees_logits=sees))
    assert served(ScriptedEngine(status=status)).status.sampling_control is sees


def spaced_tokenizer() -> Tokenizer:
    """Bytes, but "the" and " the" are tokens, as is " ab", and "ab" none."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a"), ("Ġa", "b")]
    words = [*alphabet, *("".join(pair) for pair in merges)]
    inner = tokenizers.Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return Tokenizer(inner)


SPACED = spaced_tokenizer()


def ids(*texts: str) -> tuple[int, ...]:
    return tuple(token for text in texts if (token := SPACED.token(text)) is not None)


async def banned(*words: str) -> tuple[tuple[int, ...], ...]:
    model = served(tokenizer=SPACED, vocabulary_size=SPACED.vocabulary_size)
    return (await sampling(model, bad_words=list(words))).banned


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # As a token of its own after a space, too.
        ("the", [ids("the"), ids("Ġthe")]),
        ("  the", [ids("the"), ids("Ġthe")]),
        # What ends with a space is another word.
        ("the ", [ids("the", "Ġ"), ids("Ġthe", "Ġ")]),
        # Fewer tokens with the space than without.
        ("ab", [ids("a", "b")]),
        # The space is a token by itself: the word's own tokens follow it.
        ("x", [ids("x")]),
        ("xthe", [ids("x", "the")]),
    ],
)
async def test_a_word_is_banned_with_and_without_a_space_before_it(
    word: str, expected: list[tuple[int, ...]]
) -> None:
    assert await banned(word) == tuple(expected)


async def test_what_several_words_have_in_common_is_told_once() -> None:
    assert await banned("the", "x", " the") == (ids("the"), ids("Ġthe"), ids("x"))


async def test_a_word_that_the_model_cannot_say_is_not_looked_for() -> None:
    # The tokenizer knows more than the model: the last are its merges.
    model = served(tokenizer=SPACED, vocabulary_size=SPACED.vocabulary_size - 5)
    assert (await sampling(model, bad_words=["the", "x"])).banned == (ids("x"),)


async def test_words_of_too_many_tokens_are_refused() -> None:
    fits = [chr(0x100 + number) * 32 for number in range(MAX_BANNED_TOKENS // 64)]
    assert len((await sampling(bad_words=fits)).banned) == len(fits)
    fields = {"bad_words": [*fits, "x"]}
    assert await refused(served(), **fields) == [("bad_words", "invalid_value")]
