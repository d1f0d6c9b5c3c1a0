"""Scheduling over a pool of KV blocks that must never run out."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovchat_server.engine.messages import REFUSED, Add, Load
from ovchat_server.engine.scheduler import MAX_DROPS, DroppedError, Scheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK = 4
END = 7


def next_token(tokens: Sequence[int]) -> int:
    """What the model says next: depends on all that came before, as a real one's does."""
    return hash(tuple(tokens)) % 50


def alone(request: Add) -> tuple[list[int], str]:
    """What a sequence gives when it is never disturbed."""
    tokens = list(request.prompt)
    for _ in range(request.max_tokens):
        tokens.append(next_token(tokens))
        if tokens[-1] == END:
            return tokens[len(request.prompt) :], "stop"
    return tokens[len(request.prompt) :], "length"


@dataclass
class Handle:
    """A sequence inside the fake; its tokens are read once, as genai's are."""

    tokens: list[int]
    left: int
    seed: int
    unread: list[int] = field(default_factory=list)
    finish: str | None = None
    cancelled: bool = False
    gave_up: bool = False

    @property
    def blocks(self) -> int:
        """Blocks for all tokens and the one that comes."""
        return -(-(len(self.tokens) + 1) // BLOCK)

    def take(self) -> tuple[list[int], str | None]:
        assert not self.cancelled, "a cancelled sequence is not read"
        taken, self.unread = self.unread, []
        return taken, self.finish

    def dropped(self) -> bool:
        return self.gave_up

    def cancel(self) -> None:
        self.cancelled = True


class Pipeline:
    """genai's pool, exactly: a step takes blocks, and gives back those of who leaves at its end."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.inside: list[Handle] = []
        self.peak = 0
        self.added: list[int] = []
        self.seeds: dict[int, list[int]] = {}
        self.drops: dict[int, int] = {}
        self._fresh: list[tuple[int, Handle]] = []

    def add(self, request: Add, prompt: Sequence[int], max_tokens: int, seed: int) -> Handle:
        assert max_tokens >= 1
        assert len(prompt) + max_tokens == len(request.prompt) + request.max_tokens
        handle = Handle(list(prompt), max_tokens, seed)
        self._fresh.append((request.id, handle))
        self.added.append(request.id)
        self.seeds.setdefault(request.id, []).append(seed)
        return handle

    def step(self) -> None:
        leaving = any(handle.cancelled for handle in self.inside)
        for identifier, handle in self._fresh:
            # genai may drop what is added in the step that frees another's blocks.
            handle.gave_up = leaving or self.drops.get(identifier, 0) > 0
            self.drops[identifier] = self.drops.get(identifier, 0) - 1
            if not handle.gave_up:
                self.inside.append(handle)
        self._fresh.clear()
        used = sum(handle.blocks for handle in self.inside)
        assert used <= self.total, "the KV cache ran out"
        self.peak = max(self.peak, used)
        for handle in self.inside:
            if handle.cancelled:
                continue
            handle.tokens.append(next_token(handle.tokens))
            handle.unread.append(handle.tokens[-1])
            handle.left -= 1
            if handle.tokens[-1] == END:
                handle.finish = "stop"
            elif handle.left == 0:
                handle.finish = "length"
        self.inside = [h for h in self.inside if not h.cancelled and h.finish is None]


class Run:
    """A scheduler over the fake, and what its reports said."""

    def __init__(self, total: int) -> None:
        self.pipeline = Pipeline(total)
        self.scheduler = Scheduler(self.pipeline, total, BLOCK)
        self.total = total
        self.tokens: dict[int, list[int]] = {}
        self.finish: dict[int, str] = {}

    def add(self, *requests: Add) -> None:
        for request in requests:
            self.tokens[request.id] = []
            self.scheduler.add(request)

    def step(self) -> Load:
        report = self.scheduler.step()
        assert len({item.id for item in report.news}) == len(report.news)
        for item in report.news:
            assert item.id not in self.finish, "news of a sequence that ended"
            self.tokens[item.id] += item.tokens
            if item.finish is not None:
                self.finish[item.id] = item.finish
        assert report.load.used_kv_blocks <= report.load.total_kv_blocks == self.total
        return report.load

    def finish_all(self) -> Load:
        silent = 0
        load = self.scheduler.load()
        while self.scheduler.busy:
            before = load.generated_tokens
            load = self.step()
            silent = 0 if load.generated_tokens > before else silent + 1
            # One step frees blocks, the next one runs again.
            assert silent < 3, "no progress"
        return load

    def right(self, *requests: Add) -> None:
        for request in requests:
            expected = alone(request)
            assert (self.tokens[request.id], self.finish[request.id]) == expected


def sequence(identifier: int, prompt: int, answer: int, seed: int = 0) -> Add:
    """A sequence whose model says `answer` tokens, none of them the end."""
    for start in range(10_000):
        tokens = tuple(random.Random(f"{identifier}:{start}").choices(range(8, 50), k=prompt))
        request = Add(identifier, tokens, answer, 0.0, 1.0, 0, seed)
        if len(alone(request)[0]) == answer:
            return request
    raise AssertionError("no such sequence")


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
    requests = (Add(1, (start,), 500, 0.0, 1.0, 0, 0) for start in range(8, 50))
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
    context = run.scheduler.context_length
    request = sequence(1, context - 5, 5)
    run.add(request)
    run.finish_all()
    run.right(request)


def preempting() -> tuple[Run, list[Add]]:
    """A run up to its first preemption: the sequences grow until one must go."""
    run = Run(12)
    requests = [sequence(i, 6, 20, seed=100) for i in (1, 2, 3)]
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


def test_a_resumed_sequence_does_not_draw_the_same_random_numbers_again() -> None:
    run, _ = preempting()
    done = len(run.tokens[3])
    run.finish_all()
    assert run.pipeline.seeds[3][:2] == [100, 100 + done]


def test_seeds_stay_within_what_the_engine_takes() -> None:
    run = Run(12)
    requests = [sequence(i, 6, 20, seed=2**32 - 1) for i in (1, 2, 3)]
    run.add(*requests)
    run.finish_all()
    assert len(run.pipeline.seeds[3]) > 1
    assert all(0 <= seed < 2**32 for seed in run.pipeline.seeds[3])


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
    for _ in range(MAX_DROPS):
        run.step()
    with pytest.raises(DroppedError):
        run.step()


def test_load_counts_what_was_done_and_goes_back_to_nothing() -> None:
    run, requests = preempting()
    load = run.finish_all()
    assert (load.running_requests, load.waiting_requests, load.used_kv_blocks) == (0, 0, 0)
    assert load.generated_tokens == sum(request.max_tokens for request in requests)
    assert load.preemptions >= 1
    assert load.peak_batch_size == 3
    assert load.total_kv_blocks == 12


WORK = st.lists(
    st.tuples(
        st.integers(1, 30),  # length of the prompt
        st.integers(1, 30),  # most tokens of the answer
        st.integers(0, 12),  # steps before it comes
        st.one_of(st.none(), st.integers(0, 40)),  # steps before it is cancelled
        st.integers(0, 1),  # times it is dropped
    ),
    min_size=1,
    max_size=12,
)


@given(work=WORK, total=st.integers(4, 40), seed=st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_any_load_ends_complete_and_right(
    work: list[tuple[int, int, int, int | None, int]], total: int, seed: int
) -> None:
    run = Run(total)
    chance = random.Random(seed)
    coming: list[tuple[int, Add]] = []
    cancels: dict[int, int] = {}
    for identifier, (prompt, answer, start, cancelled, drops) in enumerate(work):
        # What a server refuses does not come here: see context_length.
        prompt = min(prompt, run.scheduler.context_length - 1)  # noqa: PLW2901
        answer = min(answer, run.scheduler.context_length - prompt)  # noqa: PLW2901
        tokens = tuple(chance.choices(range(8, 50), k=prompt))
        coming.append((start, Add(identifier, tokens, answer, 0.0, 1.0, 0, identifier)))
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
        expected, _ = alone(request)
        assert run.tokens[request.id] == expected[: len(run.tokens[request.id])]
    assert run.pipeline.peak <= total
    assert (load.running_requests, load.waiting_requests, load.used_kv_blocks) == (0, 0, 0)
    assert load.generated_tokens == sum(map(len, run.tokens.values()))


def test_a_sequence_that_the_pipeline_refuses_ends_alone() -> None:
    class Picky(Pipeline):
        def add(self, request: Add, prompt: Sequence[int], max_tokens: int, seed: int) -> Handle:
            if request.id == 2:
                raise RuntimeError("no thanks")
            return super().add(request, prompt, max_tokens, seed)

    scheduler = Scheduler(Picky(64), 64, BLOCK)
    requests = [
        Add(id=number, prompt=(number,), max_tokens=6, temperature=0, top_p=1, top_k=0, seed=0)
        for number in (1, 2, 3)
    ]
    for request in requests:
        scheduler.add(request)

    got: dict[int, tuple[list[int], str | None]] = {}
    while scheduler.busy:
        for news in scheduler.step().news:
            tokens, _ = got.get(news.id, ([], None))
            got[news.id] = (tokens + news.tokens, news.finish)

    assert got == {1: alone(requests[0]), 2: ([], REFUSED), 3: alone(requests[2])}
    assert scheduler.load().running_requests == 0
