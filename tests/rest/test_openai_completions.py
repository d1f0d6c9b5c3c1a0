"""Text completions through OpenAI's SDK for Python."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.successor import successor_text

PROMPTS: list[Any] = ["a", ["a", "f"], [97, 98], [[40, 41], [50]]]


def joined(stream: openai.Stream[openai.types.Completion]) -> dict[int, str]:
    texts: dict[int, str] = {}
    for chunk in stream:
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + choice.text
    return texts


def test_completes_a_text(sdk: openai.OpenAI) -> None:
    answer = sdk.completions.create(model="successor", prompt="a", temperature=0)

    assert answer.object == "text_completion"
    assert answer.choices[0].text == successor_text("a", 16)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16


@pytest.mark.parametrize("prompt", PROMPTS, ids=["text", "texts", "tokens", "lists of tokens"])
def test_a_stream_joins_to_the_whole_answer(sdk: openai.OpenAI, prompt: Any) -> None:
    whole = sdk.completions.create(
        model="successor", prompt=prompt, max_tokens=5, temperature=0, n=2
    )
    stream = sdk.completions.create(
        model="successor", prompt=prompt, max_tokens=5, temperature=0, n=2, stream=True
    )

    several = isinstance(prompt[0], list) or prompt == ["a", "f"]
    assert [choice.index for choice in whole.choices] == list(range(4 if several else 2))
    assert joined(stream) == {choice.index: choice.text for choice in whole.choices}


def test_an_echo_begins_with_the_prompt(sdk: openai.OpenAI) -> None:
    whole = sdk.completions.create(
        model="successor", prompt="ha", max_tokens=3, temperature=0, echo=True
    )
    stream = sdk.completions.create(
        model="successor", prompt="ha", max_tokens=3, temperature=0, echo=True, stream=True
    )

    assert whole.choices[0].text == "habcd"
    assert joined(stream) == {0: "habcd"}


def test_log_probabilities_have_the_older_form(sdk: openai.OpenAI) -> None:
    answer = sdk.completions.create(
        model="successor", prompt="a", max_tokens=3, temperature=0, logprobs=1
    )

    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.tokens == ["b", "c", "d"]
    assert logprobs.text_offset == [0, 1, 2]
    assert logprobs.token_logprobs == pytest.approx([0, 0, 0], abs=1e-4)
    assert [list(top) for top in logprobs.top_logprobs or []] == [["b"], ["c"], ["d"]]


def test_streamed_log_probabilities_join_to_the_whole_ones(sdk: openai.OpenAI) -> None:
    request: dict[str, Any] = {"model": "demo", "prompt": "Anna", "max_tokens": 20, "seed": 1}

    whole = sdk.completions.create(**request, logprobs=0)
    stream = sdk.completions.create(**request, logprobs=0, stream=True)

    assert whole.choices[0].logprobs is not None
    parts = [choice.logprobs for chunk in stream for choice in chunk.choices if choice.logprobs]
    assert [t for part in parts for t in part.tokens or []] == whole.choices[0].logprobs.tokens
    assert [offset for part in parts for offset in part.text_offset or []] == whole.choices[
        0
    ].logprobs.text_offset


def test_a_stop_text_ends_it(sdk: openai.OpenAI) -> None:
    left_out, kept = [
        sdk.completions.create(
            model="successor",
            prompt="a",
            temperature=0,
            stop=["de", "zz"],
            extra_body={"include_stop_str_in_output": include},
        ).choices[0]
        for include in (False, True)
    ]

    assert (left_out.text, kept.text) == ("bc", "bcde")
    assert left_out.finish_reason == kept.finish_reason == "stop"


def test_usage_comes_last_where_asked_for(sdk: openai.OpenAI) -> None:
    *others, last = sdk.completions.create(
        model="successor",
        prompt=["a", "bc"],
        max_tokens=3,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )

    assert all(chunk.usage is None for chunk in others)
    assert last.choices == []
    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (3, 6)


def test_choices_are_announced_in_the_order_of_their_index(sdk: openai.OpenAI) -> None:
    chunks = sdk.completions.create(
        model="successor", prompt=["abc", "xyz"], n=4, max_tokens=3, stream=True
    )
    order = [choice.index for chunk in chunks for choice in chunk.choices]
    assert list(dict.fromkeys(order)) == list(range(8))


@pytest.mark.parametrize("max_tokens", [0, 2])
def test_texts_are_scored_by_an_echo_with_log_probabilities(
    sdk: openai.OpenAI, max_tokens: int
) -> None:
    """As evaluation harnesses do, to see how likely a model finds the second half of a text."""
    request: dict[str, Any] = {"prompt": ["abc", "aQ"], "max_tokens": max_tokens, "temperature": 0}
    whole = sdk.completions.create(model="successor", echo=True, logprobs=1, **request)

    scored = [choice.logprobs for choice in whole.choices]
    assert [((item and item.tokens) or [])[:3] for item in scored] == [
        [*"abc"],
        [*"aQR"][: 2 + max_tokens],
    ]
    for item, likely in zip(scored, ([True, True], [False]), strict=True):
        assert item is not None
        first, *numbers = item.token_logprobs or []
        assert first is None
        assert [number > -1 for number in numbers][: len(likely)] == likely
        assert item.text_offset == list(range(len(item.tokens or [])))
        assert (item.top_logprobs or [])[0] is None
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (5, 2 * max_tokens)
    stream = sdk.completions.create(
        model="successor", echo=True, logprobs=1, stream=True, **request
    )
    tokens: dict[int, list[str]] = {0: [], 1: []}
    for choice in (choice for chunk in stream for choice in chunk.choices):
        tokens[choice.index] += (choice.logprobs and choice.logprobs.tokens) or []
    assert [*tokens.values()] == [item and item.tokens for item in scored]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": [4294967295]}, "prompt[0]"),
        ({"prompt": [[97], [97, 259]]}, "prompt[1][1]"),
        ({"prompt": [[97, 259]]}, "prompt[0][1]"),
        ({"prompt": [97] * 5000}, "prompt"),
        ({"prompt": "abc", "extra_body": {"stop_token_ids": [259]}}, "stop_token_ids[0]"),
    ],
)
@pytest.mark.parametrize("max_tokens", [0, 1])
def test_what_the_model_cannot_take_is_refused_also_where_it_is_only_echoed(
    sdk: openai.OpenAI, fields: dict[str, Any], param: str, max_tokens: int
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.completions.create(model="successor", echo=True, max_tokens=max_tokens, **fields)
    assert caught.value.param == param
