"""Whose grammar is followed while steps are slow, and who ends; without any process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.client.generation_engine import start_generation
from ovchat_server.engine.client.grammar_lane import DIED, Verdict
from ovchat_server.engine.client.in_flight_requests import InFlightRequests
from ovchat_server.engine.client.lately_slow import SLOW_FOR
from ovchat_server.engine.client.mask_budget import GROWTH, LEAST_SHARE, MORE, WEIGHT, MaskBudget
from ovchat_server.engine.contract.engine import Caller
from ovchat_server.engine.contract.generation import GenerationRequest
from ovchat_server.engine.contract.generation_engine import SlowGrammarError
from ovchat_server.engine.contract.generation_messages import SequenceOutput, SequenceRequest
from ovchat_server.engine.contract.generation_spec import GenerationOptions, GenerationSpec
from ovchat_server.engine.contract.messages import Cancel, Report, Start
from ovchat_server.engine.contract.prompt import Prompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.client.generation_stream import EngineGenerationStream

BUDGET = 1.0
# Of which the mean exceeds the budget at once.
SLOW = 2 * BUDGET / WEIGHT


class Watching:
    """A budget, whose process says of a grammar what its text says."""

    def __init__(self, budget: float = BUDGET) -> None:
        self.now = 0.0
        self.sent: list[Start[SequenceRequest] | Cancel] = []
        self.in_flight: InFlightRequests[SequenceRequest, SequenceOutput] = InFlightRequests(
            self.sent.append, 100, 60.0, lambda: None
        )
        options = GenerationOptions(max_mask_seconds=budget)
        spec = GenerationSpec(
            name="m", path="", context_length=1000, end_tokens=(), options=options
        )
        self.budget = MaskBudget(spec, self.in_flight, lambda: self.now)
        self.in_flight.on_report = self.budget.note
        self.followed: list[tuple[str, int, float]] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.meanwhile: Callable[[], None] = lambda: None
        self.budget._lane.follow = self._follow  # type: ignore[method-assign]

    async def _follow(self, grammar: str, tokens: tuple[int, ...], mask_seconds: float) -> Verdict:
        self.followed.append((grammar, len(tokens), mask_seconds))
        self.meanwhile()
        await self.go_on.wait()
        if grammar == "unavailable":
            raise UnavailableError("not now")
        return Verdict({"dies": DIED, "slow": "slow"}.get(grammar, ""))

    def ask(self, client: str, *grammars: str) -> EngineGenerationStream:
        requests = [GenerationRequest(Prompt((9,)), 500, grammar=text) for text in grammars]
        return start_generation(self.in_flight, requests, Caller(client))

    async def step(
        self, seconds: float, *identifiers: int, tokens: int = 1, model: float = 0.0
    ) -> None:
        """A step that brings each of these requests tokens, and what follows from it."""
        self.report(seconds, *identifiers, tokens=tokens, model=model)
        while self.go_on.is_set() and (search := self.budget._search):
            await asyncio.wait([search])
            # Its callbacks run.
            await asyncio.sleep(0)

    def report(
        self, seconds: float, *identifiers: int, tokens: int = 1, model: float = 0.0
    ) -> None:
        outputs = [SequenceOutput(each, 0, [1] * tokens, [], None) for each in identifiers]
        report = Report(
            outputs, EngineLoad(), sampling=seconds, began=1.0, ended=1.0 + model + seconds
        )
        self.in_flight.deliver(report)

    @property
    def cancelled(self) -> list[int]:
        return [item.id for item in self.sent if isinstance(item, Cancel)]


@pytest.mark.parametrize(
    ("budget", "other", "steps", "followed"),
    [
        (BUDGET, "b", [SLOW], True),
        (BUDGET, "b", [0.9 * BUDGET] * 50, False),
        (BUDGET, "b", [1.1 * BUDGET] * 50, True),
        (BUDGET, "b", [*[0.5 * BUDGET] * 50, 2 * BUDGET, *[0.5 * BUDGET] * 50], False),
        (BUDGET, "a", [SLOW] * 50, False),
        (0.0, "b", [SLOW] * 50, False),
    ],
    ids=["slow", "quick", "a bit slow", "once", "nobody waits", "no limit"],
)
async def test_answers_are_followed_while_steps_are_slow_and_others_wait(
    budget: float,
    other: str,
    steps: list[float],
    followed: bool,  # noqa: FBT001
) -> None:
    run = Watching(budget)
    run.ask("a", "slow")
    run.ask(other, "")
    for seconds in steps:
        await run.step(seconds, 1, 2)
    assert bool(run.followed) == bool(run.budget.refusal("slow", "a")) == followed
    assert run.cancelled == ([1] if followed else [])


async def test_the_slow_one_ends_with_its_choices_and_those_of_its_client_that_follow_it() -> None:
    run = Watching()
    first, second, free = run.ask("a", "slow", "fine"), run.ask("a", "slow"), run.ask("b", "")
    other = run.ask("a", "fine")
    await run.step(SLOW, 1, 2, 3, 4, 5)
    for stream, pieces in ((first, 2), (second, 1)):
        # What came before is not lost.
        assert [(await anext(stream)).tokens for _ in range(pieces)] == [(1,)] * pieces
        with pytest.raises(SlowGrammarError, match="cannot be enforced: slow") as caught:
            await anext(stream)
        assert caught.value.reason == "slow"
    assert sorted(set(run.cancelled)) == [1, 2, 3]
    assert run.budget.refusal("slow", "a")
    assert not run.budget.refusal("fine", "a")
    await run.step(0, 4, 5)
    for stream in (free, other):
        assert (await anext(stream)).tokens == (1, 1)


async def test_the_shortest_is_followed_first_and_again_when_it_is_longer() -> None:
    run = Watching()
    run.ask("a", "long")
    run.ask("b", "short")
    run.ask("b", "not begun")
    for _ in range(100):
        await run.step(0, 1, tokens=2)
    await run.step(SLOW, 1, 2)
    assert [item[0] for item in run.followed] == ["short", "long"]
    assert [item[1] for item in run.followed] == [1, 201]
    run.followed.clear()
    due = {"short": GROWTH + MORE, "long": GROWTH * 101 + MORE}
    for number in range(2, 140):
        await run.step(SLOW, 1, 2)
        lengths = {"short": number, "long": 100 + number}
        for name, _, _ in run.followed:
            assert lengths[name] >= due[name]
            due[name] = GROWTH * lengths[name] + MORE
        run.followed.clear()
        assert all(lengths[name] < due[name] for name in lengths)


@pytest.mark.parametrize("model", [0.0, BUDGET, 3 * BUDGET])
@pytest.mark.parametrize(("answers", "share"), [(1, 1 / 2), (3, 1 / 4), (30, LEAST_SHARE)])
async def test_the_answers_of_a_client_share_the_budget(
    answers: int, share: float, model: float
) -> None:
    run = Watching()
    for _ in range(answers):
        run.ask("a", "fine")
    run.ask("b", "")
    for _ in range(50):
        await run.step(0.9 * max(model, BUDGET), model=model)
    assert not run.followed
    # It has run so long.
    most = max(run.budget._model_seconds, BUDGET)
    # Those that wait in the queue take no time.
    run.ask("a", "fine")
    await run.step(2 * most / WEIGHT, *range(1, answers + 1), model=most)
    assert run.followed == [("fine", 1, pytest.approx(share * most))] * answers


async def test_who_was_slow_has_one_at_a_time_for_a_while_and_a_small_share() -> None:
    run = Watching()
    run.ask("b", "")
    run.ask("a", "slow")
    await run.step(SLOW, 1, 2)
    run.budget.check("a")
    run.ask("a", "fine")
    with pytest.raises(OverloadedError, match="one request with a grammar") as refused:
        run.budget.check("a")
    assert refused.value.retry_after
    run.budget.check("b")
    run.followed.clear()
    while run.budget._seconds > LEAST_SHARE * BUDGET:
        await run.step(0)
    await run.step(BUDGET, 3)
    assert run.followed == [("fine", 1, LEAST_SHARE * BUDGET)]
    run.now += SLOW_FOR
    run.budget.check("a")
    assert not run.budget.refusal("slow", "a")


async def test_what_is_too_slow_for_one_client_is_refused_to_no_other() -> None:
    run = Watching()
    run.ask("a", "slow")
    run.ask("b", "slow")
    run.go_on.clear()
    await run.step(SLOW, 1)
    run.go_on.set()
    await run.step(0, 2)
    assert run.cancelled == [1]
    assert run.budget.refusal("slow", "a")
    assert not run.budget.refusal("slow", "b")


async def test_short_ones_that_come_and_go_hide_none() -> None:
    run = Watching()
    run.ask("a", "grows slow")
    run.ask("b", "")

    def another() -> None:
        """While one is followed another one comes, and is not the last."""
        if len(run.followed) < 60:
            run.ask("a", "fine")
            run.report(SLOW, 1, len(run.followed) + 2)

    run.meanwhile = another
    await run.step(SLOW, 1)
    assert len(run.followed) >= 60
    lengths = [length for name, length, _ in run.followed if name == "grows slow"]
    assert len(lengths) >= 5


@pytest.mark.parametrize("grammar", ["dies", "unavailable"])
async def test_nobody_ends_where_the_process_says_nothing(grammar: str) -> None:
    run = Watching()
    run.ask("a", grammar)
    run.ask("b", "slow")
    await run.step(SLOW, 1)
    await run.step(SLOW, 1, 2)
    assert [item[0] for item in run.followed] == [grammar, "slow"]
    assert run.cancelled == [2]


async def test_closing_ends_the_search() -> None:
    run = Watching()
    run.go_on.clear()
    run.ask("a", "slow")
    run.ask("b", "")
    await run.step(SLOW, 1, 2)
    await asyncio.sleep(0)
    assert run.followed
    await run.budget.close()
    assert run.budget._search is None
    assert not run.cancelled
