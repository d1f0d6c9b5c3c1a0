"""What is checked of every parameter, the same on both doors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import json_format

from ovchat_server.domain import parameters
from ovchat_server.domain.anthropic.parameters import MESSAGES
from ovchat_server.domain.parameters import PROMPT_PARAMETERS
from ovchat_server.domain.pooling_parameters import EMBEDDINGS, RERANK, SCORE
from ovchat_server.domain.responses.parameters import RESPONSES
from ovchat_server.domain.tokenization_request import INPUTS
from tests.parameters import (
    anthropic_messages,
    endpoints,
    form,
    generation,
    length,
    logits,
    pooling,
    prompts,
    responses,
    values,
)
from tests.parameters.doors import RefusedError
from tests.parameters.messages_from_chats import MESSAGES_API
from tests.parameters.responses_from_chats import RESPONSES_API

if TYPE_CHECKING:
    from tests.parameters.case import Bound, Effect, Fields
    from tests.parameters.doors import Door

CHATS_AND_OTHERS: list[Effect] = [
    *length.EFFECTS,
    *generation.EFFECTS,
    *logits.EFFECTS,
    *prompts.EFFECTS,
    *endpoints.EFFECTS,
    *form.EFFECTS,
]
# Those whose requests are chats in other words.
APIS = {api.endpoint: api for api in (RESPONSES_API, MESSAGES_API)}
EFFECTS = [
    *CHATS_AND_OTHERS,
    *(
        effect
        for api in APIS.values()
        for effect in api.effects([*CHATS_AND_OTHERS, *generation.OF_ONE])
    ),
    *responses.EFFECTS,
    *anthropic_messages.EFFECTS,
    *pooling.EFFECTS,
]
KNOWN = {
    "chat": parameters.CHAT,
    "text": parameters.TEXT,
    "responses": RESPONSES,
    "messages": MESSAGES,
    "tokenize": parameters.TOKENIZE,
    "detokenize": parameters.DETOKENIZE,
    "embeddings": EMBEDDINGS,
    "rerank": RERANK,
    "score": SCORE,
}
STREAMED = ("chat", "text", *APIS)

Named = tuple[str, str]


def _names(endpoint: str) -> set[str]:
    known = KNOWN[endpoint]
    return {*known.served, *known.accepted, *known.refused}


SERVED: list[Named] = [
    (door, name) for door, known in KNOWN.items() for name in sorted(known.served)
]
ACCEPTED: list[Named] = [
    (door, name) for door, known in KNOWN.items() for name in sorted(known.accepted)
]
REFUSED: list[Named] = [
    (door, name) for door, known in KNOWN.items() for name in sorted(known.refused)
]

# What only another knows of endpoints that are alike.
UNKNOWN: list[Named] = sorted(
    {
        (door, name)
        for door, other in (
            ("chat", "text"),
            ("text", "chat"),
            ("chat", "responses"),
            ("responses", "chat"),
            ("chat", "messages"),
            ("messages", "chat"),
            ("embeddings", "rerank"),
            ("rerank", "embeddings"),
            ("rerank", "score"),
            ("score", "rerank"),
        )
        for name in _names(other) - _names(door)
    }
)

_OF_OTHERS = [*values.BOUNDS, *values.TOGETHER]
BOUNDS = [
    *_OF_OTHERS,
    *(bound for api in APIS.values() for bound in api.bounds(_OF_OTHERS)),
    *responses.BOUNDS,
    *anthropic_messages.BOUNDS,
    *pooling.BOUNDS,
]

# Where an endpoint needs other parameters than all, or takes other types.
BESIDE = {
    "text": values.BESIDE_IN_TEXTS,
    "responses": responses.BESIDE,
    "messages": anthropic_messages.BESIDE,
}
WRONG_TYPES = {
    "text": values.WRONG_TYPES_OF_TEXT,
    "responses": responses.WRONG_TYPES,
    "messages": anthropic_messages.WRONG_TYPES,
    "rerank": values.WRONG_TYPES_OF_RERANK,
    "score": values.WRONG_TYPES_OF_SCORE,
}


def _case(bound: Bound, value: Any) -> Any:
    return pytest.param(bound, value, marks=[pytest.mark.slow] if bound.heavy else [])


INSIDE = [_case(bound, value) for bound in BOUNDS for value in bound.accepted]
OUTSIDE = [_case(bound, value) for bound in BOUNDS for value in bound.refused]


def shown(item: Any) -> str:
    """A case's part in the name of its test."""
    return str(item)[:30]


def request_with(endpoint: str, name: str, value: Any) -> Fields:
    """A request with no other fault than the parameter may have."""
    base = values.SHORT[endpoint]
    if endpoint in BASES:
        base = BASES[endpoint](name, value)
    beside = {**values.BESIDE, **BESIDE.get(endpoint, {})}
    return {**base, **beside.get(name, {}), name: value}


def _tokenize_base(name: str, value: Any) -> Fields:
    """A text or a conversation, whichever the parameter belongs to."""
    if name in PROMPT_PARAMETERS:
        return endpoints.MESSAGES
    if name in INPUTS and value is not None:
        return {"model": endpoints.TEXT["model"]}
    return endpoints.TEXT


# Where it depends on the parameter what it can be beside.
BASES = {"tokenize": _tokenize_base, "score": pooling.score_base}


def wrong_types(endpoint: str, name: str) -> tuple[Any, ...]:
    """Values of types that a parameter does not take."""
    return {**values.WRONG_TYPES, **WRONG_TYPES.get(endpoint, {})}[name]


async def check_effect(door: Door, effect: Effect) -> None:
    """The answer changes as documented, and a stream says the same as a whole answer."""
    request = {**effect.base, **effect.given}
    without = await door.ask(effect.endpoint, effect.base)
    given = await door.ask(effect.endpoint, request)

    assert effect.shows(without, given), f"without: {without}, with: {given}"
    streams = not request.get("stream") and request.get("prompt_logprobs") is None
    if effect.endpoint in STREAMED and streams:
        streamed = await door.ask(effect.endpoint, {**request, "stream": True})
        assert streamed.choices == given.choices


async def check_refused(door: Door, endpoint: str, name: str, request: Fields, *codes: str) -> None:
    """A request is refused for a parameter: by the server, or because no message can say it."""
    with pytest.raises((RefusedError, json_format.ParseError)) as caught:
        await door.ask(endpoint, request)
    if isinstance(caught.value, RefusedError):
        assert caught.value.names(name), (request[name], caught.value)
        assert not codes or caught.value.code in {None, *codes}, (request[name], caught.value)


async def check_same_without(door: Door, endpoint: str, name: str, request: Fields) -> None:
    """The answer is the same as without the parameter."""
    absent = {key: value for key, value in request.items() if key != name}
    given, without = await door.ask(endpoint, request), await door.ask(endpoint, absent)
    assert getattr(given, "choices", given) == getattr(without, "choices", without)
