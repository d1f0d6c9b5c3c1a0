"""Proposed tokens are kept as far as the model would have chosen them itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.speculation import Speculation
from ovchat_server.engine.genai.choosing import choose
from ovchat_server.engine.genai.logits_control import LogitsControl, RunningSequence
from ovchat_server.engine.genai.proposal_check import ProposalCheck
from ovchat_server.engine.genai.sequence_logits import SequenceLogits, Vocabulary
from ovchat_server.engine.scheduling.steps import Output
from tests.reference_rules import log_softmax

SIZE = 10
PROMPT = (1, 2, 3)
PROPOSED = (4, 5, 6)
STOP = 8


def rows(*best: tuple[int, int]) -> np.ndarray:
    """A row of logits for each, with its likeliest token and the one after that."""
    logits = np.random.default_rng(5).normal(0, 1, (len(best), SIZE)).astype(np.float32)
    for row, (first, second) in zip(logits, best, strict=True):
        row[first], row[second] = 10, 9
    return logits


LOGITS = rows((4, 1), (5, 1), (6, 1), (7, 1))


class Checked:
    """A sequence with proposed tokens at the end of its prompt, in a pipeline."""

    def __init__(
        self, proposed: tuple[int, ...] = PROPOSED, follower: Any = None, **fields: Any
    ) -> None:
        request = GenerationRequest(
            Prompt(PROMPT), 20, **{"speculation": Speculation(3, 3), **fields}
        )
        logits = SequenceLogits(request, 0, Vocabulary(SIZE, str), stops={STOP})
        self.tokens = (*PROMPT, *proposed)
        if follower:
            logits = logits.chosen_by(follower)
        self.check = ProposalCheck(request, proposed, len(PROMPT), logits.processor, follower)
        self.running = RunningSequence(self.tokens, logits.behind(proposed), check=self.check)
        self.control = LogitsControl()
        self.control.enter(self.running)

    def read(self, logits: np.ndarray = LOGITS, start: int = len(PROMPT) - 1) -> None:
        """Read tokens from a position on, each of which makes a row."""
        places = np.arange(start, min(start + len(logits), len(self.tokens)))
        tokens, made = np.array(self.tokens)[places], logits[: len(places)]
        self.offsets = np.zeros_like(made)
        self.control.observe(made, tokens, places, lambda: self.offsets)

    def report(self, last: int = 7, finish: str | None = None) -> Output:
        """What came, if genai chose this token behind all of them."""
        return self.running.report(Output([last], [0.0], finish))


@pytest.mark.parametrize(
    ("proposed", "tokens", "accepted"),
    [
        ((4, 5, 6), [4, 5, 6, 7], 3),
        ((4,), [4, 5], 1),
        ((4, 5, 9), [4, 5, 6], 2),
        ((4, 9, 6), [4, 5], 1),
        ((9, 5, 6), [4], 0),
    ],
)
def test_what_is_proposed_comes_up_to_the_first_that_differs(
    proposed: tuple[int, ...], tokens: list[int], accepted: int
) -> None:
    checked = Checked(proposed)
    checked.read()

    told = checked.report(int(LOGITS[len(proposed)].argmax()), "length")

    assert (told.tokens, told.accepted) == (tokens, accepted)
    assert told.rejected == len(proposed) - accepted
    # genai's own end is behind all that was proposed.
    assert told.finish == (None if told.rejected else "length")


def test_its_prompt_may_be_read_in_several_steps_and_from_its_beginning() -> None:
    checked = Checked()
    checked.read(rows((0, 1), (0, 1), (4, 1)), start=0)
    checked.read(LOGITS[1:], start=3)

    assert checked.report().tokens == [4, 5, 6, 7]


@pytest.mark.parametrize("seed", range(5))
def test_a_token_is_drawn_as_at_its_position(seed: int) -> None:
    sampling = Sampling(temperature=8.0, seed=seed)
    expected = [choose(row, sampling, len(PROMPT) + place) for place, row in enumerate(LOGITS)]
    checked = Checked(tuple(expected[:3]), sampling=sampling)
    checked.read()

    assert checked.report().tokens == [*expected[:3], 7]


@pytest.mark.parametrize("proposed", [PROPOSED, (4, 9, 6)])
def test_each_token_is_told_of_with_its_own_row(proposed: tuple[int, ...]) -> None:
    # Before it was changed.
    sampling = Sampling(bias=((1, 0.5),))
    checked = Checked(proposed, sampling=sampling, logprobs=True, top_logprobs=2)
    checked.read()

    told = checked.report()

    own = [log_softmax(row) for row in LOGITS[: len(told.tokens)]]
    expected = [values[token] for values, token in zip(own, told.tokens, strict=True)]
    assert told.logprobs == pytest.approx(expected, abs=1e-5)
    assert [[token for token, _ in others] for others in told.alternatives] == [
        [token, 1] for token in told.tokens
    ]
    assert [others[0][1] for others in told.alternatives] == pytest.approx(expected, abs=1e-5)


AGAIN = rows((4, 1), (4, 5), (5, 6), (6, 7))
ENDING = rows(*((STOP, token) for token in (4, 5, 6, 7)))


PENALTY = {"sampling": Sampling(presence_penalty=2.0)}
BANNED = {"sampling": Sampling(banned=((4, 4), (4, 5, 5), (6, 6)))}


@pytest.mark.parametrize(
    ("logits", "fields", "last", "tokens"),
    [
        pytest.param(AGAIN, {}, 6, [4, 4], id="nothing asked for"),
        pytest.param(AGAIN, PENALTY, 7, [4, 5, 6, 7], id="presence_penalty"),
        pytest.param(AGAIN, BANNED, 7, [4, 5, 6, 7], id="banned"),
        pytest.param(ENDING, {}, STOP, [STOP], id="may end"),
        pytest.param(ENDING, {"min_tokens": 2}, STOP, [4, 5, STOP], id="min_tokens"),
    ],
)
def test_what_is_proposed_counts_for_the_token_behind_it(
    logits: np.ndarray, fields: dict[str, Any], last: int, tokens: list[int]
) -> None:
    checked = Checked(**fields)
    checked.read(logits)

    assert checked.report(last).tokens == tokens


@pytest.mark.parametrize("start", [3, 4, 5])
def test_where_rows_are_missing_nothing_came_of_it(start: int) -> None:
    checked = Checked()
    asking = GenerationRequest(Prompt((2,)), 20, logprobs=True)
    other = RunningSequence((2,), SequenceLogits(asking, 0, Vocabulary(SIZE, str)))
    checked.control.enter(other)
    places = np.array([*range(start, 6), 0])
    tokens = np.array([*checked.tokens[start:], 2])
    made = LOGITS[-len(places) :]
    # The last two rows are behind all that was proposed, and the other's.
    checked.control.observe(made, tokens, places, lambda: np.zeros_like(made))

    told = checked.report(6)

    assert told == Output([], [], rejected=3)
    assert other.report(Output([7], [])).tokens == [7]


def test_an_error_ends_it_though_nothing_else_is_asked() -> None:
    checked = Checked()
    checked.running.logits = None
    checked.check.observe = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]

    checked.read()

    told = checked.report()
    assert told.finish == MISATTRIBUTED
    assert told.reason.startswith("ZeroDivisionError: ")


class Second:
    """Chooses the second likeliest token of each row, as a grammar may."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []

    def choose(self, logits: np.ndarray) -> int:
        self.rows.append(logits.tolist())
        return int(logits.argsort()[-2])


@pytest.mark.parametrize(
    ("proposed", "tokens", "rows_chosen"),
    [((1, 1, 1), [1, 1, 1, 1], 4), ((1, 5, 1), [1, 1], 2), ((4, 5, 6), [1], 1)],
)
def test_a_follower_chooses_in_order_up_to_the_first_that_differs(
    proposed: tuple[int, ...], tokens: list[int], rows_chosen: int
) -> None:
    """What it chooses behind all of them genai chooses, too: nothing else is left."""
    follower: Any = Second()
    checked = Checked(proposed, follower, logprobs=True)
    checked.read()
    assert follower.rows == LOGITS[:rows_chosen].tolist()
    last = int((LOGITS + checked.offsets)[-1].argmax())
    told = checked.report(last)
    assert told.tokens == tokens
    expected = [log_softmax(row)[1] for row in LOGITS[: len(tokens)].tolist()]
    assert told.logprobs == pytest.approx(expected, abs=1e-5)


def test_another_token_than_the_follower_chose_is_nobodys() -> None:
    follower: Any = Second()
    checked = Checked((1, 1, 1), follower)
    checked.read()
    assert checked.report(7).finish == MISATTRIBUTED
