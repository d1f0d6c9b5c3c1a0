"""Paths that name a provider: what they serve of this server's models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest

from tests.rest.questions import LETTER
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.rest.conftest import Stack

MODEL = "openvino/successor"
CHAT = "/openvino/v1/chat/completions"
TEXT = successor_text("a", 5)


@pytest.fixture(scope="module")
def openvino(stack: Stack) -> Iterator[openai.OpenAI]:
    url = f"{stack.url}/openvino/v1"
    with openai.OpenAI(base_url=url, api_key="unused", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("model", ["successor", MODEL])
def test_a_chat_names_its_model_with_or_without_the_provider(
    openvino: openai.OpenAI, model: str
) -> None:
    whole = openvino.chat.completions.create(
        model=model, messages=LETTER, max_tokens=5, temperature=0
    )
    stream = [
        *openvino.chat.completions.create(
            model=model, messages=LETTER, max_tokens=5, temperature=0, stream=True
        )
    ]

    assert (whole.model, whole.choices[0].message.content) == (MODEL, TEXT)
    assert {chunk.model for chunk in stream} == {MODEL}
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == TEXT


def test_so_do_texts_and_responses(openvino: openai.OpenAI) -> None:
    text = openvino.completions.create(model="successor", prompt="a", max_tokens=5, temperature=0)
    response = openvino.responses.create(
        model="successor", input="a", max_output_tokens=5, temperature=0
    )

    assert (text.model, text.choices[0].text) == (MODEL, TEXT)
    assert (response.model, response.output_text) == (MODEL, TEXT)


def test_the_models_of_a_provider_are_listed_and_got(openvino: openai.OpenAI) -> None:
    assert [model.id for model in openvino.models.list()] == ["demo", "successor"]
    assert openvino.models.retrieve("successor").id == "successor"
    assert openvino.models.retrieve(MODEL).id == "successor"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_unknown_provider_is_not_found(http: httpx.AsyncClient, method: str) -> None:
    path = {"GET": "/nobody/v1/models", "POST": "/nobody/v1/chat/completions"}[method]
    response = await http.request(method, path, json={"model": "successor"})

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (404, "model_not_found")
    assert "'nobody'" in error["message"]
    assert "Providers: openvino." in error["message"]


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        (CHAT, {"model": "nobody"}, (404, "model_not_found", "model")),
        (CHAT, {"model": "Qwen/Qwen3-4B"}, (404, "model_not_found", "model")),
        (CHAT, {"model": None}, (400, "missing_required_parameter", "model")),
        (CHAT, {"model": 3}, (400, "invalid_type", "model")),
        (CHAT, {"temperature": 9}, (400, "invalid_value", "temperature")),
        ("/openvino/v1/responses", {"input": 3}, (400, "invalid_type", "input")),
    ],
)
async def test_errors_name_fields_as_usual(
    http: httpx.AsyncClient, path: str, change: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    body = {"model": "successor", "messages": LETTER, **change}
    response = await http.post(path, json=body)

    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == expected
