"""A model that speculates, as callers meet it: other counts, the same answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from google.api import httpbody_pb2

from ovchat.v1 import rest_service_pb2_grpc
from ovchat_server.app import Server
from ovchat_server.kinds import text_generation
from ovchat_server.kinds.text_generation import generation_spec
from tests.engine.eager_worker import EAGER
from tests.grpc.conftest import Client, running
from tests.grpc.requests import ask, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.engine.contract.generation_spec import GenerationSpec
    from ovchat_server.settings import ModelSettings, Settings

QUOTING = "Repeat: sun moon river stone tree bird cloud rain"
ANSWER = "sun moon river stone tree bird cloud rain"


@pytest.fixture(scope="module")
async def speculating(
    make_settings: Callable[..., Settings], demo: ModelSettings
) -> AsyncIterator[Client]:
    """A server with a model that looks up, and one for which another drafts.

    Whatever is found is proposed: whether that is worth its time depends on the machine.
    """
    model = msgspec.structs.replace(demo, speculation="lookup", num_assistant_tokens=4)
    drafted = msgspec.structs.replace(
        demo, name="drafted", speculation="draft", draft_model=demo.path
    )

    def eager(*args: Any) -> GenerationSpec:
        return msgspec.structs.replace(generation_spec(*args), worker=EAGER)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_generation, "generation_spec", eager)
        async with running(Server(make_settings(model, drafted))) as client:
            yield client


async def test_quotations_come_several_tokens_a_step(
    make_settings: Callable[..., Settings], demo: ModelSettings
) -> None:
    """Of a server's first request: later ones have proposed what was measured to be worth it."""
    request = ask(QUOTING, temperature=0, n=3, num_assistant_tokens=12, max_ngram_size=2)

    model = msgspec.structs.replace(demo, speculation="lookup")
    async with running(Server(make_settings(model))) as client:
        answer = await client.chat.CreateChatCompletion(request)

    texts = {"".join(part.text for part in item.message.content) for item in answer.choices}
    assert texts == {ANSWER}
    details = answer.usage.completion_tokens_details
    assert 0 < details.accepted_prediction_tokens < answer.usage.completion_tokens


async def test_a_prediction_comes_several_tokens_a_step(speculating: Client) -> None:
    greeting = ask("Hi there!", temperature=0)
    without = await speculating.chat.CreateChatCompletion(greeting)
    greeting.prediction = text_of(without)
    predicted = await speculating.chat.CreateChatCompletion(greeting)

    assert text_of(predicted) == text_of(without)
    details = [item.usage.completion_tokens_details for item in (without, predicted)]
    assert [item.accepted_prediction_tokens > 0 for item in details] == [False, True]
    assert not any(item.rejected_prediction_tokens for item in details)


@pytest.mark.parametrize(
    ("name", "ignored"),
    [("demo", "assistant_confidence_threshold"), ("drafted", "max_ngram_size")],
)
async def test_rest_counts_and_names_what_does_nothing(
    speculating: Client, name: str, ignored: str
) -> None:
    stub = rest_service_pb2_grpc.RestServiceStub(speculating.channel)
    body = {
        "model": name,
        "messages": [{"role": "user", "content": QUOTING}],
        "temperature": 0,
        "assistant_confidence_threshold": 0.5,
        "max_ngram_size": 2,
    }
    data = httpbody_pb2.HttpBody(data=json.dumps(body).encode())

    call = stub.CreateChatCompletion(data)
    [answer] = [json.loads(piece.data) async for piece in call]

    assert answer["choices"][0]["message"]["content"] == ANSWER
    assert "accepted_prediction_tokens" in answer["usage"]["completion_tokens_details"]
    headers = dict(await call.initial_metadata())
    assert headers["x-ignored-parameters"] == ignored


@pytest.mark.parametrize(
    "fields",
    [
        {"num_assistant_tokens": 0, "temperature": 0},
        {"n": 2, "best_of": 3},
        {"num_assistant_tokens": 0, "temperature": 0, "model": "drafted"},
    ],
)
async def test_nothing_is_proposed_to_who_wants_none_nor_in_a_search(
    speculating: Client, fields: dict[str, Any]
) -> None:
    answer = await speculating.chat.CreateChatCompletion(ask(QUOTING, **fields))

    assert text_of(answer) == ANSWER
    details = answer.usage.completion_tokens_details
    assert (details.accepted_prediction_tokens, details.rejected_prediction_tokens) == (0, 0)
