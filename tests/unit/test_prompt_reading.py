"""Prompts are read in pieces: what a step reads, and of whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.engine.contract.messages import BROKEN
from ovchat_server.engine.scheduling.cached_prefixes import KnownPrefixes
from ovchat_server.engine.scheduling.prompt_reader import ROWS
from ovchat_server.engine.scheduling.step_budget import (
    MIN_TOKENS,
    TIMES_BARE,
    StepBudget,
)
from tests.effort import examples
from tests.sequence_requests import sequence_request
from tests.unit.scheduler_tools import BLOCK, FixedBudget, Run, sequence

BUDGET = 16
POOL = 200


def reading(total: int = POOL) -> Run:
    return Run(total, StepBudget(0, BUDGET))


def steps_to_first_token(run: Run, identifier: int) -> int:
    for count in range(1, 200):
        run.step()
        if run.answers[identifier][0]:
            return count
    raise AssertionError("it says nothing")


def test_a_step_reads_no_more_of_a_long_prompt_than_its_budget() -> None:
    run = reading()
    run.add(request := sequence(1, 10 * BUDGET + 3, 5))
    assert steps_to_first_token(run, 1) == 11
    assert run.pipeline.read_tokens == [BUDGET] * 10 + [3]
    run.finish_all()
    run.right(request)


def test_running_sequences_take_their_part_of_the_budget() -> None:
    run = reading()
    run.add(*(sequence(i, 1, 60) for i in range(1, 5)))
    run.step()
    run.add(sequence(5, 100, 2))
    run.step()
    assert run.pipeline.read_tokens[-1] == BUDGET - 4


def test_a_running_sequence_says_something_in_every_step_beside_a_long_prompt() -> None:
    run = reading()
    run.add(sequence(1, 4, 60))
    run.step()
    run.add(sequence(2, 10 * BUDGET, 5))
    for count in range(2, 14):
        run.step()
        assert len(run.tokens[1]) == count


def test_a_short_prompt_overtakes_a_long_one_which_goes_on() -> None:
    run = reading()
    run.add(long := sequence(1, 20 * BUDGET, 5))
    run.step()
    run.add(short := sequence(2, BUDGET // 2, 5))
    assert steps_to_first_token(run, 2) == 1
    assert not run.tokens[1]
    # It had the step to itself, and so has another, but then it is the long one's turn.
    assert run.pipeline.read_tokens[-1] == BUDGET // 2
    run.add(another := sequence(3, BUDGET // 2, 5))
    assert steps_to_first_token(run, 3) == 1
    run.add(third := sequence(4, BUDGET // 2, 5))
    assert steps_to_first_token(run, 4) == 2
    run.finish_all()
    run.right(long, short, another, third)


def test_a_long_prompt_is_read_behind_any_number_of_short_ones() -> None:
    run = reading()
    run.add(long := sequence(1, 5 * BUDGET, 2))
    for number in range(2, 40):
        run.add(sequence(number, BUDGET // 2, 2))
        run.step()
        if run.tokens[1]:
            break
    # Every third step is for it, in which the running ones take two tokens.
    assert number <= 24
    run.finish_all()
    run.right(long)


def test_of_two_long_prompts_the_one_nearer_to_its_end_gets_there_first() -> None:
    run = reading()
    run.add(long := sequence(1, 20 * BUDGET, 2), shorter := sequence(2, 4 * BUDGET, 2))
    assert steps_to_first_token(run, 2) == 7
    run.finish_all()
    run.right(long, shorter)


def test_short_prompts_that_come_at_once_are_answered_one_after_the_other() -> None:
    run = Run(POOL, FixedBudget(BUDGET))
    run.add(*(sequence(i, BUDGET // 2, 9) for i in range(1, 7)))
    for count in (2, 4, 6):
        run.step()
        assert [i for i in run.tokens if run.tokens[i]] == [*range(1, count + 1)]
    assert run.pipeline.read_tokens == [BUDGET] * 3


def test_the_last_short_prompt_of_a_step_is_cut_where_a_block_ends() -> None:
    run = Run(POOL, FixedBudget(BUDGET))
    run.add(first := sequence(1, 9, 5), second := sequence(2, 11, 5))
    run.step()
    assert run.pipeline.read_tokens == [9 + BLOCK]
    run.finish_all()
    assert run.pipeline.read_tokens[1] == 11 - BLOCK
    run.right(first, second)


def test_short_prompts_that_come_at_once_and_a_long_one_take_turns() -> None:
    run = Run(POOL, FixedBudget(BUDGET))
    run.add(long := sequence(1, 4 * BUDGET, 2), *(sequence(i, BUDGET, 20) for i in range(2, 12)))
    while not run.tokens[1]:
        run.step()
    # Two for each of its own; its last part is a short prompt, and older than the others.
    assert run.pipeline.read_tokens == [BUDGET] * (3 * 3 + 1)
    assert [i for i in run.tokens if run.tokens[i]] == [*range(1, 8)]
    run.finish_all()
    run.right(long)


@given(
    lengths=st.lists(st.integers(1, 3 * BUDGET), min_size=1, max_size=12),
    together=st.integers(1, 12),
    tokens=st.integers(2 * BLOCK, 2 * BUDGET),
)
@examples(100)
def test_no_step_reads_more_than_its_budget_whosever_prompts_they_are(
    lengths: list[int], together: int, tokens: int
) -> None:
    run = Run(1000, FixedBudget(tokens))
    requests = [sequence(i, length, 5) for i, length in enumerate(lengths)]
    for start in range(0, len(requests), together):
        run.add(*requests[start : start + together])
        run.step()
    run.finish_all()
    assert max(run.pipeline.read_tokens) <= tokens
    run.right(*requests)


def test_what_the_prefix_cache_has_takes_no_steps() -> None:
    run = reading()
    run.add(first := sequence(1, 10 * BUDGET, 5))
    run.finish_all()
    told = (*first.generation.prompt.tokens, *run.tokens[1])
    next_turn = sequence(2, 5, 3)
    run.add(
        request := sequence_request(
            2, (*told, *next_turn.generation.prompt.tokens), 3, ignore_eos=True
        )
    )
    assert steps_to_first_token(run, 2) == 1
    run.finish_all()
    run.right(request)


def test_choices_of_one_prompt_read_it_once() -> None:
    run = reading()
    prompt = sequence(1, 5 * BUDGET, 5).generation.prompt.tokens
    choices = [sequence(i, 1, 4) for i in range(1, 5)]
    choices = [sequence_request(item.id, prompt, 4, ignore_eos=True) for item in choices]
    run.add(*choices)
    run.finish_all()
    assert sum(run.pipeline.read_tokens) == 5 * BUDGET + 3
    run.right(*choices)


def test_who_is_cancelled_while_its_prompt_is_read_leaves_nothing() -> None:
    run = reading()
    run.add(sequence(1, 10 * BUDGET, 5), other := sequence(2, 3 * BUDGET, 5))
    run.step()
    run.scheduler.cancel(1)
    load = run.finish_all()
    assert (load.used_kv_blocks, load.running_requests) == (0, 0)
    assert 1 not in run.finish
    run.right(other)


def test_who_is_preempted_while_its_prompt_is_read_goes_on_where_it_was() -> None:
    run = reading(43)
    run.add(first := sequence(1, 4, 30))
    run.step()
    run.add(long := sequence(2, 156, 3))
    while not run.scheduler.load().preemptions:
        run.step()
        assert not run.tokens[2]
    run.finish_all()
    run.right(first, long)
    assert sum(run.pipeline.read_tokens) < 2 * len(long.generation.prompt)


def test_a_prompt_whose_piece_is_dropped_is_read_whole() -> None:
    run = reading()
    run.pipeline.drops[-1] = 1
    run.add(request := sequence(1, 5 * BUDGET, 3))
    run.finish_all()
    run.right(request)


def test_who_breaks_a_step_while_its_prompt_is_read_is_found() -> None:
    run = reading()
    bad, good = sequence(1, 5 * BUDGET, 3), sequence(2, 5 * BUDGET, 3)
    run.pipeline.broken_prompts.add(bad.generation.prompt.tokens[:BLOCK])
    run.patience = 10
    run.add(bad, good)
    run.finish_all()
    assert run.finish[1] == BROKEN
    run.right(good)


def test_the_budget_is_what_the_machine_reads_in_the_time() -> None:
    budget = StepBudget(0.5, 4096)
    # Before anything was measured: a large model may take seconds for more.
    assert budget.tokens(streaming=True) == budget.tokens(streaming=False) == MIN_TOKENS
    budget.note(MIN_TOKENS, 0.064)
    assert budget.tokens(streaming=True) == 500
    for _ in range(30):
        budget.note(500, 2)
    assert budget.tokens(streaming=True) == 125
    for _ in range(30):
        budget.note(125, 0.001)
    assert budget.tokens(streaming=True) == 4096


def test_more_is_read_where_nobody_waits_for_the_step() -> None:
    budget = StepBudget(0.5, 4096)
    budget.note(1000, 1)
    assert budget.tokens(streaming=False) == 2 * budget.tokens(streaming=True)


def test_a_large_model_reads_as_much_as_makes_its_steps_worth_it() -> None:
    budget = StepBudget(0.1, 4096)
    budget.note(1000, 1)
    for _ in range(30):
        budget.note(0, 0.5)
    assert budget.tokens(streaming=True) == pytest.approx(1000 * 0.5 * TIMES_BARE, rel=0.01)


def test_steps_that_read_little_do_not_shrink_the_budget() -> None:
    budget = StepBudget(0.5, 4096)
    budget.note(1000, 1)
    for _ in range(30):
        budget.note(8, 0.1)
    assert budget.tokens(streaming=True) == 500


def test_the_budget_never_ends_reading() -> None:
    budget = StepBudget(0.001, 4096)
    budget.note(100, 60)
    assert budget.tokens(streaming=True) == MIN_TOKENS


def test_blocks_that_were_used_the_longest_ago_are_forgotten_first() -> None:
    known = KnownPrefixes(4, BLOCK)
    first, second, third = (known.names([number] * 2 * BLOCK) for number in (1, 2, 3))
    known.note(first)
    known.note(second)
    assert known.length(first) == 2 * BLOCK
    known.note(third)
    assert known.length(second) == 0
    assert known.length(first) == known.length(third) == 2 * BLOCK


def test_a_text_is_known_up_to_where_it_differs() -> None:
    known = KnownPrefixes(100, BLOCK)
    known.note(known.names([*range(5 * BLOCK)]))
    other = [*range(3 * BLOCK), 99, *range(3 * BLOCK + 1, 5 * BLOCK)]
    assert known.length(known.names(other)) == 3 * BLOCK
    assert known.length(known.names(other[1:])) == 0


def test_a_step_has_as_many_rows_as_the_kernels_like() -> None:
    run = Run(2000, StepBudget(0, 2 * ROWS + 50))
    run.add(sequence(1, 1, 60), sequence(2, 1, 60))
    run.step()
    run.add(sequence(3, 6 * ROWS, 2))
    run.step()
    assert run.pipeline.read_tokens[-1] == 2 * ROWS - BLOCK
    assert run.pipeline.read_tokens[-1] + 2 <= 2 * ROWS


def test_so_has_one_that_reads_short_prompts() -> None:
    run = Run(2000, FixedBudget(2 * ROWS - 1))
    run.add(*(sequence(i, ROWS // 4, 2) for i in range(1, 9)))
    run.step()
    assert run.pipeline.read_tokens == [ROWS]
