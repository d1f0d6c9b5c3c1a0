"""What takes long is done in a thread, and what does not is not."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from google.api import httpbody_pb2

from ovchat_server.domain.chat import Message, Role
from ovchat_server.domain.completion import (
    Choice,
    Chunk,
    ChunkChoice,
    Completion,
    CompletionInfo,
    Delta,
    FinishReason,
    PromptToken,
    RankedToken,
    TokenLogprob,
    Usage,
)
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.generation import GenerationParams
from ovchat_server.domain.limits import DEFAULT_LIMITS, Limits
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.rest.request_body import BodyReader
from ovchat_server.rest.response_body import PIECE_BYTES, json_pieces
from ovchat_server.serving.codec_threads import (
    MAX_BYTES_IN_PLACE,
    MAX_TOKENS_IN_PLACE,
    CodecThreads,
)
from ovchat_server.serving.prompt_logprobs import (
    MAX_LOGPROBS_IN_PLACE,
    PromptLogprobReporter,
)
from ovchat_server.serving.render import RenderedPrompt
from ovchat_server.serving.worker_pool import WorkerPool
from tests.unit.prompt_tools import scores
from tests.unit.serving_tools import WORKERS
from tests.unit.text_tools import PieceDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.json_value import JsonObject

CODECS = CodecThreads(WorkerPool("read", 2), WORKERS)
MAX_BYTES, MAX_TOKENS, FEW = MAX_BYTES_IN_PLACE, MAX_TOKENS_IN_PLACE, MAX_LOGPROBS_IN_PLACE
INFO = CompletionInfo("cmpl-1", 1, "demo", "fp_1")
LOGPROB = TokenLogprob("a", -1, b"a", 0)
LISTED = PromptToken(RankedToken(1, "a", b"a"))


class Watched(PieceDecoder):
    """Knows where it was asked."""

    def __init__(self) -> None:
        super().__init__([b"a"])
        self.threads: set[int] = set()

    def decode(self, tokens: Sequence[int], *, special_tokens: bool = False) -> str:
        self.threads.add(threading.get_ident())
        return super().decode(tokens, special_tokens=special_tokens)

    def token_bytes(self, token: int) -> bytes:
        self.threads.add(threading.get_ident())
        return super().token_bytes(token)


@pytest.mark.parametrize(
    ("tokens", "alternatives", "in_thread"),
    [(FEW, 0, False), (FEW + 1, 0, True), (FEW // 2, 1, False), (FEW // 2 + 1, 1, True)],
)
async def test_many_tokens_of_a_prompt_are_told_of_in_a_thread(
    tokens: int,
    alternatives: int,
    in_thread: bool,  # noqa: FBT001
) -> None:
    decoder = Watched()
    params = GenerationParams(prompt_logprobs=0, top_logprobs=alternatives, echo_logprobs=True)
    prompt = RenderedPrompt(FieldPath(), Prompt((0,) * tokens), "a" * tokens)
    reporter = PromptLogprobReporter(decoder, params, WORKERS)
    told = await reporter.report(prompt, scores(tokens))

    assert len(told.listed or ()) == len(told.echoed or ()) == tokens
    assert (threading.get_ident() not in decoder.threads) is in_thread
    assert len(decoder.threads) == 1


def whole(echoed: int, listed: int) -> Completion:
    choice = Choice(
        0,
        Message(Role.ASSISTANT, ("a",)),
        FinishReason.STOP,
        logprobs=(LOGPROB,) * echoed,
        prompt_logprobs=(LISTED,) * listed,
    )
    return Completion(INFO, (choice,), Usage(1, 1))


@pytest.mark.parametrize(
    ("said", "in_thread"),
    [
        (whole(0, 0), False),
        (whole(MAX_TOKENS, 0), False),
        (whole(0, MAX_TOKENS), False),
        (whole(MAX_TOKENS, 1), True),
        (whole(0, MAX_TOKENS + 1), True),
        (Chunk(INFO, (ChunkChoice(0, Delta(), logprobs=(LOGPROB,)),)), False),
        (
            Chunk(INFO, (ChunkChoice(0, Delta(), logprobs=(LOGPROB,) * (MAX_TOKENS + 1)),)),
            True,
        ),
        (Chunk(INFO, ()), False),
    ],
)
async def test_what_tells_of_many_tokens_is_written_in_a_thread(
    said: Completion | Chunk,
    in_thread: bool,  # noqa: FBT001
) -> None:
    thread = await CODECS.write(lambda _: threading.get_ident(), said)
    assert (thread != threading.get_ident()) is in_thread


def test_the_pieces_of_a_body_are_encoded_at_once() -> None:
    value = {"a": "x" * PIECE_BYTES}
    pieces = json_pieces(value)
    value.clear()
    assert [len(piece.data) for piece in pieces] == [PIECE_BYTES, len('{"a":""}')]


LARGE = [(MAX_BYTES, False), (MAX_BYTES + 1, True)]


@pytest.mark.parametrize(("size", "in_thread"), LARGE)
async def test_a_large_body_is_read_in_a_thread(
    size: int,
    in_thread: bool,  # noqa: FBT001
) -> None:
    def reads(fields: JsonObject, *, strict: bool, limits: Limits) -> int:
        assert (fields, strict, limits) == ({"a": 1}, True, DEFAULT_LIMITS)
        return threading.get_ident()

    body = httpbody_pb2.HttpBody(data=b'{"a": 1}'.ljust(size))
    bodies = BodyReader(strict=True, limits=DEFAULT_LIMITS, threads=CODECS)
    thread = await bodies.read(reads, body)
    assert (thread != threading.get_ident()) is in_thread


@pytest.mark.parametrize(("size", "in_thread"), LARGE)
async def test_a_large_request_is_read_in_a_thread(
    size: int,
    in_thread: bool,  # noqa: FBT001
) -> None:
    thread = await CODECS.read(threading.get_ident, size)
    assert (thread != threading.get_ident()) is in_thread


async def test_large_requests_leave_threads_to_other_work() -> None:
    go_on = threading.Event()
    large = [asyncio.create_task(CODECS.read(go_on.wait, MAX_BYTES + 1)) for _ in range(99)]
    assert await WORKERS.run(threading.get_ident) != threading.get_ident()
    go_on.set()
    await asyncio.gather(*large)
