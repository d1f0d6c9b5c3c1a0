"""Changes reach the sequence that asked for them; what does not fit ends it, loudly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.genai import logits_control
from ovchat_server.engine.genai.logits_control import (
    LogitsControl,
    RunningBeamSearch,
    RunningSequence,
)
from ovchat_server.engine.genai.sequence_logits import SequenceLogits, Vocabulary
from ovchat_server.engine.scheduling.steps import Output
from tests.reference_rules import log_softmax

SIZE = 10
PROMPT = (1, 2, 3)
BIAS = Sampling(bias=((4, 20.0),))
LOGITS = np.random.default_rng(5).normal(0, 1, (4, SIZE)).astype(np.float32)


def logits_of(answered: int = 0, **fields: Any) -> SequenceLogits:
    return SequenceLogits(
        GenerationRequest(Prompt(PROMPT), 20, **fields), answered, Vocabulary(SIZE, str)
    )


@dataclass
class Steps:
    """A pipeline's steps, as the operation sees them."""

    logits: LogitsControl = field(default_factory=LogitsControl)
    changed: int = 0

    def enter(self, *residents: RunningSequence) -> None:
        for resident in residents:
            self.logits.enter(resident)

    def observe(self, *read: tuple[int, int], rows: int | None = None) -> np.ndarray:
        """What was added in a step that read these tokens at these positions."""
        count = len(read) if rows is None else rows
        values = np.zeros((count, SIZE), np.float32)

        def added() -> np.ndarray:
            self.changed += 1
            return values

        tokens, positions = np.array(read, np.int64).reshape(-1, 2).T
        self.logits.observe(LOGITS[:count], tokens, positions, added)
        return values


def prompt_read() -> list[tuple[int, int]]:
    return [(token, place) for place, token in enumerate(PROMPT)]


def test_only_the_row_of_who_asked_is_changed() -> None:
    steps = Steps()
    plain, biased = RunningSequence((8,)), RunningSequence((9,), logits_of(sampling=BIAS))
    steps.enter(plain, biased, RunningSequence((6,)))

    values = steps.observe((8, 0), (9, 0), (6, 0))

    assert values[:, 4].tolist() == [0, 20, 0]
    assert np.count_nonzero(values) == 1
    assert steps.changed == 1


def test_where_nobody_asks_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(logits_control, "row_owners", lambda *told: calls.append(told) or [])
    steps = Steps()
    read = RunningSequence(PROMPT)
    # Its prompt was read, which tells what of it was cached.
    read.read_from(0)
    steps.enter(read)
    gone = RunningSequence(PROMPT, logits_of(sampling=BIAS))
    steps.enter(gone)
    steps.logits.leave(gone)
    steps.logits.leave(gone)

    steps.observe((99, 99), rows=3)

    assert (calls, steps.changed) == ([], 0)


def test_who_only_wants_to_be_told_changes_nothing() -> None:
    steps = Steps()
    asking = logits_of(top_logprobs=3, logprobs=True)
    steps.enter(RunningSequence(PROMPT, asking))
    steps.observe(*prompt_read(), rows=1)
    best = int(LOGITS[0].argmax())

    output = asking.report(Output([best], [], None))

    own = log_softmax(LOGITS[0])
    order = np.argsort(-own)[:3].tolist()
    assert steps.changed == 0
    assert output.logprobs == [pytest.approx(own[best], abs=1e-5)]
    [told] = output.alternatives
    assert [token for token, _ in told] == order
    assert [value for _, value in told] == pytest.approx(own[order].tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("read", "rows"),
    [
        pytest.param([(1, 0), (2, 1), (9, 2)], 1, id="another token"),
        pytest.param([(1, 1), (2, 2), (3, 3)], 1, id="another place"),
        pytest.param([(1, 0), (2, 1), (3, 2)], 2, id="a row too many"),
        pytest.param([(1, 0), (2, 1), (3, 2), (5, 0)], 1, id="a token of nobody"),
        pytest.param([(1, 0)], 1, id="a row for a prompt that was read in part"),
    ],
)
def test_a_row_that_may_be_of_another_ends_the_sequence(
    read: list[tuple[int, int]], rows: int
) -> None:
    steps = Steps()
    asking = logits_of(sampling=BIAS)
    steps.enter(RunningSequence(PROMPT, asking))

    values = steps.observe(*read, rows=rows)

    assert not values.any()
    told = asking.report(Output([4], []))
    assert told == Output([], [], MISATTRIBUTED, reason=told.reason)
    assert told.reason.startswith("MisattributedError: ")


@pytest.mark.parametrize(
    ("tokens", "sampling", "reason"),
    [
        ([4, 4], BIAS, "2 tokens came of one row"),
        ([5], BIAS, "token 5 came, which is not the likeliest"),
        ([5], Sampling(1.0, banned=((5,),)), "token 5 came, which is banned"),
        ([5], Sampling(1.0, allowed=(4,)), "token 5 came, which is banned"),
    ],
)
def test_a_token_that_cannot_be_of_its_row_ends_the_sequence(
    tokens: list[int], sampling: Sampling, reason: str
) -> None:
    steps = Steps()
    asking = logits_of(sampling=sampling)
    steps.enter(RunningSequence(PROMPT, asking))
    steps.observe(*prompt_read(), rows=1)

    assert asking.report(Output(tokens, [])) == Output([], [], MISATTRIBUTED, reason=reason)


@pytest.mark.parametrize("fields", [{"grammar": "g"}, {"min_tokens": 3}])
def test_where_something_else_left_only_what_is_banned_it_may_come(fields: dict[str, Any]) -> None:
    steps = Steps()
    asking = logits_of(sampling=Sampling(allowed=(4,)), **fields)
    steps.enter(RunningSequence(PROMPT, asking))
    steps.observe(*prompt_read(), rows=1)

    assert asking.report(Output([5], [])).tokens == [5]


def test_a_token_without_a_row_ends_the_sequence() -> None:
    steps = Steps()
    asking = logits_of(sampling=BIAS)
    steps.enter(RunningSequence(PROMPT, asking))
    steps.observe(*prompt_read(), rows=1)
    assert asking.report(Output([4], [])).finish is None

    # Its row is not looked at twice.
    told = asking.report(Output([4], []))
    assert told == Output([], [], MISATTRIBUTED, reason="a token came without logits")


def test_an_error_in_what_is_done_with_a_row_is_that_sequences_alone() -> None:
    """As in what follows its grammar."""
    steps = Steps()
    asking = logits_of()
    failing, other = RunningSequence((8,), asking), RunningSequence((9,), logits_of(logprobs=True))
    steps.enter(failing, other)
    asking.observe = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]

    steps.observe((8, 0), (9, 0))

    told = failing.report(Output([1], []))
    assert told.finish == MISATTRIBUTED
    assert told.reason.startswith("ZeroDivisionError: ")
    best = int(LOGITS[1].argmax())
    assert other.report(Output([best], [])).tokens == [best]


def test_no_error_in_what_is_added_leaves_the_step() -> None:
    def added() -> np.ndarray:
        raise MemoryError

    logits = LogitsControl()
    asking = logits_of(sampling=BIAS)
    logits.enter(RunningSequence((8,), asking))

    logits.observe(LOGITS[:1], np.array([8]), np.array([0]), added)

    assert asking.report(Output([4], [])).finish == MISATTRIBUTED


def test_penalties_count_what_came_before_it_lost_its_place() -> None:
    sampling = Sampling(presence_penalty=1.0)
    steps = Steps()
    steps.enter(RunningSequence(PROMPT, logits_of(sampling=sampling, answered=1)))

    [values] = steps.observe(*prompt_read(), rows=1)

    assert values.tolist() == [0, 0, 0, -1, *[0] * 6]


def test_a_sequence_grows_by_what_came_of_it() -> None:
    steps = Steps()
    asking = logits_of(sampling=BIAS)
    resident = RunningSequence(PROMPT, asking)
    steps.enter(resident)
    steps.observe(*prompt_read(), rows=1)
    resident.grow([4])
    assert asking.report(Output([4], [])).tokens == [4]

    assert steps.observe((4, 3))[0, 4] == 20
    assert asking.report(Output([4], [], "length")).finish == "length"


def test_a_search_may_wait_for_its_first_step_and_read_its_prompt_in_several() -> None:
    steps = Steps()
    asking = logits_of(sampling=BIAS)
    resident = RunningSequence((8,), asking)
    steps.enter(resident, RunningBeamSearch(PROMPT, 2))
    # Whatever else runs then: a search is followed also where nobody asks.
    for place, (read, rows) in enumerate(
        [
            ([], 1),
            ([(1, 0), (2, 1)], 1),
            ([(3, 2)], 2),
            ([(5, 3), (6, 3)], 3),
            ([(5, 4), (5, 4)], 3),
        ]
    ):
        own = (4, place) if place else (8, 0)
        values = steps.observe(own, *read, rows=rows)
        resident.grow([4])
        assert asking.report(Output([4], [])).tokens == [4]
        assert np.count_nonzero(values) == 1


def test_a_search_is_followed_where_nobody_asks() -> None:
    steps = Steps()
    steps.enter(RunningBeamSearch(PROMPT, 2))
    steps.observe(*prompt_read(), rows=1)
    steps.observe((5, 3), (6, 3))
    asking = logits_of(sampling=BIAS)
    steps.enter(RunningSequence((8,), asking))

    values = steps.observe((5, 4), (5, 4), (8, 0))

    assert values[:, 4].tolist() == [0, 0, 20]


def test_a_search_is_followed_also_where_another_one_fails() -> None:
    steps = Steps()
    failing = logits_of()
    failing.look = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    resident = RunningSequence((8,), failing)
    steps.enter(resident, RunningBeamSearch(PROMPT, 2))
    steps.observe((8, 0), *prompt_read(), rows=2)
    steps.logits.leave(resident)
    asking = logits_of(sampling=BIAS)
    steps.enter(RunningSequence((9,), asking))

    values = steps.observe((5, 3), (6, 3), (9, 0))

    assert values[:, 4].tolist() == [0, 0, 20]


def test_a_step_that_came_to_its_logits_is_known_whoever_runs() -> None:
    steps = Steps()
    assert not steps.logits.seen_at
    steps.observe((8, 0))
    assert steps.logits.seen_at
