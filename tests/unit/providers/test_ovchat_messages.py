"""The kind `ovchat`: the other one reads what was asked, and is read as it was meant."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from ovchat.v1 import completion_pb2
from ovchat_server.domain.chat import ChatRequest, Message, Role, ToolChoice
from ovchat_server.domain.completion import Chunk, ChunkChoice, Completion
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.body import Body
from ovchat_server.providers.kind import BadAnswerError
from ovchat_server.providers.ovchat.answer import MessageReader
from ovchat_server.providers.ovchat.chat_message import chat_message
from ovchat_server.providers.ovchat.text_message import text_message
from ovchat_server.rpc import response
from ovchat_server.rpc.request import chat_request, text_request
from tests.unit.providers.answers import CHATS, INFO, PROMPTS, TEXTS, USAGE, count_of
from tests.unit.providers.cases import CASES, read
from tests.unit.providers.joined import collected
from tests.unit.readers import read_text

if TYPE_CHECKING:
    from ovchat_server.domain.text import TextRequest
    from tests.parameters.case import Fields

NOWHERE = FieldPath()


def sent(request: ChatRequest | TextRequest) -> ChatRequest | TextRequest:
    """A request as the other ovchat reads it."""
    body, streams = Body("p", "m", vllm_parameters=True), request.stream is not None
    if isinstance(request, ChatRequest):
        return chat_request(chat_message(body, request), stream=streams)
    return text_request(text_message(body, request), stream=streams)


def as_meant(request: ChatRequest | TextRequest) -> ChatRequest | TextRequest:
    """A request without the names of its fields, and what the other one need not know."""
    generation, stream = request.generation, request.stream
    constraint, beams = generation.constraint, generation.beams
    described = constraint and (constraint.described or None)
    generation = dataclasses.replace(
        generation,
        ending=dataclasses.replace(generation.ending, max_tokens_field=NOWHERE),
        beams=beams and dataclasses.replace(beams, field=NOWHERE),
        constraint=constraint
        and dataclasses.replace(constraint, field=NOWHERE, described=described),
    )
    stream = stream and dataclasses.replace(stream, include_usage=True)
    same = dataclasses.replace(request, model="m", stream=stream, generation=generation)
    if not isinstance(same, ChatRequest):
        return same
    choice = dataclasses.replace(same.tool_choice, older=False) if same.tools else ToolChoice()
    return dataclasses.replace(same, tool_choice=choice, call_tags=None)


@pytest.mark.parametrize(("endpoint", "fields"), CASES)
def test_another_ovchat_reads_the_same_request(endpoint: str, fields: Fields) -> None:
    request = read(endpoint, fields)

    assert as_meant(sent(request)) == as_meant(request)


@pytest.mark.parametrize("data", [b"\xff\xd8\xff\xe0", b"who knows"])
def test_images_that_are_bytes_stay_bytes(data: bytes) -> None:
    request = ChatRequest("m", (Message(Role.USER, (Image(data=data, low_detail=True),)),))

    assert sent(request) == request


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (ChatRequest("m", (Message(Role.USER, (Image("/a.png", field=NOWHERE / "x"),)),)), "x"),
        (ChatRequest("m", (), drops_oldest=True), "truncation"),
    ],
)
def test_what_the_contract_cannot_say_is_refused(request_: ChatRequest, field: str) -> None:
    with pytest.raises(InvalidRequestError, match="by the provider 'p'") as caught:
        sent(request_)
    assert [violation.field for violation in caught.value.violations] == [field]


def _said(request: ChatRequest | TextRequest, told: Chunk | Completion) -> Any:
    """The message in which ovchat answers."""
    whole, part = response.completion, response.completion_chunk
    if isinstance(request, ChatRequest):
        whole, part = response.chat_completion, response.chat_chunk  # type: ignore[assignment]
    return part(told) if isinstance(told, Chunk) else whole(told)


@pytest.mark.parametrize("name", [*CHATS, *TEXTS])
def test_what_ovchat_streams_is_read_chunk_by_chunk(name: str) -> None:
    request, chunks = (CHATS | TEXTS)[name]
    reader = MessageReader(request)

    messages = [_said(request, Chunk(INFO, (chunk,))) for chunk in chunks]
    read = [chunk for message in messages for chunk in reader.read(message)]

    assert read == chunks
    assert reader.ended
    assert not list(reader.read(_said(request, Chunk(INFO, (), USAGE))))
    assert reader.usage == USAGE


@pytest.mark.parametrize("name", [*CHATS, *TEXTS, *PROMPTS])
def test_whole_answers_of_ovchat_are_read_as_they_were_meant(name: str) -> None:
    request, said = (CHATS | TEXTS | PROMPTS)[name]
    chunks = [said] if isinstance(said, ChunkChoice) else said
    choices = collected(chunks, count_of(chunks))
    reader = MessageReader(request)

    message = _said(request, Completion(INFO, tuple(choices), USAGE))

    assert collected(reader.read(message), len(choices)) == choices
    assert (reader.ended, reader.usage) == (True, USAGE)


def test_a_choice_that_nobody_asked_for_is_no_answer() -> None:
    choice = completion_pb2.TextChoice(index=1)
    with pytest.raises(BadAnswerError, match="choice 1"):
        list(MessageReader(read_text()).read(completion_pb2.CompletionChunk(choices=[choice])))
