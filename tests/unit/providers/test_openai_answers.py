"""Answers in OpenAI's API: those of another ovchat are read as they were meant."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ovchat_server.domain.completion import Chunk, ChunkChoice, Completion
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.providers.openai.kind import OpenAiKind
from ovchat_server.rest.openai import objects
from ovchat_server.rest.openai.codec import DONE, chat_encoder, text_encoder
from tests.unit.providers.answers import CHATS, INFO, PROMPTS, TEXTS, USAGE, count_of
from tests.unit.providers.joined import collected
from tests.unit.readers import read_chat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest

KIND = OpenAiKind("p", "max_tokens", vllm_parameters=True)


def _is_chat(request: ChatRequest | TextRequest) -> bool:
    return request.id_prefix == read_chat().id_prefix


def streamed(request: ChatRequest | TextRequest, chunks: Iterable[ChunkChoice]) -> list[bytes]:
    """The data of the events in which ovchat sends chunks."""
    make = chat_encoder if _is_chat(request) else text_encoder
    encoder: Any = make(request)  # type: ignore[operator]
    parts = [*(Chunk(INFO, (chunk,)) for chunk in chunks), Chunk(INFO, (), USAGE)]
    events = [*(encoder.chunk(part) for part in parts), DONE]
    return [event.removeprefix(b"data: ").strip() for event in events]


@pytest.mark.parametrize("name", [*CHATS, *TEXTS])
def test_what_ovchat_streams_is_read_chunk_by_chunk(name: str) -> None:
    request, chunks = (CHATS | TEXTS)[name]
    asked = dataclasses.replace(request, stream=StreamOptions(include_usage=True))
    reader = KIND.reader(asked)
    *events, done = streamed(asked, chunks)

    read = [chunk for event in events for chunk in reader.event(event)]

    assert read == chunks
    assert not reader.ended
    assert reader.complete
    assert not list(reader.event(done))
    assert (reader.ended, reader.usage) == (True, USAGE)


@pytest.mark.parametrize("name", [*CHATS, *TEXTS, *PROMPTS])
def test_whole_answers_of_ovchat_are_read_as_they_were_meant(name: str) -> None:
    request, said = (CHATS | TEXTS | PROMPTS)[name]
    chunks = [said] if isinstance(said, ChunkChoice) else said
    choices = collected(chunks, count_of(chunks))
    write = objects.chat_completion if _is_chat(request) else objects.text_completion
    body = msgspec.json.encode(write(Completion(INFO, tuple(choices), USAGE)))
    reader = KIND.reader(request)

    assert collected(reader.whole(body), len(choices)) == choices
    assert (reader.ended, reader.usage) == (True, USAGE)
