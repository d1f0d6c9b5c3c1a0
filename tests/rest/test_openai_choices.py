"""Several choices, their log probabilities, ends and usage through OpenAI's SDK for Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.questions import LETTER, STORY, SUM
from tests.usage import counted

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletion
    from openai.types.chat.chat_completion import Choice

SAMPLED: dict[str, Any] = {
    "model": "demo",
    "messages": STORY,
    "temperature": 1,
    "seed": 5,
    "n": 3,
    "logprobs": True,
    "top_logprobs": 1,
}
# The engine's rounding depends on what it runs at once.
ROUNDING = 1e-4


def texts(answer: ChatCompletion) -> list[str | None]:
    return [choice.message.content for choice in answer.choices]


def logprobs(choice: Choice) -> list[float]:
    assert choice.logprobs is not None
    return [token.logprob for token in choice.logprobs.content or []]


def tokens(choice: Choice) -> list[tuple[str, list[int] | None]]:
    assert choice.logprobs is not None
    return [(token.token, token.bytes) for token in choice.logprobs.content or []]


def test_every_choice_is_another_and_a_seed_gives_them_again(sdk: openai.OpenAI) -> None:
    first = sdk.chat.completions.create(**SAMPLED)
    again = sdk.chat.completions.create(**SAMPLED)

    assert [choice.index for choice in first.choices] == [0, 1, 2]
    assert len(set(texts(first))) == 3
    assert texts(first) == texts(again)
    assert counted(first.usage) == counted(again.usage)


@pytest.mark.slow
def test_the_stream_helper_accumulates_every_choice(sdk: openai.OpenAI) -> None:
    whole = sdk.chat.completions.create(**SAMPLED)

    # Its accumulator fails where choice 1 is there before choice 0.
    with sdk.chat.completions.stream(**SAMPLED, stream_options={"include_usage": True}) as stream:
        done = {event.type for event in stream}
        final = stream.get_final_completion()

    assert {"content.done", "logprobs.content.delta", "logprobs.content.done"} <= done
    assert texts(final) == texts(whole)
    assert counted(final.usage) == counted(whole.usage)
    for streamed, choice in zip(final.choices, whole.choices, strict=True):
        assert streamed.finish_reason == choice.finish_reason
        assert streamed.message.role == "assistant"
        assert tokens(streamed) == tokens(choice)
        assert logprobs(streamed) == pytest.approx(logprobs(choice), abs=ROUNDING)


def test_a_streams_choices_are_announced_in_order(sdk: openai.OpenAI) -> None:
    chunks = list(sdk.chat.completions.create(**SAMPLED, stream=True))

    seen: list[int] = []
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        if choice.index not in seen:
            seen.append(choice.index)
            assert choice.delta.role == "assistant"
        else:
            assert choice.delta.role is None
    assert seen == [0, 1, 2]


def test_log_probabilities_name_every_token_of_the_text(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(**SAMPLED)

    for choice in answer.choices:
        assert choice.logprobs is not None
        content = choice.logprobs.content or []
        assert "".join(token.token for token in content) == choice.message.content
        assert all(token.logprob <= 0 for token in content)
        for token in content:
            [top] = token.top_logprobs
            assert (top.token, top.logprob) == (token.token, token.logprob) or (
                top.token != token.token and top.logprob >= token.logprob
            )


def test_without_asking_there_are_no_log_probabilities(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(model="demo", messages=SUM, temperature=0)

    assert answer.choices[0].logprobs is None


@pytest.mark.parametrize(
    ("fields", "text", "finish", "reason"),
    [
        ({"stop": "de"}, "bc", "stop", "de"),
        ({"stop": ["zz", "fg", "g"]}, "bcde", "stop", "fg"),
        ({"stop": "de", "include_stop_str_in_output": True}, "bcde", "stop", "de"),
        ({"stop": ["c", "g"], "min_tokens": 3}, "bcdef", "stop", "g"),
        ({"stop": "zz"}, "bcdefghi", "length", None),
        ({"stop_token_ids": [101]}, "bcd", "stop", 101),
        ({"stop_token_ids": [101], "include_stop_str_in_output": True}, "bcde", "stop", 101),
    ],
)
def test_an_answer_ends_where_it_is_told_to(
    sdk: openai.OpenAI, fields: dict[str, Any], text: str, finish: str, reason: str | int | None
) -> None:
    request: dict[str, Any] = {
        "model": "successor",
        "messages": LETTER,
        "max_tokens": 8,
        "temperature": 0,
        "extra_body": fields,
    }

    whole = sdk.chat.completions.create(**request).choices[0]
    with sdk.chat.completions.stream(**request) as stream:
        # The accumulator drops what OpenAI does not know.
        last = [event.chunk.choices[0] for event in stream if event.type == "chunk"][-1]
        # For a final completion it refuses what ended at the most tokens.
        final = stream.current_completion_snapshot.choices[0]

    assert whole.message.content == final.message.content == text
    assert whole.finish_reason == final.finish_reason == finish
    assert whole.model_extra == last.model_extra == {"stop_reason": reason}


def test_usage_goes_along_where_asked_for(sdk: openai.OpenAI) -> None:
    request: dict[str, Any] = {
        "model": "successor",
        "messages": LETTER,
        "max_tokens": 4,
        "temperature": 0,
        "n": 3,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }

    chunks = list(sdk.chat.completions.create(**request, stream=True))

    counted = [chunk.usage.completion_tokens for chunk in chunks if chunk.usage]
    assert len(counted) == len(chunks)
    assert counted == sorted(counted)
    assert counted[-1] == 12
    assert chunks[-1].choices == []
