"""What is wrong with one request, or with what the engine is told, is not felt by the others."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from ovchat.v1 import completion_pb2, completion_service_pb2_grpc, format_pb2
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.frames import LENGTH, encode
from ovchat_server.engine.contract.generation import TokenFinish
from ovchat_server.engine.contract.messages import Cancel, Start
from tests.engine.conftest import Watched, collect, request, spec
from tests.grpc.requests import go_on
from tests.sequence_requests import sequence_request
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.engine.client.connection import EngineConnection
    from tests.fuzz.conftest import Target

    Connection = EngineConnection[Any, Any, Any]

pytestmark = pytest.mark.slow

STREAMS, TOKENS = 16, 300
VOCABULARY = 259
PROMPTS = [chr(ord("A") + number) for number in range(STREAMS)]


@pytest.fixture
async def engine() -> AsyncIterator[Watched]:
    watched = Watched(spec(kv_blocks=256))
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched
    await watched.engine.close()


def _add_again(client: Connection) -> None:
    """Every id that is in use, for other sequences."""
    client.send(
        Start(tuple(sequence_request(number, (ord("a"),), 50) for number in range(STREAMS + 2)))
    )


def _add_tokens(*tokens: int) -> Callable[[Connection], None]:
    return lambda client: client.send(Start((sequence_request(10**6, tokens, 50),)))


def _cancel_strangers(client: Connection) -> None:
    for number in (0, -1, 10**9, 2**63 - 1):
        client.send(Cancel(number))


def _frames(*bodies: bytes) -> Callable[[Connection], None]:
    def write(client: Connection) -> None:
        for body in bodies:
            client._write(LENGTH.pack(len(body)) + body)

    return write


def _garbage() -> list[bytes]:
    chance = random.Random(1)
    whole = encode(Start((sequence_request(10**6, (1, 2, 3), 5),)))[LENGTH.size :]
    cut = [whole[:length] for length in range(len(whole))]
    flipped = [
        bytes(byte ^ (chance.randrange(256) * (chance.random() < 0.1)) for byte in whole)
        for _ in range(100)
    ]
    return [b"", b"\xc1", b"\xc0", b"\x93\x01\x02", b"\x81\xa4type\xa4stop", *cut, *flipped]


WRONG: dict[str, Callable[[Connection], None]] = {
    "ids in use": _add_again,
    "a token beyond the vocabulary": _add_tokens(VOCABULARY),
    "a token far beyond it": _add_tokens(2**62),
    "a token below it": _add_tokens(-1),
    "no tokens": _add_tokens(),
    "more tokens than the cache has": _add_tokens(*[1] * 10_000),
    "nobody cancelled": _cancel_strangers,
    "malformed frames": _frames(*_garbage()),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_what_the_engine_is_told(
    engine: Watched, wrong: Callable[[Connection], None]
) -> None:
    client = engine.engine.supervisor._connection
    assert client is not None
    streams = [engine.engine.generate([request(prompt, TOKENS)]) for prompt in PROMPTS]
    healthy = [asyncio.create_task(collect(stream)) for stream in streams]
    await engine.until_load(lambda load: load.running_requests >= STREAMS)

    wrong(client)

    for prompt, task in zip(PROMPTS, healthy, strict=True):
        assert await task == (successor_text(prompt, TOKENS), TokenFinish.LENGTH)
    await engine.idle()
    assert client is engine.engine.supervisor._connection


def _outputs(**fields: Any) -> completion_pb2.CreateCompletionRequest:
    return go_on("a", max_tokens=5, structured_outputs=format_pb2.StructuredOutputs(**fields))


TOKENS_BEYOND = completion_pb2.Prompt(token_ids=completion_pb2.TokenIds(values=[VOCABULARY]))
BAD_REQUESTS = [
    _outputs(grammar="root ::= missing"),
    _outputs(grammar='root ::= "a'),
    _outputs(regex="(" * 90),
    _outputs(regex="(a*)*b[z-a]"),
    _outputs(json='{"type": "strin"}'),
    _outputs(structural_tag='{"type": "structural_tag", "format": {"type": "regex"}}'),
    go_on("a", stop_token_ids=[VOCABULARY]),
    go_on("a", stop_token_ids=[2**32 - 1]),
    go_on(prompt=[TOKENS_BEYOND]),
    go_on("a", stop=[""]),
]
PATH = "/ovchat.v1.CompletionService/StreamCompletion"


async def _status(call: Any) -> grpc.StatusCode:
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_what_callers_send(target: Target) -> None:
    # The pool is small: what cannot run now waits its turn.
    address = f"127.0.0.1:{target.stack.grpc_port}"
    # All calls say that they are the same request.
    metadata = (("x-request-id", "one"),)
    async with grpc.aio.insecure_channel(address) as channel:
        texts = completion_service_pb2_grpc.CompletionServiceStub(channel)
        healthy = [
            asyncio.ensure_future(
                _joined(texts.StreamCompletion(go_on(prompt, max_tokens=100), metadata=metadata))
            )
            for prompt in PROMPTS
        ]
        bad = [texts.StreamCompletion(wrong, metadata=metadata) for wrong in BAD_REQUESTS]
        bad += [channel.unary_stream(PATH)(data, metadata=metadata) for data in _garbage()]

        refused = await asyncio.gather(*map(_status, bad))

        assert set(refused) == {grpc.StatusCode.INVALID_ARGUMENT}, refused
        for prompt, stream in zip(PROMPTS, healthy, strict=True):
            assert await stream == successor_text(prompt, 100)


async def _joined(call: Any) -> str:
    return "".join([choice.text async for chunk in call for choice in chunk.choices])
