"""Scheduling over a pool of KV blocks that must never run out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.contract.generation import SEED_STEP, Sampling
from ovchat_server.engine.contract.messages import BROKEN, REFUSED
from ovchat_server.engine.scheduling.kv_pool import LOOK_AHEAD_TOKENS, KvPool
from ovchat_server.engine.scheduling.scheduler import MAX_DROPS, Scheduler
from ovchat_server.engine.scheduling.step_budget import StepBudget
from tests.sequence_requests import sequence_request
from tests.unit.scheduler_tools import BLOCK, Handle, Pipeline, Run, alone, sequence

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores


def test_a_sequence_gives_its_tokens_one_a_step() -> None:
    run = Run(16)
    request = sequence(1, 5, 6)
    run.add(request)
    for count in range(1, 7):
        run.step()
        assert len(run.tokens[1]) == count
    run.right(request)
    assert not run.scheduler.busy


def test_a_sequence_may_end_by_itself() -> None:
    requests = (sequence_request(1, (start,), 500) for start in range(8, 50))
    request = next(request for request in requests if alone(request)[1] == "stop")
    run = Run(200)
    run.add(request)
    run.finish_all()
    run.right(request)
    assert run.finish[1] == "stop"


def test_sequences_run_together_and_in_the_order_of_coming() -> None:
    run = Run(64)
    requests = [sequence(i, 4, 5) for i in range(1, 6)]
    run.add(*requests)
    load = run.step()
    assert (load.running_requests, load.waiting_requests, load.peak_batch_size) == (5, 0, 5)
    assert run.pipeline.added == [1, 2, 3, 4, 5]
    run.finish_all()
    run.right(*requests)


def test_what_does_not_fit_waits_and_nothing_overtakes_it() -> None:
    run = Run(10)
    first, long, short = sequence(1, 16, 4), sequence(2, 20, 2), sequence(3, 1, 2)
    run.add(first, long, short)
    load = run.step()
    assert run.pipeline.added == [1]
    assert (load.running_requests, load.waiting_requests) == (1, 2)
    run.finish_all()
    assert run.pipeline.added == [1, 2, 3]
    run.right(first, long, short)


def test_the_longest_sequence_that_is_promised_fits_alone() -> None:
    run = Run(6)
    context = run.max_length(1)
    request = sequence(1, context - 5, 5)
    run.add(request)
    run.finish_all()
    run.right(request)


def preempting() -> tuple[Run, list[SequenceRequest]]:
    """A run up to its first preemption: the sequences grow until one must go."""
    run = Run(12)
    requests = [sequence(i, 6, 20, sampling=Sampling(seed=100)) for i in (1, 2, 3)]
    run.add(*requests)
    for _ in range(60):
        if run.step().preemptions:
            return run, requests
    raise AssertionError("nothing was preempted")


def test_the_youngest_gives_up_its_place() -> None:
    run, _ = preempting()
    load = run.scheduler.load()
    assert (load.running_requests, load.waiting_requests) == (2, 1)
    lengths = {i: len(run.tokens[i]) for i in (1, 2, 3)}
    run.step()
    assert {i for i, length in lengths.items() if len(run.tokens[i]) > length} == {1, 2}


def test_a_preempted_sequence_goes_on_where_it_was() -> None:
    run, requests = preempting()
    run.finish_all()
    run.right(*requests)
    assert run.pipeline.added.count(3) > 1
    assert run.pipeline.added.count(1) == 1


def test_a_preempted_sequence_comes_back_before_those_that_wait() -> None:
    run = Run(12)
    requests = [sequence(i, 6, 20) for i in range(1, 7)]
    run.add(*requests)
    assert run.step().waiting_requests == 1
    run.finish_all()
    added = run.pipeline.added
    assert added.count(5) > 1
    assert added.index(5, added.index(5) + 1) < added.index(6)
    run.right(*requests)


def test_who_said_how_long_its_answer_may_become_begins_when_there_is_room_for_all_of_it() -> None:
    run = Run(14)
    requests = [sequence(i, 6, 20, reserve_max_tokens=True) for i in (1, 2, 3)]
    run.add(*requests)
    load = run.step()
    assert (load.running_requests, load.waiting_requests) == (2, 1)
    load = run.finish_all()
    assert load.preemptions == 0
    run.right(*requests)


def test_who_kept_to_what_it_asked_for_is_not_preempted_for_those_that_grow() -> None:
    run = Run(12)
    growing = sequence(1, 6, 40)
    reserved = sequence(2, 6, 20, reserve_max_tokens=True)
    run.add(growing, reserved)
    run.finish_all()
    assert run.pipeline.added.count(1) > 1
    assert run.pipeline.added.count(2) == 1
    run.right(growing, reserved)


def test_what_is_kept_for_an_answer_is_all_that_it_needs() -> None:
    """As many as the pool has room for to the last block, and no more."""
    each = -(-(6 + 20 + LOOK_AHEAD_TOKENS) // BLOCK)
    run = Run(3 * each)
    run.add(*(sequence(i, 6, 20, reserve_max_tokens=True) for i in (1, 2, 3)))
    assert run.step().running_requests == 3


def test_a_resumed_sequence_does_not_draw_the_same_random_numbers_again() -> None:
    run, _ = preempting()
    done = len(run.tokens[3])
    run.finish_all()
    assert [request.generation.sampling.seed for request in run.pipeline.requests[3]][:2] == [
        100,
        (100 + done * SEED_STEP) % 2**32,
    ]


def test_seeds_stay_within_what_the_engine_takes() -> None:
    run = Run(12)
    requests = [sequence(i, 6, 20, sampling=Sampling(seed=2**32 - 1)) for i in (1, 2, 3)]
    run.add(*requests)
    run.finish_all()
    seeds = [request.generation.sampling.seed for request in run.pipeline.requests[3]]
    assert len(seeds) > 1
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_a_running_sequence_can_be_cancelled() -> None:
    run = Run(32)
    first, second = sequence(1, 4, 9), sequence(2, 4, 9)
    run.add(first, second)
    run.step()
    run.scheduler.cancel(1)
    held = run.scheduler.load().used_kv_blocks
    run.step()
    assert run.scheduler.load().used_kv_blocks < held
    run.finish_all()
    assert len(run.tokens[1]) == 1
    run.right(second)


def test_a_waiting_sequence_can_be_cancelled() -> None:
    run = Run(6)
    first, second = sequence(1, 8, 6), sequence(2, 8, 6)
    run.add(first, second)
    run.step()
    run.scheduler.cancel(2)
    assert run.scheduler.load().waiting_requests == 0
    run.finish_all()
    assert run.pipeline.added == [1]
    run.right(first)


def test_a_preempted_sequence_can_be_cancelled() -> None:
    run, requests = preempting()
    run.scheduler.cancel(3)
    run.finish_all()
    assert run.pipeline.added.count(3) == 1
    run.right(*requests[:2])


def test_the_blocks_of_a_cancelled_sequence_are_free_one_step_later() -> None:
    run = Run(6)
    first, second = sequence(1, 12, 4), sequence(2, 12, 4)
    run.add(first, second)
    run.step()
    run.scheduler.cancel(1)
    run.step()
    assert run.pipeline.added == [1]
    run.step()
    assert run.pipeline.added == [1, 2]
    run.finish_all()
    run.right(second)


@pytest.mark.parametrize("identifier", [1, 99])
def test_cancelling_what_is_not_there_is_no_error(identifier: int) -> None:
    run = Run(16)
    run.add(sequence(1, 4, 2))
    run.finish_all()
    run.scheduler.cancel(identifier)
    assert not run.scheduler.busy


def test_a_scheduler_is_busy_until_the_last_blocks_are_free() -> None:
    run = Run(16)
    run.add(sequence(1, 4, 9))
    run.step()
    run.scheduler.cancel(1)
    assert run.scheduler.busy
    assert run.step().used_kv_blocks == 0
    assert not run.scheduler.busy


def test_a_dropped_sequence_is_offered_again() -> None:
    run = Run(32)
    requests = [sequence(i, 4, 6) for i in (1, 2, 3)]
    run.pipeline.drops = {2: MAX_DROPS}
    run.add(*requests)
    run.finish_all()
    assert run.pipeline.added.count(2) == MAX_DROPS + 1
    run.right(*requests)


def test_dropped_sequences_keep_their_order() -> None:
    run = Run(32)
    requests = [sequence(i, 4, 6) for i in (1, 2, 3)]
    run.pipeline.drops = {1: 1, 2: 1, 3: 1}
    run.add(*requests)
    run.finish_all()
    assert run.pipeline.added == [1, 2, 3, 1, 2, 3]


def test_a_sequence_that_is_dropped_for_ever_is_told() -> None:
    run = Run(32)
    run.pipeline.drops = {1: MAX_DROPS + 1}
    run.add(sequence(1, 4, 6))
    run.add(sequence(2, 4, 6))
    run.finish_all()
    assert run.finish == {1: BROKEN, 2: "length"}
    assert run.reasons == {1: "the pipeline kept dropping it"}


def test_load_counts_what_was_done_and_goes_back_to_nothing() -> None:
    run, requests = preempting()
    load = run.finish_all()
    assert (load.running_requests, load.waiting_requests, load.used_kv_blocks) == (0, 0, 0)
    assert load.generated_tokens == sum(request.generation.max_tokens for request in requests)
    assert load.preemptions >= 1
    assert load.peak_batch_size == 3
    assert load.total_kv_blocks == 12


def test_a_sequence_that_the_pipeline_refuses_ends_alone() -> None:
    class Picky(Pipeline):
        def add(
            self, request: SequenceRequest, answered: int, scores: PromptScores | None
        ) -> Handle:
            if request.id == 2:
                raise RuntimeError("no thanks")
            return super().add(request, answered, scores)

    scheduler = Scheduler(Picky(64), KvPool(64, BLOCK), StepBudget(0, 1000), print, lambda _: True)
    requests = [sequence_request(number, (number,), 6) for number in (1, 2, 3)]
    for request in requests:
        scheduler.add(request)

    got: dict[int, tuple[list[int], str | None]] = {}
    while scheduler.busy:
        for news in scheduler.step().outputs:
            tokens, _ = got.get(news.id, ([], None))
            got[news.id] = (tokens + news.tokens, news.finish)

    assert got == {1: alone(requests[0]), 2: ([], REFUSED), 3: alone(requests[2])}
    assert scheduler.load().running_requests == 0
