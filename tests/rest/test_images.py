"""Chats with images: OpenAI's SDKs must not notice the difference."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest

from tests.conftest import model_settings
from tests.figures import figure
from tests.hostile_images import PNG_HEAD, png_chunk, png_of_size
from tests.rest.conftest import Stack, running_stack
from tests.rest.programs import printed_by_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MODEL = "demo-vision"
TOKENS = 65
MIB = 1 << 20


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("seeing"), model_settings(MODEL)) as stack:
        yield stack


@pytest.fixture(scope="module")
def sdk(seeing: Stack) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{seeing.url}/v3", api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture
async def http(seeing: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"{seeing.url}/v3", timeout=None) as client:
        yield client


def part(file: bytes, kind: str = "png", **fields: Any) -> dict[str, Any]:
    url = f"data:image/{kind};base64,{base64.b64encode(file).decode()}"
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def asked(*parts: dict[str, Any]) -> list[Any]:
    """A conversation of one question."""
    return [{"role": "user", "content": [{"type": "text", "text": "What do you see?"}, *parts]}]


CIRCLE, SQUARE = figure("circle", "red"), figure("square", "blue", form="JPEG")
LARGE = figure("circle", "red", (1600, 1200), "WEBP")
# Messages, the answer, and how many images are in it.
ASKED = {
    "an image": (asked(part(CIRCLE)), "A red circle.", 1),
    "two images": (
        asked(part(CIRCLE), part(SQUARE, "jpeg")), "A red circle and a blue square.", 2,
    ),
    **{f"detail: {detail}": (asked(part(LARGE, "webp", detail=detail)), "A red circle.", 1)
       for detail in ("auto", "low", "high")},
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_the_sdk_for_python_is_answered(sdk: openai.OpenAI, name: str) -> None:
    messages, answer, images = ASKED[name]
    whole = sdk.chat.completions.create(model=MODEL, messages=messages, temperature=0)
    with sdk.chat.completions.stream(
        model=MODEL, messages=messages, temperature=0, stream_options={"include_usage": True}
    ) as stream:
        streamed = stream.get_final_completion()
    for told in (whole, streamed):
        assert told.choices[0].message.content == answer
        assert told.usage is not None
        assert told.usage.prompt_tokens_details is not None
        assert told.usage.prompt_tokens_details.image_tokens == TOKENS * images
        assert told.usage.prompt_tokens > TOKENS * images


@pytest.mark.slow
def test_the_sdk_for_node_is_answered(seeing: Stack) -> None:
    asked = json.dumps([messages for messages, _, _ in ASKED.values()])
    seen = printed_by_node("images.mjs", f"{seeing.url}/v3", asked)
    for told, (_, answer, images) in zip(seen, ASKED.values(), strict=True):
        for form in told.values():
            assert form["text"] == answer
            assert form["usage"]["prompt_tokens_details"]["image_tokens"] == TOKENS * images


# The file, and OpenAI's code and our words for what is wrong with it.
REFUSED = {
    "nothing": (b"", "empty_image_file", "is empty: it has no bytes."),
    "text": (
        b"What do you see?", "invalid_image_format",
        "is not an image in PNG, JPEG, WEBP, GIF or BMP format.",
    ),
    "cut off": (CIRCLE[:100], "image_parse_error", "is damaged: it cannot be decoded."),
    "a bomb": (png_of_size(20000, 20000), "image_too_large", "has more than 40000000 pixels."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_no_image_is_refused_by_name(
    http: httpx.AsyncClient, name: str, *, stream: bool
) -> None:
    file, code, complaint = REFUSED[name]
    field = "messages[0].content[1].image_url"
    answer = await http.post(
        "/chat/completions",
        json={"model": MODEL, "messages": asked(part(file), part(CIRCLE)), "stream": stream},
    )
    assert answer.status_code == 400
    assert answer.json() == {
        "error": {
            "message": f"{field} {complaint}",
            "type": "invalid_request_error",
            "param": field,
            "code": code,
        }
    }


async def test_requests_with_images_may_be_larger_than_others(http: httpx.AsyncClient) -> None:
    file = CIRCLE[:PNG_HEAD] + png_chunk(b"abCd", bytes(16 * MIB)) + CIRCLE[PNG_HEAD:]
    answer = await http.post(
        "/chat/completions",
        json={"model": MODEL, "messages": asked(part(file)), "temperature": 0},
    )
    assert answer.json()["choices"][0]["message"]["content"] == "A red circle."


async def test_it_says_that_it_takes_images(http: httpx.AsyncClient) -> None:
    [model] = (await http.get("/models")).json()["data"]
    assert model["input_modalities"] == ["text", "image"]


def test_the_responses_api_sees_an_image_and_remembers_it(sdk: openai.OpenAI) -> None:
    def asked(url: str) -> list[Any]:
        parts = [
            {"type": "input_text", "text": "What do you see?"},
            {"type": "input_image", "image_url": url, "detail": "auto"},
        ]
        return [{"role": "user", "content": parts}]

    fields: dict[str, Any] = {"model": MODEL, "temperature": 0}
    made = sdk.responses.create(input=asked(part(CIRCLE)["image_url"]["url"]), **fields)
    assert made.output_text == "A red circle."
    again = sdk.responses.create(input="What do you see?", previous_response_id=made.id, **fields)
    assert made.usage
    assert again.usage
    assert again.usage.input_tokens > made.usage.input_tokens
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(input=asked("data:image/png;base64,AAAA"), **fields)
    assert caught.value.param == "input[0].content[1].image_url"
