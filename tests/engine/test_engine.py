from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import TokenFinish
from tests.engine.conftest import Watched, collect, engine, request, spec
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(scope="module")
async def watched() -> AsyncIterator[Watched]:
    """One for all that leave it as it was."""
    async with engine() as watched:
        yield watched


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_tells_what_the_pool_allows_once_it_is_ready(watched: Watched) -> None:
    status = watched.engine.status

    # 64 blocks of 32 tokens, one of them and two tokens in reserve.
    assert status.context_length == 63 * 32 - 2
    assert status.load is not None
    assert status.load.total_kv_blocks == 64
    assert status.load.used_kv_blocks == 0


@pytest.mark.slow
async def test_measures_a_pool_given_in_gibibytes() -> None:
    watched = Watched(spec(kv_blocks=None, kv_cache_gb=1))
    watched.engine.start()
    try:
        await watched.until(ModelState.READY)
        load = watched.engine.status.load
        assert load is not None
        # One layer, keys and values of one head of 32 floats, 32 tokens a block.
        assert load.total_kv_blocks == (1 << 30) // (2 * 32 * 4 * 32)
    finally:
        await watched.engine.close()


async def test_generates_until_the_most_tokens(watched: Watched) -> None:
    assert await collect(watched.engine.generate([request("a", 30)])) == (
        successor_text("a", 30),
        TokenFinish.LENGTH,
    )


@pytest.mark.slow
async def test_a_pool_far_too_small_mixes_nothing_up(watched: Watched) -> None:
    # 24 sequences that want 16 blocks each, of 64.
    prompts = [chr(ord("A") + number) for number in range(24)]

    with watched.held():
        asked = [watched.engine.generate([request(prompt, 500)]) for prompt in prompts]
    answers = await asyncio.gather(*map(collect, asked))

    for prompt, (text, finish) in zip(prompts, answers, strict=True):
        assert text == successor_text(prompt, 500)
        assert finish is TokenFinish.LENGTH
    load = watched.engine.status.load
    assert load is not None
    assert load.preemptions > 0
    assert (load.running_requests, load.waiting_requests, load.used_kv_blocks) == (0, 0, 0)


async def test_a_slow_reader_gets_everything_in_fewer_pieces(watched: Watched) -> None:
    slow = watched.engine.generate([request("a", 400)])
    with slow:
        first = await anext(slow)
        # Another's whole answer goes by meanwhile.
        await collect(watched.engine.generate([request("b", 400)]))
        rest = [piece async for piece in slow]

    tokens = [*first.tokens, *(token for piece in rest for token in piece.tokens)]
    assert bytes(tokens).decode() == successor_text("a", 400)
    assert len(rest) < 100


async def test_close_leaves_no_process_and_no_descriptor() -> None:
    before = descriptors()
    watched = Watched(spec())
    watched.engine.start()
    await watched.until(ModelState.READY)
    pid = watched.pid
    running = watched.engine.generate([request("a", 1900)])
    await anext(running)

    await watched.engine.close()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(UnavailableError):
        await collect(running)
    assert descriptors() == before


@pytest.mark.parametrize(
    "turns", [0, *(pytest.param(turns, marks=pytest.mark.slow) for turns in range(1, 6))]
)
async def test_a_close_that_meets_a_death_restarts_nothing(turns: int) -> None:
    watched = Watched(spec())
    watched.engine.start()
    await watched.until(ModelState.READY)
    client = watched.engine.supervisor._connection
    assert client is not None
    closing = client.close
    entered = asyncio.Event()

    async def close() -> None:
        entered.set()
        await closing()

    client.close = close  # type: ignore[method-assign]
    watched.kill()
    await entered.wait()
    for _ in range(turns):
        await asyncio.sleep(0)

    await watched.engine.close()

    assert watched.engine.supervisor._connection is None
    assert watched.engine.supervisor._task is not None
    assert watched.engine.supervisor._task.done()


async def test_close_during_loading_leaves_no_process() -> None:
    watched = Watched(spec())
    watched.engine.start()
    while watched.engine.supervisor._connection is None:  # noqa: ASYNC110  the loop's next turn is the event
        await asyncio.sleep(0)
    pid = watched.pid

    await watched.engine.close()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
async def test_only_the_server_ends_an_engine(watched: Watched, number: signal.Signals) -> None:
    pid = watched.pid
    running = watched.engine.generate([request("a", 500)])
    await anext(running)

    os.kill(pid, number)

    tokens = [token async for piece in running for token in piece.tokens]
    assert bytes(tokens).decode() == successor_text("a", 500)[-len(tokens) :]
    assert watched.pid == pid


async def test_the_process_can_be_told_apart_in_ps(watched: Watched) -> None:
    title = Path(f"/proc/{watched.pid}/cmdline").read_bytes().rstrip(b"\0").decode()

    assert title == "ovchat engine successor"
