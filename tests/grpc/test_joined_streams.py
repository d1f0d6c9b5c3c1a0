"""Joined streams are the whole answers: for any text, seed and end, on real engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat.v1 import chat_pb2, completion_pb2, response_pb2
from tests.grpc import test_responses as responses
from tests.grpc.joining import (
    Joined,
    assert_same,
    streamed_chat,
    streamed_text,
    whole_chat,
    whole_text,
)
from tests.grpc.requests import WEATHER, ask
from tests.grpc.test_chat import stream
from tests.successor import successor_text
from tests.usage import counted

if TYPE_CHECKING:
    from tests.grpc.conftest import Client

# One to four bytes, joined emoji, marks that combine.
PIECES = [
    "a",
    "Z",
    "~",
    " ",
    "\n",
    "é",
    "e\u0301",
    "ß",
    "東",
    "京",
    "🎉",
    "👩\u200d🚀",
    "🇫🇷",
    "\u0600",
]
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)
questions = st.one_of(
    texts,
    texts.map(lambda text: f"Repeat: {text}"),
    st.sampled_from(["Tell me a story.", "What is 17 + 25?", "What is the weather in Rome?"]),
)
ALTERNATIVES = st.sampled_from([0, 1, 5])
# What changes logits: of tokens that both models have, and of none most of the time.
changes = st.one_of(
    st.just({}),
    st.just({}),
    st.fixed_dictionaries(
        {},
        optional={
            "presence_penalty": st.sampled_from([-1.0, 0.5, 2.0]),
            "frequency_penalty": st.sampled_from([-0.5, 0.5, 2.0]),
            "logit_bias": st.dictionaries(st.integers(0, 258), st.floats(-100, 5), max_size=3),
            "allowed_token_ids": st.sampled_from([list(range(200)), list(range(30, 259))]),
            "bad_words": st.lists(st.sampled_from(["a", "Hello", "the", "é"]), max_size=3),
        },
    ),
)
Request = TypeVar(
    "Request", chat_pb2.CreateChatCompletionRequest, completion_pb2.CreateCompletionRequest
)


def streaming(request: Request) -> Request:
    """The same with its usage at the end, which only a stream may ask for."""
    copy = type(request)()
    copy.CopyFrom(request)
    copy.stream_options.include_usage = True
    return copy


@st.composite
def sampling(draw: st.DrawFn) -> dict[str, Any]:
    """Seeded; hot ones make bytes that are no text."""
    max_tokens = draw(st.integers(1, 32))
    return {
        "temperature": draw(st.sampled_from([0.0, 0.7, 1.0, 2.0])),
        "top_k": draw(st.sampled_from([0, 5, 40])),
        **draw(changes),
        "seed": draw(st.integers(-(2**63), 2**63 - 1)),
        "n": draw(st.integers(1, 3)),
        "max_tokens": max_tokens,
        "min_tokens": draw(st.sampled_from([0, 0, max_tokens // 2, max_tokens])),
        "ignore_eos": draw(st.booleans()),
    }


@st.composite
def ends(draw: st.DrawFn, client: Client, said: list[Joined]) -> dict[str, Any]:
    """Stops of all kinds: taken from what would be said without, and others."""
    text = draw(st.sampled_from(said)).text or "a"
    start = draw(st.integers(0, len(text) - 1))
    known = text[start : start + draw(st.integers(1, 4))]
    tokens = client.server._models.get("demo").files.tokenizer.encode(text)
    return {
        "stop": draw(st.lists(st.sampled_from([known, known[:1], "zz", "🎉"]), max_size=3)),
        "stop_token_ids": draw(st.lists(st.sampled_from(tokens), max_size=2)),
        "include_stop_str_in_output": draw(st.booleans()),
        "skip_special_tokens": draw(st.booleans()),
    }


@given(data=st.data())
async def test_a_chats_stream_joins_to_the_whole_answer(
    client: Client, data: st.DataObject
) -> None:
    fields = data.draw(sampling())
    question, tools = data.draw(questions), data.draw(st.sampled_from([[], [WEATHER]]))
    said = whole_chat(await client.chat.CreateChatCompletion(ask(question, tools=tools, **fields)))
    fields |= data.draw(ends(client, said))
    if data.draw(st.booleans()):
        fields |= {"logprobs": True, "top_logprobs": data.draw(ALTERNATIVES)}
    fields["thinking_token_budget"] = data.draw(st.sampled_from([-1, 0, 5]))
    request = ask(question, tools=tools, **fields)

    whole = await client.chat.CreateChatCompletion(request)
    *chunks, last = await stream(client, streaming(request))

    assert_same(streamed_chat(chunks), whole_chat(whole))
    assert counted(last.usage) == counted(whole.usage)
    assert len(whole.choices) == fields["n"]
    assert not last.choices


@given(data=st.data())
async def test_a_responses_events_join_to_the_whole_response(
    client: Client, data: st.DataObject
) -> None:
    fields = data.draw(sampling())
    del fields["n"]
    fields["max_output_tokens"] = fields.pop("max_tokens")
    tools = data.draw(st.sampled_from([[], [responses.FUNCTION], [responses.SHELL]]))
    summary = data.draw(st.sampled_from([None, "auto"]))
    request = responses.ask(
        data.draw(questions),
        tools=tools,
        reasoning=response_pb2.ResponseReasoning(summary=summary),
        **fields,
    )

    whole = await client.responses.CreateResponse(request)
    events = await responses.stream(client, request)

    ended = events[-1]
    told = getattr(ended, ended.WhichOneof("event") or "").response
    assert responses.lasting(told) == responses.lasting(whole)
    assert told.usage.total_tokens == whole.usage.total_tokens
    for index, item in enumerate(told.output):
        assert responses.joined(events, index) == responses.content(item)


@pytest.mark.slow
@given(data=st.data())
async def test_a_text_completions_stream_joins_to_the_whole_answer(
    client: Client, data: st.DataObject
) -> None:
    fields = data.draw(sampling())
    prompts = [
        completion_pb2.Prompt(text=text)
        for text in data.draw(st.lists(texts, min_size=1, max_size=2))
    ]
    fields |= {"model": "demo", "prompt": prompts, "echo": data.draw(st.booleans())}
    plain = completion_pb2.CreateCompletionRequest(**fields)
    said = whole_text(await client.texts.CreateCompletion(plain))
    fields |= data.draw(ends(client, said))
    if data.draw(st.booleans()):
        fields["logprobs"] = data.draw(ALTERNATIVES)
    request = completion_pb2.CreateCompletionRequest(
        **fields, return_token_ids=data.draw(st.booleans())
    )

    whole = await client.texts.CreateCompletion(request)
    *chunks, last = [chunk async for chunk in client.texts.StreamCompletion(streaming(request))]

    assert_same(streamed_text(chunks), whole_text(whole))
    assert counted(last.usage) == counted(whole.usage)
    assert len(whole.choices) == len(prompts) * fields["n"]


def expected(text: str, stops: list[str], min_tokens: int, *, include: bool) -> str:
    """The successor's answer (a token a character) up to the stop that is whole first."""
    for end in range(min_tokens + 1, len(text) + 1):
        whole = [stop for stop in stops if text[:end].endswith(stop)]
        if whole:
            return text[: end if include else end - max(map(len, whole))]
    return text


@given(data=st.data())
async def test_the_successor_says_what_is_known_up_to_its_stop(
    client: Client, data: st.DataObject
) -> None:
    prompt = data.draw(texts)
    max_tokens, include = data.draw(st.integers(1, 60)), data.draw(st.booleans())
    min_tokens = data.draw(st.integers(0, max_tokens))
    beyond = successor_text(prompt, 80)
    # Around the first character that may end the answer, and others that end with them.
    cuts = data.draw(st.lists(st.tuples(st.integers(-3, 8), st.integers(1, 5)), max_size=3))
    longer = [beyond[max(min_tokens + at, 0) :][:length] for at, length in cuts]
    stops = data.draw(st.permutations(longer + [stop[1:] for stop in longer if stop[1:]]))
    request = ask(
        prompt,
        "successor",
        temperature=0,
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        stop=stops,
        include_stop_str_in_output=include,
        n=3,
    )

    whole = whole_chat(await client.chat.CreateChatCompletion(request))
    chunks = await stream(client, request)

    text = expected(beyond[:max_tokens], stops, min_tokens, include=include)
    assert [choice.text for choice in whole] == 3 * [text]
    assert_same(streamed_chat(chunks), whole)


@pytest.mark.parametrize("words", ["🎉 café 🚀", "Zoë 東京 🎉", "日本 🚀 ñandú"])
async def test_emoji_cut_across_tokens_arrive_whole_and_their_bytes_are_the_texts(
    client: Client, words: str
) -> None:
    request = ask(f"Repeat: {words}", temperature=0, logprobs=True, n=3)

    chunks = await stream(client, request)

    for choice in streamed_chat(chunks):
        assert choice.text == words
        assert b"".join(data for _, data in choice.tokens) == words.encode()
        # An emoji's tokens are parts of it, each no text by itself.
        assert any(token == "\ufffd" for token, _ in choice.tokens)
    assert not any("\ufffd" in choice.delta.content for chunk in chunks for choice in chunk.choices)
