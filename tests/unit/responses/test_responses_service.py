"""Answering requests of the Responses API, keeping the responses and continuing them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from ovchat.v1 import rest_service_pb2
from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.content import Image, ImageError
from ovchat_server.domain.errors import InvalidRequestError, ResponseNotFoundError, UnavailableError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.identity import Identity
from ovchat_server.domain.limits import Limits
from ovchat_server.domain.responses.request import ResponsesRequest
from ovchat_server.engine.contract.generation import GeneratedTokens, TokenFinish
from ovchat_server.engine.contract.image_encoder import EncodedImage
from ovchat_server.rest.responses.stored import StoredResponsesInfo
from ovchat_server.serving.completions import Completions
from ovchat_server.serving.model_registry import ModelRegistry
from ovchat_server.serving.record import begin_record
from ovchat_server.serving.responses import Responses
from ovchat_server.serving.stored_responses import StoredResponses
from ovchat_server.serving.tokenization import Tokenization
from tests.unit.serving_tools import (
    IMAGES,
    TOKENIZER,
    WORKERS,
    ScriptedEngine,
    ScriptedGeneration,
    served,
)

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.serving.responses import ResponsesAnswer

PIXEL = "data:image/png;base64,AA=="
TEMPLATE = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}"
EACH_TIME = [("He", None), ("y", TokenFinish.LENGTH)]


class Talking(ScriptedEngine):
    """Says the same to each request."""

    def generate(self, *asked: Any) -> ScriptedGeneration:
        self.generation = ScriptedGeneration(self.pieces)
        return super().generate(*asked)

    @property
    def prompts(self) -> list[str]:
        """What it was asked."""
        return [TOKENIZER.decode(list(asked.prompt.tokens)) for asked in self.asked]


class Dying(ScriptedGeneration):
    """Ends with its engine."""

    async def __anext__(self) -> GeneratedTokens:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            raise UnavailableError("The engine is gone.") from None


class Sees:
    """Encodes every image as one token, as long as it works."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.works = True

    async def encode(self, file: bytes, **_: object) -> EncodedImage:
        self.seen.append(file)
        if not self.works:
            raise ImageError("is gone")
        return EncodedImage(1, 1, 1, "")


def engine() -> Talking:
    return Talking([GeneratedTokens(0, tuple(TOKENIZER.encode(x)), end) for x, end in EACH_TIME])


def responses(
    engine: ScriptedEngine,
    max_count: int = 10,
    images: Any = None,
    max_request_bytes: int = 1000,
    **limits: int,
) -> Responses:
    model = dataclasses.replace(served(engine, template=TEMPLATE), images=images)
    models = ModelRegistry([model])
    return Responses(
        Completions(models, None),
        Tokenization(models, IMAGES, WORKERS),
        StoredResponses(max_count, 1 << 20, 60, WORKERS),
        Limits(**limits),
        max_request_bytes,
    )


def request(*texts: str, **fields: Any) -> ResponsesRequest:
    messages = tuple(Message(Role.USER, (text,)) for text in texts or ("Hi",))
    return ResponsesRequest(ChatRequest("demo", messages), **fields)


async def read(answer: ResponsesAnswer, *, stream: bool) -> str:
    """Read an answer to its end; return its id."""
    if stream:
        chunks = [chunk async for chunk in answer.stream(StreamOptions(include_usage=True))]
        assert chunks[-1].usage is not None
    else:
        await answer.whole()
    return answer.info.id


@pytest.mark.parametrize("stream", [False, True])
async def test_a_complete_answer_is_kept_as_it_was_told(*, stream: bool) -> None:
    service = responses(engine())
    asked = request("Hi")
    answer = await service.answer(asked)
    name = await read(answer, stream=stream)

    kept = service.get(name)

    assert name.startswith("resp_")
    assert kept.request is asked
    assert (kept.completion.info, kept.completion.usage.completion_tokens) == (answer.info, 3)
    said = Message(Role.ASSISTANT, ("Hey",))
    assert kept.completion.choices[0].message == said
    assert kept.conversation == (*asked.chat.messages, said)


async def test_it_is_kept_before_the_reader_has_the_end() -> None:
    service = responses(engine())
    answer = await service.answer(request())
    async for chunk in answer.stream(StreamOptions(include_usage=True)):
        if chunk.ended is not None:
            assert service.get(answer.info.id)


@pytest.mark.parametrize("store", [False, True])
async def test_a_stream_has_no_usage_unless_it_is_asked_for(*, store: bool) -> None:
    answer = await responses(engine()).answer(request(store=store))
    assert all([chunk.usage is None async for chunk in answer.stream(StreamOptions())])


async def test_a_stream_that_is_left_frees_the_engine_and_is_not_kept() -> None:
    talking = engine()
    service = responses(talking)
    answer = await service.answer(request())
    stream = answer.stream(StreamOptions())
    await anext(stream)
    await stream.aclose()

    assert talking.generation.left
    with pytest.raises(ResponseNotFoundError):
        service.get(answer.info.id)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_fails_is_not_kept(*, stream: bool) -> None:
    broken = ScriptedEngine()
    broken.generation = Dying(engine().pieces[:1])
    service = responses(broken)
    answer = await service.answer(request())
    with pytest.raises(UnavailableError):
        await read(answer, stream=stream)
    with pytest.raises(ResponseNotFoundError):
        service.get(answer.info.id)


async def test_a_follow_up_has_the_conversation_but_not_the_instructions() -> None:
    talking = engine()
    service = responses(talking)
    first = await read(await service.answer(request("A", instructions="Be calm.")), stream=False)
    follow_up = request("B", instructions="Be glad.", previous_response_id=first)
    second = await read(await service.answer(follow_up), stream=True)
    await read(await service.answer(request("C", previous_response_id=second)), stream=False)
    assert talking.prompts == [
        "s:Be calm.;u:A;",
        "s:Be glad.;u:A;a:Hey;u:B;",
        "u:A;a:Hey;u:B;a:Hey;u:C;",
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("max_count", "store"), [(0, True), (10, False)], ids=["none are", "it is not to be"]
)
async def test_what_is_not_kept_cannot_be_continued(
    max_count: int, *, store: bool, stream: bool
) -> None:
    service = responses(engine(), max_count)
    name = await read(await service.answer(request(store=store)), stream=stream)
    with pytest.raises(ResponseNotFoundError) as caught:
        await service.answer(request(previous_response_id=name))
    error = caught.value
    assert (error.code, error.param) == ("previous_response_not_found", "previous_response_id")
    assert error.message.startswith(f"previous_response_id {name!r} was not found: ")
    assert ("this server keeps no responses" in error.message) == (max_count == 0)


async def test_another_key_finds_nothing() -> None:
    service = responses(engine())
    begin_record().caller = Identity(name="mine")
    answer = await service.answer(request())
    begin_record().caller = Identity(name="another")
    # It belongs to whom asked, whoever reads it.
    name = await read(answer, stream=False)
    for call in (service.get, service.delete):
        with pytest.raises(ResponseNotFoundError):
            call(name)
    with pytest.raises(ResponseNotFoundError):
        await service.answer(request(previous_response_id=name))
    begin_record().caller = Identity(name="mine")
    service.delete(name)
    with pytest.raises(ResponseNotFoundError) as caught:
        service.get(name)
    assert (caught.value.code, caught.value.param) == ("response_not_found", None)


async def test_a_conversation_that_goes_on_is_within_the_limit_of_messages() -> None:
    service = responses(engine(), max_messages=4)
    name = await read(await service.answer(request("A")), stream=False)
    await service.answer(request("B", "C", previous_response_id=name))
    with pytest.raises(InvalidRequestError) as caught:
        await service.answer(request("B", "C", "D", previous_response_id=name))
    assert caught.value.message == (
        "previous_response_id must lead to at most 4 messages with those of input, got 5."
    )


async def test_a_conversation_that_goes_on_is_within_the_limit_of_a_request() -> None:
    service = responses(engine(), max_request_bytes=14)
    name = await read(await service.answer(request("12345")), stream=False)
    await service.answer(request("123456", previous_response_id=name))
    with pytest.raises(InvalidRequestError) as caught:
        await service.answer(request("1234567", previous_response_id=name))
    assert caught.value.message == (
        "previous_response_id must lead to at most 14 bytes with those of input, got 15."
    )


async def test_input_items_are_listed_in_pages() -> None:
    service = responses(engine())
    items = [{"id": name} for name in "abc"]
    name = await read(await service.answer(request(input_items=items)), stream=False)
    info = StoredResponsesInfo(service)

    def page(**fields: Any) -> JsonObject:
        asked = rest_service_pb2.RestServiceListResponseInputItemsRequest(id=name, **fields)
        return info.input_items(asked)()

    assert page()["data"] == items[::-1]
    assert page(order="asc", limit=2)["data"] == items[:2]
    last = page(order="asc", limit=2, after="b")
    assert (last["data"], last["has_more"]) == (items[2:], False)
    for limit in (-1, 0, 101):
        with pytest.raises(InvalidRequestError, match="limit must be between 1 and 100, got"):
            page(limit=limit)


async def test_an_image_is_seen_again_and_an_error_names_what_brings_it() -> None:
    talking = engine()
    sees = Sees()
    service = responses(talking, images=sees)
    image = Image(PIXEL, field=FieldPath.of("messages", 0))
    chat = ChatRequest("demo", (Message(Role.USER, ("A", image)),))
    name = await read(await service.answer(ResponsesRequest(chat)), stream=False)
    follow_up = request("B", previous_response_id=name)
    await read(await service.answer(follow_up), stream=False)
    sees.works = False
    with pytest.raises(InvalidRequestError) as caught:
        await service.answer(follow_up)

    assert sees.seen == [b"\x00"] * 3
    assert [len(asked.prompt.images) for asked in talking.asked] == [1, 1]
    assert caught.value.message == "previous_response_id is gone."
