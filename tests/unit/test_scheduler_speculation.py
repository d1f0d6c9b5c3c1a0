"""What the scheduler does for sequences to which tokens are proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    ("length", "found", "lost", "expected"),
    [
        pytest.param(LENGTH, 0, [], True, id="a new prompt"),
        pytest.param(LENGTH, 8, [4, 8], True, id="what was read before was found"),
        pytest.param(LENGTH, 4, [4, 8], False, id="a part of it was not"),
        pytest.param(LENGTH, None, [], False, id="not known"),
    ],
)
def test_nothing_is_proposed_where_blocks_may_not_be_found_again(
    length: int, found: int | None, lost: list[int], *, expected: bool
) -> None:
    run = Run(100)
    run.add(sequence(1, length, 5, speculation=LOOKUP))
    run.step()
    [running] = run.scheduler._running
    running.handle, running.found, running.read_before = CountingHandle(running.added), found, lost
    running.handle.grow()
    running.take(running.handle)
    assert running.handle.proposes == expected


class CountingHandle(Handle):
    proposes = True

    @property
    def answered(self) -> int:
        return 0

    def stop_proposing(self) -> None:
        self.proposes = False


def test_short_prompts_have_nothing_proposed() -> None:
    run = Run(100)
    run.add(sequence(1, 7, 2, speculation=LOOKUP), sequence(2, 8, 2, speculation=LOOKUP))
    run.finish_all()
    [short], [long] = run.pipeline.requests[1], run.pipeline.requests[2]
    assert (short.generation.speculates, long.generation.speculates) == (False, True)
    assert not short.generation.prompt.answer_salt
    assert long.generation.prompt.answer_salt


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
