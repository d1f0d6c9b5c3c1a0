"""What the scheduler does for sequences to which tokens are proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from ovchat_server.engine.contract.speculation import Speculation
from ovchat_server.engine.scheduling.cached_prefixes import KnownPrefixes
from ovchat_server.engine.scheduling.steps import Output
from tests.unit.scheduler_tools import BLOCK, Handle, Pipeline, Run, sequence

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores

LOOKUP = Speculation(4, 2)
LENGTH = 20


class CutHandle(Handle):
    """Ends its answer itself, at the third token; the pipeline knows nothing of it."""

    def take(self) -> list[Output]:
        outputs = super().take()
        if self.answered < 3:
            return outputs
        return [Output(output.tokens, output.logprobs, "stop", cut=True) for output in outputs]


class CutPipeline(Pipeline):
    def add(self, request: SequenceRequest, answered: int, scores: PromptScores | None) -> Handle:
        handle = super().add(request, answered, scores)
        if handle.request.generation.speculates:
            handle.__class__ = CutHandle
        return handle


def test_blocks_of_an_answer_that_was_cut_are_taken_until_they_are_free() -> None:
    """The fake asserts that they never run out, and drops who comes while they are freed."""
    first = sequence(1, LENGTH, 40, speculation=LOOKUP, reserve_max_tokens=True)
    second = sequence(2, LENGTH, 30, reserve_max_tokens=True)
    run = Run(-(-(LENGTH + 42) // BLOCK))
    run.scheduler._pipeline = run.scheduler._reader._pipeline = CutPipeline(run.total)
    run.pipeline = run.scheduler._pipeline
    run.add(first, second)
    run.finish_all()
    assert (len(run.tokens[1]), run.finish[1]) == (3, "stop")
    run.right(second)
    assert run.pipeline.added == [1, 2]


@pytest.mark.parametrize(
    ("found", "read", "expected"),
    [
        pytest.param(0, [], None, id="a new prompt"),
        pytest.param(8, [4, 8], None, id="what was read before was found"),
        pytest.param(4, [4, 8], 4, id="a part of it was not"),
        pytest.param(5, [4, 8], 4, id="nor a part of a block"),
        pytest.param(None, [], 0, id="not known"),
    ],
)
def test_a_handle_is_told_from_where_on_others_have_the_same_blocks(
    found: int | None, read: list[int], expected: int | None
) -> None:
    """The pipeline may not find those of its prompt again."""
    run = Run(100)
    run.add(sequence(1, LENGTH, 5, speculation=LOOKUP))
    run.step()
    [running] = run.scheduler._running
    running.found, running.read_before, running.filled = found, read, None
    running.handle.own = None
    run.step()
    assert running.handle.own == expected


@pytest.mark.parametrize("over", [False, True])
def test_two_that_say_the_same_have_the_same_blocks(*, over: bool) -> None:
    """Whether the first is over or not."""
    run = Run(100)
    first = sequence(1, LENGTH, 3 * BLOCK, ignore_eos=True, speculation=LOOKUP)
    run.add(first)
    for _ in range(2 * BLOCK):
        run.step()
    if over:
        run.finish_all()
    run.add(msgspec.structs.replace(first, id=2))
    run.step()
    running = run.scheduler._running[-1]
    running.handle.own = None
    for _ in range(BLOCK):
        run.step()
    assert running.handle.own == LENGTH


def test_only_what_a_sequence_shares_is_found_by_others() -> None:
    run = Run(100)
    run.add(sequence(1, LENGTH, 9, ignore_eos=True, speculation=LOOKUP))
    run.step()
    [running] = run.scheduler._running
    run.step()
    whole = running.texts()[0]
    assert len(whole) == LENGTH + 2
    running.handle.shared = LENGTH + 1
    run.step()
    assert running.texts() == [whole[: LENGTH + 1], whole[:LENGTH]]


def test_the_pipeline_is_told_of_the_blocks_that_are_free() -> None:
    """So it can give a sequence others, beside those that it has."""
    run = Run(100)
    run.add(sequence(1, LENGTH, 9))
    run.step()
    assert run.pipeline.free_blocks == 100 - run.scheduler._pool.blocks(LENGTH)


def test_blocks_are_remembered_longer_than_they_are_there() -> None:
    known = KnownPrefixes(2, BLOCK)
    text = list(range(3 * BLOCK))
    names = known.names(text)
    assert known.read_before(names) == []
    known.note(names)
    assert known.length(names) < len(text)
    assert known.read_before(names) == [BLOCK, 2 * BLOCK, 3 * BLOCK]
    for number in range(20):
        known.note([number])
    assert known.read_before(names) == []


def test_the_rest_of_an_output_still_runs_and_counts_no_more_proposals_than_tokens() -> None:
    output = Output([1, 2, 3], [0.1, 0.2, 0.3], "stop", accepted=2, rejected=1, cut=True)
    rest = output.without(2)
    assert rest == Output([3], [0.3], "stop", accepted=1, rejected=1, cut=True)
    assert rest.runs
