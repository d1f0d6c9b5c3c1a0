"""Engines that die, hang or are asked too much, and what their requests notice of it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.errors import InternalError, OverloadedError, UnavailableError
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client import supervisor
from ovchat_server.engine.client.connection import EngineConnection
from ovchat_server.engine.client.in_flight_requests import MAX_CRASHES
from ovchat_server.engine.contract.engine import Caller
from ovchat_server.engine.contract.generation import (
    BeamSearch,
    GenerationRequest,
    Sampling,
    TokenFinish,
)
from ovchat_server.engine.contract.prompt import Prompt
from tests.conftest import ROOT
from tests.engine.conftest import Watched, collect, collect_all, engine, request
from tests.successor import successor_text

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_engine import GenerationStream
    from ovchat_server.engine.contract.generation_messages import SequenceOutput
    from ovchat_server.engine.contract.messages import Report

ANY_LETTERS = '{"type":"structural_tag","format":{"type":"regex","pattern":"[a-z]{100}"}}'

# Seconds that no step and no start takes: the clock is put forward.
TIMEOUT = 60.0
Later = Callable[[float], None]
Look = Callable[[], Coroutine[None, None, bool]]


@pytest.fixture
async def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Put the event loop's clock forward, for all that wait: less than a test may take."""
    loop = asyncio.get_running_loop()
    time, passed = loop.time, 0.0

    def put_forward(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    monkeypatch.setattr(loop, "time", lambda: time() + passed)
    return put_forward


@pytest.fixture
def look(later: Later, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Let a quarter of the time pass in which a step must end; whether the engine hangs then."""
    found: asyncio.Queue[bool] = asyncio.Queue()
    hangs = EngineConnection.hangs

    def noted(connection: EngineConnection[Any, Any, Any], seconds: float) -> bool:
        found.put_nowait(hanging := hangs(connection, seconds))
        return hanging

    async def passed() -> bool:
        later(TIMEOUT / 4)
        return await found.get()

    monkeypatch.setattr(EngineConnection, "hangs", noted)
    return passed


async def test_requests_go_on_where_their_engine_died() -> None:
    starts = "abcdefgh"
    # There is room for all of them at once, however far they have come.
    async with engine(kv_blocks=128) as watched:
        streams = [watched.engine.generate([request(start, 400)]) for start in starts]
        answers = [asyncio.create_task(collect(stream)) for stream in streams]
        for _ in range(2):
            await watched.until_load(lambda load: load.running_requests == len(starts))
            watched.kill()
            await watched.until(ModelState.UNAVAILABLE)
            await watched.until_reason("was killed")
            assert watched.engine.status.load is None
            with pytest.raises(UnavailableError) as caught:
                watched.engine.generate([request("a", 5)])
            assert caught.value.retry_after == 1
            await watched.until(ModelState.READY)

        assert await asyncio.gather(*answers) == [
            (successor_text(start, 400), TokenFinish.LENGTH) for start in starts
        ]
        await watched.idle()


@pytest.mark.slow
async def test_choices_searches_and_texts_that_were_read_go_on(watched: Watched) -> None:
    choices = [request("a", 300, sampling=Sampling(seed=seed)) for seed in range(3)]
    several = watched.engine.generate(choices)
    search = watched.engine.generate([request("b", 300, beam_search=BeamSearch(2, 2))])
    first = await anext(several)

    watched.kill()
    read, found = await asyncio.gather(collect_all(several), collect_all(search))

    read[first.index].tokens[:0] = first.tokens
    assert [sequence.text for sequence in read] == [successor_text("a", 300)] * 3
    assert found[0].text == successor_text("b", 300)


@pytest.mark.slow
async def test_a_grammar_is_followed_to_its_end_where_its_engine_died() -> None:
    async with engine(path="models/demo", name="demo", end_tokens=()) as watched:
        sampling = Sampling(temperature=1, seed=3)
        asked = GenerationRequest(
            Prompt((1, 2, 3)), 700, sampling, grammar=ANY_LETTERS, self_terminating=True
        )
        undisturbed = await tokens(watched.engine.generate([asked]))
        disturbed = watched.engine.generate([asked])
        first = await anext(disturbed)

        watched.kill()

        assert [*first.tokens, *await tokens(disturbed)] == undisturbed


@pytest.mark.slow
async def test_two_that_follow_grammars_go_on_where_their_engine_died() -> None:
    async with engine(path="models/demo", name="demo", end_tokens=()) as watched:
        sampled = [Sampling(temperature=1, seed=seed) for seed in (3, 4)]
        asked = [
            GenerationRequest(
                Prompt((1, 2, 3)), 700, sampling, grammar=ANY_LETTERS, self_terminating=True
            )
            for sampling in sampled
        ]
        streams = [watched.engine.generate([item]) for item in asked]
        for stream in streams:
            await anext(stream)

        watched.kill()

        for stream in streams:
            assert await tokens(stream)


async def test_an_engine_that_hangs_is_ended_and_its_requests_go_on(look: Look) -> None:
    async with engine(step_timeout=TIMEOUT) as watched:
        stream = watched.engine.generate([request("a", 300)])
        first = await anext(stream)
        watched.stop()
        # It owes an answer to this, whatever it had said of the other one.
        asked = watched.engine.generate([request("b", 3)])

        while not await look():
            pass

        rest, _ = await collect(stream)
        assert bytes(first.tokens).decode() + rest == successor_text("a", 300)
        assert await collect(asked) == ("cde", TokenFinish.LENGTH)


@pytest.mark.slow
async def test_an_engine_that_hangs_is_found_however_many_ask_and_leave(look: Look) -> None:
    async with engine(step_timeout=TIMEOUT) as watched:
        pid = watched.pid
        watched.stop()
        found = False
        while not found:
            with watched.engine.generate([request("b", 3)]):
                found = await look()

        await watched.until(ModelState.UNAVAILABLE)
        await watched.until(ModelState.READY)
        assert watched.pid != pid
        assert await collect(watched.engine.generate([request("c", 3)])) == (
            "def",
            TokenFinish.LENGTH,
        )


@pytest.mark.slow
async def test_an_engine_that_hangs_while_it_loads_is_ended_and_its_requests_go_on(
    later: Later,
) -> None:
    async with engine(load_timeout=TIMEOUT) as watched:
        stream = watched.engine.generate([request("a", 900)])
        first = await anext(stream)
        supervisor = watched.engine.supervisor
        watched.kill()
        await watched.until(ModelState.UNAVAILABLE)
        await watched.until(ModelState.LOADING)
        while not supervisor._connection:  # noqa: ASYNC110  it has no event
            await asyncio.sleep(0)
        watched.stop()

        later(TIMEOUT + 1)
        await watched.until_reason(f"not loaded in {TIMEOUT:g} s")

        rest, _ = await collect(stream)
        assert rest == successor_text("a", 900)[len(first.tokens) :]


@pytest.mark.slow
async def test_what_waits_in_vain_is_not_counted_any_more(watched: Watched) -> None:
    grammar = ANY_LETTERS.replace("100", "99")
    for _ in range(2):
        with watched.engine.generate([request("a", 800, grammar=grammar)] * 20):
            await watched.until_load(lambda load: load.running_requests > 0)
    await watched.idle()


async def test_an_engine_that_is_not_asked_anything_does_not_hang(look: Look) -> None:
    async with engine(step_timeout=TIMEOUT) as watched:
        pid = watched.pid
        await collect(watched.engine.generate([request("a", 3)]))
        await watched.idle()

        assert not any([await look() for _ in range(8)])

        assert await collect(watched.engine.generate([request("a", 3)]))
        assert watched.pid == pid


async def test_who_makes_engines_die_fails_alone(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = [watched.engine.generate([request(start, 400)]) for start in "abc"]
    bystanders = [asyncio.create_task(collect(stream)) for stream in beside]
    deadly = watched.engine.generate([request("z", 400)])
    in_flight = watched.engine.supervisor.in_flight
    culprit = max(in_flight._in_flight)
    await anext(deadly)
    isolate, deliver = in_flight.isolate, in_flight.deliver
    deaths = 0

    def crash(identifier: int | None) -> None:
        nonlocal deaths
        if in_flight._isolated == culprit:
            # A step that crashes tells nothing more.
            return
        isolate(identifier)
        if identifier == culprit:
            deaths += 1
            watched.kill()

    def deliver_of_the_living(report: Report[SequenceOutput]) -> None:
        if in_flight._isolated != culprit:
            deliver(report)

    monkeypatch.setattr(in_flight, "isolate", crash)
    monkeypatch.setattr(in_flight, "deliver", deliver_of_the_living)
    watched.kill()

    with pytest.raises(InternalError, match="several times"):
        await collect(deadly)
    assert deaths == MAX_CRASHES
    assert [text for text, _ in await asyncio.gather(*bystanders)] == [
        successor_text(start, 400) for start in "abc"
    ]
    await watched.idle()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of the model, for an engine that is to lose it."""
    return Path(shutil.copytree(ROOT / "models/successor", tmp_path / "model"))


@pytest.mark.slow
async def test_requests_whose_engine_never_comes_back_are_told(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "MAX_FAILED_STARTS", 2)
    monkeypatch.setattr(supervisor, "RESTART_TIMEOUT", 0)
    async with engine(path=str(model)) as watched:
        stream = watched.engine.generate([request("a", 900)])
        await anext(stream)
        shutil.rmtree(model)
        model.mkdir()

        watched.kill()

        with pytest.raises(UnavailableError):
            await collect(stream)


@pytest.mark.slow
async def test_requests_outlive_several_starts_that_come_to_nothing(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "MAX_FAILED_STARTS", 2)
    # However long a busy machine takes for them.
    monkeypatch.setattr(supervisor, "RESTART_TIMEOUT", 1000)
    away = model.with_name("away")
    async with engine(path=str(model)) as watched:
        stream = watched.engine.generate([request("a", 900)])
        first = await anext(stream)
        model.rename(away)
        watched.kill()
        for _ in range(supervisor.MAX_FAILED_STARTS):
            await watched.until(ModelState.UNAVAILABLE)
            await watched.until(ModelState.LOADING)

        away.rename(model)

        rest, finish = await collect(stream)
        assert rest == successor_text("a", 900)[len(first.tokens) :]
        assert finish is TokenFinish.LENGTH


@pytest.mark.slow
async def test_what_was_cancelled_while_the_engine_was_away_does_not_come_back(
    watched: Watched,
) -> None:
    with watched.engine.generate([request("a", 1900)]) as cancelled:
        await anext(cancelled)
        watched.kill()
        await watched.until(ModelState.UNAVAILABLE)
    await watched.until(ModelState.READY)

    assert await collect(watched.engine.generate([request("b", 3)])) == ("cde", TokenFinish.LENGTH)
    await watched.idle()


def large(start: str) -> GenerationRequest:
    """A request besides which no other has a place in 8 blocks."""
    return request("-" * 140 + start, 60)


async def test_a_queue_that_is_full_refuses_at_once_and_says_when_to_come_back() -> None:
    async with engine(kv_blocks=8, max_queue=2) as watched:
        running = watched.engine.generate([large("a")])
        await anext(running)
        with watched.held():
            waiting = [watched.engine.generate([large(start)]) for start in "bc"]
            with pytest.raises(OverloadedError) as caught:
                watched.engine.generate([large("d")])

        assert caught.value.retry_after is not None
        assert 1 <= caught.value.retry_after <= 60
        with running:
            texts = [(await collect(one))[0] for one in waiting]
        assert texts == [successor_text(start, 60) for start in "bc"]
        assert await collect(watched.engine.generate([large("d")]))


@pytest.mark.slow
async def test_who_waits_too_long_is_told() -> None:
    async with engine(kv_blocks=8) as watched:
        with watched.engine.generate([large("a")]) as running:
            await anext(running)
            with watched.held():
                # From now on: on a busy machine the first one may have waited longer.
                watched.engine.supervisor.in_flight._queue._timeout = 0.3
                with pytest.raises(OverloadedError, match=r"not admitted within 0\.3 s"):
                    await collect(watched.engine.generate([large("b")]))
        await watched.idle()


async def test_clients_take_turns() -> None:
    async with engine(kv_blocks=8) as watched:
        done: list[str] = []

        async def read(client: str, generation: GenerationStream) -> None:
            await collect(generation)
            done.append(client)

        clients = ["greedy"] * 6 + ["modest"] * 2
        with watched.held():
            asked = [
                read(client, watched.engine.generate([large(start)], Caller(client)))
                for client, start in zip(clients, "abcdefgh", strict=True)
            ]
        await asyncio.gather(*asked)

    assert done[:4] == ["greedy", "modest", "greedy", "modest"]


async def tokens(generation: GenerationStream) -> list[int]:
    with generation:
        return [token async for piece in generation for token in piece.tokens]
