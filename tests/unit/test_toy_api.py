"""Another public API beside OpenAI's: a codec and a line that registers it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from google.api import httpbody_pb2
from grpc_health.v1 import health

from ovchat.v1 import rest_service_pb2
from ovchat_server.domain.errors import UnavailableError
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.endpoints import REST_SERVICE, endpoints, rest_apis, typed_services
from ovchat_server.engine.contract.generation import GeneratedTokens, TokenFinish
from ovchat_server.rest.door import RestDoor
from ovchat_server.rest.openai.codec import encode_error
from ovchat_server.rest.request_body import BodyReader
from ovchat_server.rpc.calls import Calls
from ovchat_server.rpc.server import Served, ServerOptions, create_server
from ovchat_server.serving.codec_threads import CodecThreads
from ovchat_server.serving.completions import Completions
from ovchat_server.serving.embeddings import TextEmbeddings
from ovchat_server.serving.model_registry import ModelRegistry
from ovchat_server.serving.pooling import Pooler
from ovchat_server.serving.replica import Replica
from ovchat_server.serving.reranking import Reranking
from ovchat_server.serving.responses import Responses
from ovchat_server.serving.services import Services
from ovchat_server.serving.stored_responses import StoredResponses
from ovchat_server.serving.tokenization import Tokenization
from ovchat_server.serving.versions import Versions
from tests.unit.serving_tools import (
    IMAGES,
    TOKENIZER,
    WORKERS,
    ScriptedEngine,
    ScriptedGeneration,
    served,
)
from tests.unit.toy_api import toy_api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TALK = "/toy.v1.ToyService/Talk"
CHAT = "/ovchat.v1.RestService/CreateChatCompletion"
# As Envoy marks a request that it has transcoded.
FROM_ENVOY = (("x-envoy-original-path", "/toy"),)


class Dying(ScriptedGeneration):
    """Ends with its engine."""

    async def __anext__(self) -> GeneratedTokens:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            raise UnavailableError("The engine is gone.") from None


class Held(ScriptedGeneration):
    """Says nothing before it is let go."""

    go_on: asyncio.Event

    async def __anext__(self) -> GeneratedTokens:
        await self.go_on.wait()
        return await super().__anext__()


class HeldAndDying(Held, Dying):
    """Says nothing, and then ends with its engine."""


class TurnedAway(Dying):
    """Waits in the queue for many silences, in vain."""

    def __init__(self) -> None:
        super().__init__([])
        self.admission.clear()

    async def __anext__(self) -> GeneratedTokens:
        for _ in range(100):
            await asyncio.sleep(0)
        return await super().__anext__()


def engine() -> ScriptedEngine:
    pieces = [("He", None), ("y", TokenFinish.LENGTH)]
    return ScriptedEngine(
        [GeneratedTokens(0, tuple(TOKENIZER.encode(text)), finish) for text, finish in pieces]
    )


def offered(engine: ScriptedEngine) -> Services:
    models = ModelRegistry([served(engine)])
    return Services(
        Completions(models, None),
        Responses(
            Completions(models, None),
            Tokenization(models, IMAGES, WORKERS),
            StoredResponses(0, 1, 1, WORKERS),
            DEFAULT_LIMITS,
            1000,
        ),
        Tokenization(models, IMAGES, WORKERS),
        TextEmbeddings(models, Pooler(WORKERS, None)),
        Reranking(models, Pooler(WORKERS, None)),
        models,
        Versions("", "", ""),
        CodecThreads(WORKERS, WORKERS),
        Replica(1, 1, list),
    )


@contextlib.asynccontextmanager
async def serving(engine: ScriptedEngine, silence: float = 15.0) -> AsyncIterator[grpc.aio.Channel]:
    """A server with the toy beside all other APIs."""
    services = offered(engine)
    served = endpoints(services, DEFAULT_LIMITS)
    rest = RestDoor(
        {**rest_apis(served), TALK: toy_api(services.completions, silence)},
        BodyReader(strict=False, limits=DEFAULT_LIMITS, threads=services.threads),
        default_errors=encode_error,
    )
    server = create_server(
        Served(typed_services(served), REST_SERVICE, rest, rest.error),
        health.aio.HealthServicer(),
        Calls(),
        ServerOptions(1 << 20, 10, None, None, DEFAULT_LIMITS),
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(None)


def call(channel: grpc.aio.Channel, method: str, fields: dict[str, Any]) -> Any:
    posted = channel.unary_stream(
        method,
        request_serializer=httpbody_pb2.HttpBody.SerializeToString,
        response_deserializer=httpbody_pb2.HttpBody.FromString,
    )
    return posted(httpbody_pb2.HttpBody(data=json.dumps(fields).encode()), metadata=FROM_ENVOY)


async def body(answer: Any) -> bytes:
    return b"".join([part.data async for part in answer])


def events(stream: bytes) -> list[tuple[str, int, str]]:
    found = []
    for text in stream.decode().removesuffix("\n\n").split("\n\n"):
        name, data = text.split("\n")
        value = json.loads(data.removeprefix("data: "))
        found.append((name.removeprefix("event: "), value["number"], value["text"]))
    return found


async def test_a_whole_answer_has_the_shape_of_its_api() -> None:
    async with serving(engine()) as channel:
        answer = await body(call(channel, TALK, {"model": "demo", "say": "Hello", "most": 3}))
    assert json.loads(answer) == {"said": "Hey"}


async def test_a_streams_events_are_numbered() -> None:
    async with serving(engine()) as channel:
        answer = await body(call(channel, TALK, {"model": "demo", "say": "Hello", "live": True}))
    assert events(answer) == [
        ("begin", 1, "demo"),
        ("word", 2, "He"),
        ("word", 3, "y"),
        ("end", 4, "3"),
    ]


async def test_every_answer_has_an_encoder_of_its_own() -> None:
    async with serving(engine()) as channel:
        await body(call(channel, TALK, {"model": "demo", "say": "Hello", "live": True}))
    async with serving(engine()) as channel:
        answer = await body(call(channel, TALK, {"model": "demo", "say": "Hello", "live": True}))
    assert events(answer)[0] == ("begin", 1, "demo")


async def test_a_stream_that_breaks_says_so_in_its_apis_words() -> None:
    broken = engine()
    broken.generation = Dying(broken.pieces[:1])
    async with serving(broken) as channel:
        answer = await body(call(channel, TALK, {"model": "demo", "say": "Hello", "live": True}))
    assert events(answer)[-1] == ("broken", 3, "The engine is gone.")


@pytest.mark.parametrize(
    ("kind", "end"),
    [(Held, "end"), (HeldAndDying, "broken")],
)
async def test_a_silent_stream_has_begun_and_then_its_errors_are_events(
    kind: type[Held], end: str
) -> None:
    silent = engine()
    silent.generation = held = kind(silent.pieces if kind is Held else [])
    held.go_on = asyncio.Event()
    async with serving(silent, silence=1e-3) as channel:
        answer = aiter(call(channel, TALK, {"model": "demo", "say": "Hello", "live": True}))
        first = [events((await anext(answer)).data) for _ in range(3)]
        held.go_on.set()
        rest = await body(answer)
    assert first == [[("begin", 1, "demo")], [("silence", 2, "")], [("silence", 3, "")]]
    assert events(rest)[-1][0] == end


async def test_who_waits_in_the_queue_in_vain_gets_a_status() -> None:
    full = engine()
    full.generation = TurnedAway()
    async with serving(full, silence=1e-6) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await body(call(channel, TALK, {"model": "demo", "say": "Hello", "live": True}))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("fields", "where", "trouble"),
    [
        ({"most": 0}, "most", "most must be between 1 and 4294967295, got 0."),
        # Found by the model's limits, not by the reader.
        (
            {"most": 100, "truncate_prompt_tokens": -1},
            "most",
            "most asks for 100 tokens besides the 1 of the prompt. ",
        ),
        ({"say": 5}, "say", "say must be a string or an array, not a number."),
    ],
)
async def test_errors_have_the_shape_and_the_names_of_their_api(
    fields: dict[str, Any], where: str, trouble: str
) -> None:
    async with serving(engine()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await body(call(channel, TALK, {"model": "demo", "say": "Hello"} | fields))
    trailers = dict(caught.value.trailing_metadata() or ())
    error = json.loads(trailers["x-ovchat-error"])
    assert (error["where"], trailers["x-ovchat-status"]) == (where, "418")
    assert error["trouble"].startswith(trouble)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_other_apis_stay_as_they_are() -> None:
    messages = [{"role": "user", "content": "Hello"}]
    async with serving(engine()) as channel:
        answer = await body(call(channel, CHAT, {"model": "demo", "messages": messages}))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await body(call(channel, CHAT, {"model": "demo", "max_tokens": 0}))
    assert json.loads(answer)["choices"][0]["message"]["content"] == "Hey"
    trailers = dict(caught.value.trailing_metadata() or ())
    assert json.loads(trailers["x-ovchat-error"])["error"]["param"] == "messages"


def test_every_rpc_of_the_contract_is_registered() -> None:
    apis = rest_apis(endpoints(offered(engine()), DEFAULT_LIMITS))
    service = rest_service_pb2.DESCRIPTOR.services_by_name["RestService"]
    assert set(apis) == {f"/{service.full_name}/{method.name}" for method in service.methods}
