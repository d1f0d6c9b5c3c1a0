"""The line before the engine: how many wait, for how long, and who has to go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.client.generation_engine import start_generation
from ovchat_server.engine.client.in_flight_requests import InFlightRequests
from ovchat_server.engine.contract.engine import Caller
from ovchat_server.engine.contract.generation import GenerationRequest
from ovchat_server.engine.contract.generation_messages import SequenceOutput, SequenceRequest
from ovchat_server.engine.contract.messages import Cancel, Report, Start
from ovchat_server.engine.contract.prompt import Prompt

if TYPE_CHECKING:
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.engine.client.generation_stream import EngineGenerationStream

LOAD = EngineLoad()


class Line:
    """Requests of which the engine says nothing by itself."""

    def __init__(self, most: int, patience: float = 60.0) -> None:
        self.sent: list[Start[SequenceRequest] | Cancel] = []
        self.unavailable_reason: ApiError | None = None
        self.in_flight: InFlightRequests[SequenceRequest, SequenceOutput] = InFlightRequests(
            self.sent.append, most, patience, lambda: self.unavailable_reason
        )

    def ask(
        self, client: str = "a", choices: int = 1, priority: int = 0, highest: int = 0
    ) -> EngineGenerationStream:
        requests = [GenerationRequest(Prompt((9,)), 30)] * choices
        return start_generation(self.in_flight, requests, Caller(client, priority, highest))

    def ids(self) -> list[int]:
        """Those that the engine was told of and not to give up."""
        started = [
            request.id for item in self.sent if isinstance(item, Start) for request in item.requests
        ]
        cancelled = {item.id for item in self.sent if isinstance(item, Cancel)}
        return [identifier for identifier in started if identifier not in cancelled]

    def place(self, *identifiers: int) -> None:
        """They run from now on."""
        self.in_flight.deliver(Report([], LOAD, [*identifiers]))


async def failure(generation: EngineGenerationStream) -> ApiError:
    with pytest.raises((OverloadedError, UnavailableError)) as caught, generation:
        await anext(generation)
    return caught.value


async def test_every_choice_that_waits_counts() -> None:
    line = Line(4)
    line.ask(choices=8)
    with pytest.raises(OverloadedError):
        line.ask()
    line.place(*range(1, 5))
    with pytest.raises(OverloadedError):
        line.ask()

    line.place(5)

    line.ask()


async def test_choices_that_are_given_up_wait_no_more() -> None:
    line = Line(2)
    with line.ask(choices=2) as generation:
        generation.end(0)
        line.ask()
        with pytest.raises(OverloadedError):
            line.ask()
    line.ask()


async def test_who_asks_most_makes_room_for_another_client() -> None:
    line = Line(4)
    greedy = [line.ask("greedy") for _ in range(4)]

    line.ask("modest")

    assert isinstance(await failure(greedy[3]), OverloadedError)
    assert line.ids() == [1, 2, 3, 5]
    with pytest.raises(OverloadedError):
        line.ask("greedy")


async def test_nobody_makes_room_for_who_has_as_much() -> None:
    line = Line(4)
    for client in "abab":
        line.ask(client)
    for client in "ab":
        with pytest.raises(OverloadedError):
            line.ask(client)
    # A third one has less than either.
    line.ask("c")
    with pytest.raises(OverloadedError):
        line.ask("c")


async def test_who_runs_already_makes_room_for_nobody() -> None:
    line = Line(2)
    line.ask("greedy", choices=4)
    line.place(1)
    with pytest.raises(OverloadedError):
        line.ask("modest")


async def test_what_is_urgent_for_a_client_replaces_none_of_another() -> None:
    line = Line(3)
    own = [line.ask("a", priority=5), line.ask("a", priority=9)]
    line.ask("b")
    # Not the newest, but the least urgent of its own; the next has none that is less urgent.
    line.ask("a", priority=-(2**31))
    assert isinstance(await failure(own[1]), OverloadedError)
    line.ask("a", priority=-(2**31))
    assert isinstance(await failure(own[0]), OverloadedError)
    with pytest.raises(OverloadedError):
        line.ask("a", priority=-(2**31))
    # Nor does it keep them from being replaced.
    assert line.ids() == [3, 4, 5]
    line.ask("c")
    assert line.ids() == [3, 4, 7]


async def test_a_client_that_may_replaces_those_of_others() -> None:
    line = Line(2)
    usual = [line.ask("a"), line.ask("b")]
    line.ask("c", priority=-9, highest=-5)
    assert isinstance(await failure(usual[1]), OverloadedError)
    with pytest.raises(OverloadedError):
        line.ask("b", priority=-9)


async def test_what_is_urgent_finds_room() -> None:
    line = Line(2)
    usual = [line.ask("a"), line.ask("a")]
    line.ask("a", priority=-9)
    assert isinstance(await failure(usual[1]), OverloadedError)
    with pytest.raises(OverloadedError):
        line.ask("b", priority=1)


async def test_who_waits_too_long_is_given_up_for_good() -> None:
    line = Line(4, patience=0.01)
    generation = line.ask()
    await generation._arrived.wait()

    # Its place comes all the same: the report was on its way.
    line.in_flight.deliver(Report([SequenceOutput(1, 0, [1], [], None)], LOAD, [1]))

    assert isinstance(await failure(generation), OverloadedError)
    assert line.ids() == []


async def test_who_waits_for_an_engine_that_is_away_is_told_so() -> None:
    line = Line(4, patience=0.01)
    generation = line.ask()
    line.unavailable_reason = UnavailableError("away", retry_after=1)
    assert await failure(generation) is line.unavailable_reason


async def advice(line: Line) -> float:
    with pytest.raises(OverloadedError) as caught:
        line.ask()
    return caught.value.retry_after


async def test_the_advice_is_what_the_line_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    line = Line(4)
    for _ in range(4):
        line.ask()
    assert await advice(line) == 1
    for count in range(8):
        now += 3
        line.place(line.ids()[count])
        line.ask()
    # Four wait, and one gets its place every three seconds.
    assert await advice(line) == 15
    line.place(*line.ids())
    # A night later nobody remembers how long that took.
    now += 30_000
    for _ in range(4):
        line.ask()
    assert await advice(line) == 1


async def test_choices_that_are_cancelled_are_no_pace() -> None:
    line = Line(40)
    for _ in range(32):
        with line.ask():
            pass
    for _ in range(40):
        line.ask()
    assert await advice(line) == 1
