"""Beam searches in the pool, and whatever else a preempted sequence must not lose."""

from __future__ import annotations

import dataclasses
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.engine.contract.generation import SEED_STEP, BeamSearch, Sampling
from ovchat_server.engine.scheduling.kv_pool import LOOK_AHEAD_TOKENS
from ovchat_server.engine.scheduling.scheduler import MAX_DROPS
from ovchat_server.engine.scheduling.step_budget import StepBudget
from tests.effort import examples
from tests.sequence_requests import changed, sequence_request
from tests.unit.scheduler_tools import BLOCK, END, Run, alone, found_alone, search, sequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.generation_messages import SequenceRequest


def test_a_search_says_nothing_before_it_ends_and_then_all() -> None:
    run = Run(64)
    request = search(1, 5, 6, width=4, returned=2)
    run.add(request)
    for _ in range(5):
        run.step()
        assert run.answers[1] == [[], []]
    run.step()
    run.right(request)
    assert not run.scheduler.busy


def test_a_search_counts_the_blocks_of_all_its_beams() -> None:
    run = Run(64)
    run.add(search(1, 6, 10, width=3))
    used = [run.step().used_kv_blocks for _ in range(4)]
    tokens = [6 + steps + LOOK_AHEAD_TOKENS for steps in range(1, 5)]
    assert used == [-(-count // BLOCK) * 3 for count in tokens]


def test_a_search_that_does_not_fit_waits() -> None:
    run = Run(20)
    first, second = search(1, 7, 5, width=4), search(2, 7, 5, width=4)
    run.add(first, second)
    load = run.step()
    assert (load.running_requests, load.waiting_requests) == (1, 1)
    run.finish_all()
    run.right(first, second)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("total", [8, 13, 32])
def test_the_longest_search_that_is_promised_fits_alone(width: int, total: int) -> None:
    run = Run(total)
    length = run.max_length(width)
    if length < 2:
        pytest.skip("nothing is promised")
    request = search(1, length - 1, 1, width) if length < 8 else search(1, length - 5, 5, width)
    run.add(request)
    run.finish_all()
    run.right(request)


def test_a_wider_search_is_promised_less() -> None:
    run = Run(41)
    lengths = [run.max_length(width) for width in (1, 2, 4, 8, 40, 41)]
    assert lengths == [40 * BLOCK - 2, 20 * BLOCK - 2, 10 * BLOCK - 2, 5 * BLOCK - 2, BLOCK - 2, 0]
    assert run.max_length(1) == lengths[0]


def test_a_search_keeps_its_place_to_the_end() -> None:
    run = Run(30)
    requests = [search(1, 6, 14, width=4), *(sequence(i, 6, 40) for i in (2, 3))]
    run.add(*requests)
    load = run.finish_all()
    assert load.preemptions > 0
    assert run.pipeline.added.count(1) == 1
    run.right(*requests)


def test_searches_run_together_only_where_there_is_room_for_all_that_they_may_become() -> None:
    run = Run(40)
    requests = [search(i, 4, 30, width=2) for i in (1, 2, 3)]
    run.add(*requests)
    assert run.step().running_requests == 2
    run.finish_all()
    run.right(*requests)


@pytest.mark.parametrize("reserve", [False, True])
def test_a_search_ends_however_many_come_behind_it(reserve: bool) -> None:  # noqa: FBT001
    run = Run(24)
    wanted = search(1, 4, 30, 2)
    run.add(*(sequence(i, 2, 14, grammar="g") for i in (2, 3)), wanted)
    for following in range(4, 400):
        run.add(sequence(following, 4, 14, reserve_max_tokens=reserve))
        run.step()
        if 1 in run.finish:
            run.right(wanted)
            return
    raise AssertionError("it never ended")


def test_a_running_search_can_be_cancelled() -> None:
    run = Run(64)
    request, other = search(1, 6, 20, width=4), sequence(2, 6, 10)
    run.add(request, other)
    run.step()
    run.scheduler.cancel(1)
    load = run.step()
    assert load.running_requests == 1
    assert load.used_kv_blocks < 4
    load = run.finish_all()
    assert run.finishes[1] == {}
    assert load.used_kv_blocks == 0
    run.right(other)


def test_a_dropped_search_is_offered_again() -> None:
    run = Run(64)
    requests = [search(1, 4, 6, width=2), search(2, 4, 6, width=3, returned=1)]
    run.pipeline.drops = {1: MAX_DROPS}
    run.add(*requests)
    run.finish_all()
    assert run.pipeline.added.count(1) == MAX_DROPS + 1
    run.right(*requests)


def test_a_search_that_is_offered_again_counts_from_its_start() -> None:
    run = Run(64)
    run.pipeline.drops = {1: MAX_DROPS}
    run.add(search(1, 4, 6, width=2))
    for _ in range(MAX_DROPS):
        run.step()
    assert run.step().used_kv_blocks == -(-(4 + 1 + LOOK_AHEAD_TOKENS) // BLOCK) * 2


def test_only_sequences_that_were_asked_for_count_as_generated() -> None:
    run = Run(64)
    run.add(search(1, 4, 6, width=5, returned=2))
    assert run.finish_all().generated_tokens == 2 * 6


def resumed(change: Callable[[SequenceRequest], SequenceRequest]) -> tuple[Run, SequenceRequest]:
    """A run in which the third of three sequences was preempted and resumed."""
    run = Run(12)
    requests = [change(sequence(i, 6, 20)) for i in (1, 2, 3)]
    run.add(*requests)
    run.finish_all()
    assert len(run.pipeline.requests[3]) > 1
    run.right(*requests)
    return run, requests[2]


def replaced(**fields: Any) -> Callable[[SequenceRequest], SequenceRequest]:
    return lambda request: changed(request, **fields)


def test_a_resumed_sequence_is_asked_for_what_is_left() -> None:
    run, request = resumed(replaced(min_tokens=15))
    for again in run.pipeline.requests[3]:
        done = len(again.generation.prompt) - len(request.generation.prompt)
        assert again.generation.prompt == request.generation.prompt.followed_by(
            run.tokens[3][:done]
        )
        assert again.generation.max_tokens == 20 - done
        assert again.generation.min_tokens == 15 - done
        assert again.generation.sampling.seed == done * SEED_STEP % 2**32


def test_a_resumed_sequence_never_asks_for_less_than_no_tokens() -> None:
    run, _ = resumed(replaced(min_tokens=1))
    assert [again.generation.min_tokens for again in run.pipeline.requests[3]][1:] == [0] * (
        len(run.pipeline.requests[3]) - 1
    )


def test_a_resumed_sequence_keeps_all_other_wishes() -> None:
    sampling = Sampling(0.5, top_p=0.25, top_k=3, min_p=0.125, repetition_penalty=1.5)
    wishes = {"ignore_eos": True, "stop_tokens": (51, 52), "logprobs": True}
    run, _ = resumed(replaced(sampling=sampling, **wishes))
    for again in run.pipeline.requests[3]:
        assert {name: getattr(again.generation, name) for name in wishes} == wishes
        assert dataclasses.replace(again.generation.sampling, seed=0) == sampling


def test_log_probabilities_stay_with_their_tokens_across_a_preemption() -> None:
    run, request = resumed(replaced(logprobs=True))
    assert len(run.logprobs[request.id][0]) == len(run.tokens[request.id]) == 20


def test_the_end_does_not_come_before_the_fewest_tokens() -> None:
    ending = next(
        request
        for start in range(1000)
        if (request := sequence_request(1, (start,), 40)) and 2 < len(alone(request)[0]) < 20
    )
    length = len(alone(ending)[0])
    run = Run(64)
    longer = changed(ending, id=2, min_tokens=length)
    run.add(ending, longer)
    run.finish_all()
    run.right(ending, longer)
    assert len(run.tokens[2]) > length
    assert END not in run.tokens[2][:length]


SHAPE = st.tuples(
    st.integers(1, 30),  # length of the prompt
    st.integers(1, 30),  # most tokens of the answer
    st.integers(0, 12),  # steps before it comes
    st.one_of(st.none(), st.integers(0, 40)),  # steps before it is cancelled
    st.integers(0, 1),  # times it is dropped
    st.sampled_from([1, 1, 1, 2, 3, 5]),  # beams
    st.sampled_from([0, 0, 3, 12]),  # fewest tokens
    st.booleans(),  # past the end
    st.booleans(),  # log probabilities
    st.booleans(),  # room for all of it is kept
)


@given(work=st.lists(SHAPE, min_size=1, max_size=12), total=st.integers(4, 40), data=st.data())
@examples(200)
def test_any_load_ends_complete_and_right(
    work: list[tuple[int, int, int, int | None, int, int, int, bool, bool, bool]],
    total: int,
    data: st.DataObject,
) -> None:
    run = Run(total, StepBudget(0, data.draw(st.sampled_from([8, 13, 24, 10_000]))))
    chance = random.Random(data.draw(st.integers(0, 1000)))
    coming: list[tuple[int, SequenceRequest]] = []
    cancels: dict[int, int] = {}
    for identifier, shape in enumerate(work):
        prompt, answer, start, cancelled, drops, beams, fewest, past, logprobs, reserve = shape
        # What a server refuses does not come here: see search_length.
        while run.max_length(beams) < 2:
            beams -= 1
        room = run.max_length(beams)
        prompt = min(prompt, room - 1)
        answer = min(answer, room - prompt)
        plain = beams == 1
        request = sequence_request(
            identifier,
            tuple(chance.choices(range(8, 50), k=prompt)),
            answer,
            sampling=Sampling(seed=identifier),
            beam_search=None if plain else BeamSearch(beams, chance.randint(1, beams)),
            min_tokens=min(fewest, answer) if plain else 0,
            ignore_eos=past and plain,
            logprobs=logprobs,
            reserve_max_tokens=reserve,
        )
        coming.append((start, request))
        run.pipeline.drops[identifier] = drops
        if cancelled is not None:
            cancels[identifier] = cancelled
    coming.sort(key=lambda item: item[0])
    for now in range(41):
        run.add(*(request for start, request in coming if start == now))
        for identifier, when in cancels.items():
            if when == now:
                run.scheduler.cancel(identifier)
        if run.scheduler.busy:
            run.step()
    load = run.finish_all()
    run.right(*(request for _, request in coming if request.id not in cancels))
    for _, request in coming:
        for (expected, _), got in zip(found_alone(request), run.answers[request.id], strict=True):
            assert got == expected[: len(got)]
    assert run.pipeline.peak <= total
    assert (load.running_requests, load.waiting_requests, load.used_kv_blocks) == (0, 0, 0)
    said = [tokens for answers in run.answers.values() for tokens in answers]
    assert load.generated_tokens == sum(map(len, said))
