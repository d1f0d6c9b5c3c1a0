"""What is told of prompts: gathered row by row, of prompts that no cache knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ovchat_server.engine.contract.generation import GenerationRequest, PromptScore, Sampling
from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.genai.sequence_logits import needs_processor
from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores
from ovchat_server.engine.scheduling.step_budget import StepBudget
from tests.sequence_requests import sequence_request
from tests.unit.scheduler_tools import BLOCK, Run, sequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation_messages import SequenceRequest

ROW = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))


def scores_of(prompt: Sequence[int], top: int = 0, end: int | None = None) -> PromptScores:
    scores = PromptScores(prompt, top)
    for position in range(len(prompt) if end is None else end):
        scores.observe(position, ROW)
    return scores


def told(prompt: Sequence[int], top: int = 0) -> list[PromptScore]:
    return scores_of(prompt, top).gathered


def test_the_first_token_has_no_score_and_the_last_one_has() -> None:
    assert [round(2.718281828**score.logprob, 3) for score in told((3, 1, 0))] == [0.4, 0.1]
    assert told((3,)) == []


def test_the_rank_counts_those_that_are_as_likely() -> None:
    assert [score.rank for score in told((0, 0, 1, 2, 3))] == [4, 1, 3, 2]
    scores = PromptScores((0, 2), 0)
    scores.observe(0, np.zeros(4, np.float32))
    assert scores.gathered[0].rank == 4


def test_alternatives_are_the_likeliest_whether_or_not_it_is_one_of_them() -> None:
    [score] = told((0, 0), 2)
    assert [token for token, _ in score.alternatives] == [1, 3]
    [score] = told((0, 1), 2)
    assert score.alternatives[0] == (1, pytest.approx(score.logprob))


def test_what_is_known_of_a_part_of_a_prompt_is_all_of_that_part() -> None:
    assert not scores_of(range(4), end=2).problem(2)
    assert scores_of(range(4), end=2).problem(3) == "2 tokens were seen of 3"
    assert scores_of(range(4), end=2).problem(4)
    assert not scores_of(range(4), end=4).problem(4)


def test_what_is_read_once_more_is_told_once() -> None:
    scores = scores_of((0, 1, 2, 3), end=2)
    for position in range(4):
        scores.observe(position, ROW)

    assert scores.gathered == told((0, 1, 2, 3))
    assert not scores.problem(4)


def test_a_beginning_that_was_not_seen_is_a_problem() -> None:
    scores = PromptScores(range(4), 0)
    scores.observe(2, ROW)

    assert scores.problem(4) == "position 2 was read after 0 others"
    scores.observe(0, ROW)
    assert not scores.gathered


def scored(identifier: int, prompt: int, answer: int, **fields: Any) -> SequenceRequest:
    return sequence(identifier, prompt, answer, prompt_logprobs=2, **fields)


def test_scores_come_with_the_first_token() -> None:
    run = Run(64)
    run.add(request := scored(1, 9, 5), other := sequence(2, 9, 5))
    run.step()

    assert len(run.scores[1]) == 8
    run.finish_all()
    run.right(request, other)
    assert 2 not in run.scores


def test_a_prompt_that_the_prefix_cache_has_is_read_anew() -> None:
    run = Run(64)
    plain = sequence(1, 20, 5)
    run.add(plain)
    run.finish_all()
    for identifier in (2, 3):
        again = sequence_request(
            identifier, plain.generation.prompt, 5, ignore_eos=True, prompt_logprobs=2
        )
        run.add(again)
        run.step()
        assert run.pipeline.scored[-1] == 20
        run.finish_all()
        run.right(again)
    assert run.tokens[2] == run.tokens[1]


def test_a_step_sees_no_more_scored_tokens_than_it_should() -> None:
    run = Run(400, StepBudget(0, 1000), scored_tokens=3 * BLOCK)
    requests = [scored(1, 100, 3), scored(2, 2 * BLOCK, 3), scored(3, 30, 3), sequence(4, 300, 3)]
    run.add(*requests)
    run.finish_all()

    run.right(*requests)
    assert max(run.pipeline.scored) == 3 * BLOCK
    assert max(run.pipeline.read_tokens) >= 300


@pytest.mark.parametrize("total", [14, 20, 30])
def test_who_loses_its_place_is_told_of_once_and_says_the_same(total: int) -> None:
    run = Run(total, StepBudget(0, 16), scored_tokens=2 * BLOCK)
    requests = [scored(number, 12 + number, 18) for number in range(1, 6)]
    run.add(*requests)
    run.finish_all()

    run.right(*requests)
    assert run.scheduler.load().preemptions > 0


def test_a_step_that_fails_in_the_middle_of_a_prompt_makes_it_begin_anew() -> None:
    run = Run(64, StepBudget(0, 16))
    run.add(request := scored(1, 60, 5), other := sequence(2, 5, 30))
    run.step()
    run.step()
    run.pipeline.faults[2] = 1
    run.finish_all()

    run.right(request, other)


def test_a_prompt_whose_beginning_the_prefix_cache_has_lost_is_told_of() -> None:
    run = Run(64, StepBudget(0, 16))
    run.add(request := scored(1, 60, 5))
    run.step()
    run.step()
    run.pipeline._cached.clear()
    run.finish_all()

    run.right(request)
    assert max(run.pipeline.scored) == 3 * 16


def test_a_prompt_whose_pieces_do_not_get_through_is_read_in_one() -> None:
    run = Run(64, StepBudget(0, 16), scored_tokens=2 * BLOCK)
    run.pipeline.drops[-1] = 1
    run.add(request := scored(1, 60, 5))
    run.finish_all()

    run.right(request)


def test_what_came_before_the_process_died_is_not_told_again() -> None:
    run = Run(64)
    whole = scored(1, 9, 5)
    run.add(
        sequence_request(
            1, whole.generation.prompt, 5, ignore_eos=True, prompt_logprobs=2, generated=(9, 9)
        )
    )
    run.finish_all()

    assert not run.scores
    assert len(run.tokens[1]) == 3


def test_rows_that_cannot_be_told_end_the_sequence() -> None:
    run = Run(64)
    run.add(request := scored(1, 9, 5))
    run.pipeline._score = lambda *_: None  # type: ignore[method-assign]
    run.finish_all()

    assert run.finish == {request.id: MISATTRIBUTED}
    assert run.reasons == {request.id: "0 tokens were seen of 9"}
    assert not run.scores


@pytest.mark.parametrize(
    ("fields", "ruled"),
    [
        ({}, False),
        ({"prompt_logprobs": 1}, False),
        ({"sampling": Sampling(repetition_penalty=1.5)}, False),
        # genai would look for a salted token in a row of logits.
        ({"sampling": Sampling(repetition_penalty=1.5), "prompt_logprobs": 0}, True),
    ],
)
def test_salted_prompts_are_never_left_to_the_engines_own_penalty(
    fields: dict[str, Any], *, ruled: bool
) -> None:
    assert needs_processor(GenerationRequest(Prompt((1, 2)), 5, **fields)) is ruled
