"""How long it takes to find out which tokens grammars allow, with the demo model's vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.client.grammar_lane import GrammarLane, Verdict
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.grammar_messages import SLOW_TO_FOLLOW
from ovchat_server.engine.contract.prompt import Prompt
from tests.engine.test_structured_output import TOKENIZER, demo, demo_spec, grammar
from tests.grammars import ambiguous

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.engine.conftest import Watched

__all__ = ["demo"]

AMBIGUOUS = grammar("grammar", ambiguous())
PLAIN = grammar("regex", "a*")
A = TOKENIZER.encode("a")[0]
SLOW = Verdict(SLOW_TO_FOLLOW)
FINE = Verdict("")


@pytest.fixture(scope="module")
async def lane() -> AsyncIterator[GrammarLane]:
    lane = GrammarLane(demo_spec(), stays=False, follows=True)
    yield lane
    await lane.close()


@pytest.mark.parametrize(
    ("text", "tokens", "seconds", "verdict"),
    [
        (AMBIGUOUS, (A,) * 200, 0.001, SLOW),
        # It takes that long later on.
        (AMBIGUOUS, (A,) * 2, 0.01, FINE),
        (AMBIGUOUS, (A,) * 200, 10.0, FINE),
        (PLAIN, (A,) * 200, 0.01, FINE),
        # No answer that follows it.
        (PLAIN, (A + 1,) * 200, 0.01, FINE),
        (PLAIN, (), 0.01, FINE),
    ],
    ids=["slow", "short", "allowed", "plain", "other tokens", "nothing"],
)
async def test_an_answer_is_followed(
    lane: GrammarLane, text: str, tokens: tuple[int, ...], seconds: float, verdict: Verdict
) -> None:
    assert await lane.follow(text, tokens, seconds) == verdict


async def test_one_that_is_not_followed_in_time_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FOLLOW_TIMEOUT", "BUSY"):
        monkeypatch.setattr(f"ovchat_server.engine.client.grammar_lane.{name}", 0.0)
    lane = GrammarLane(demo_spec(), stays=False, follows=True)
    try:
        assert await lane.follow(AMBIGUOUS, (A,) * 200, 0.0) == Verdict(
            SLOW_TO_FOLLOW, too_slow=True
        )
        # The next one finds a process that works.
        monkeypatch.undo()
        assert await lane.follow(PLAIN, (A,), 10.0) == FINE
    finally:
        await lane.close()


async def test_the_engine_tells_how_long_steps_took_to_choose(
    demo: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[tuple[float, float]] = []
    monkeypatch.setattr(
        demo.engine.supervisor.in_flight,
        "on_report",
        lambda report: reported.append((report.ended - report.began, report.sampling)),
    )
    request = GenerationRequest(Prompt((A,)), 20, Sampling(1), ignore_eos=True)
    with demo.engine.generate([request]) as generation:
        async for _ in generation:
            pass
    took = [pair for pair in reported if pair[1]]
    assert len(took) >= 20
    assert all(0 < sampling < step for step, sampling in took)
