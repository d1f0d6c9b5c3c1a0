"""Errors must be those of OpenAI's SDK for Python, with what it reads from them."""

from __future__ import annotations

import openai
import pytest

from tests.rest.questions import HELLO, LETTER


def test_a_model_that_is_not_there(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as chat:
        sdk.chat.completions.create(model="nobody", messages=HELLO)
    with pytest.raises(openai.NotFoundError) as text:
        sdk.completions.create(model="nobody", prompt="a")
    with pytest.raises(openai.NotFoundError) as retrieved:
        sdk.models.retrieve("nobody")

    for error in (chat.value, text.value, retrieved.value):
        assert (error.code, error.param) == ("model_not_found", "model")
        assert error.request_id


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"temperature": 3}, "temperature", "invalid_value"),
        ({"n": 129}, "n", "invalid_value"),
        ({"top_logprobs": 1}, "top_logprobs", "invalid_value"),
        ({"presence_penalty": 3}, "presence_penalty", "invalid_value"),
        ({"modalities": ["audio"]}, "modalities", "unsupported_parameter"),
        ({"messages": [{"role": "nobody"}]}, "messages[0].role", "invalid_value"),
        (
            {"messages": [{"role": "user", "content": "x " * 100_000}]},
            "messages",
            "context_length_exceeded",
        ),
    ],
)
def test_a_parameter_that_is_wrong(
    sdk: openai.OpenAI,
    fields: dict[str, object],
    param: str,
    code: str,
    stream: bool,  # noqa: FBT001 - a case of the test
) -> None:
    request = {"model": "successor", "messages": LETTER, "stream": stream, **fields}

    with pytest.raises(openai.BadRequestError) as error:
        sdk.chat.completions.create(**request)  # type: ignore[call-overload]

    assert (error.value.param, error.value.code) == (param, code)
    assert error.value.type == "invalid_request_error"
    assert param in error.value.message


def test_a_text_completions_parameter_that_is_wrong(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as error:
        sdk.completions.create(model="successor", prompt="a", suffix="z")

    assert (error.value.param, error.value.code) == ("suffix", "unsupported_parameter")
