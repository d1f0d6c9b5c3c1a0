"""A sequence is added anew with what is proposed, and with what came where that was wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.engine.contract.generation import GenerationRequest
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.speculation import Speculation
from ovchat_server.engine.genai.speculating_handle import SpeculatingHandle
from ovchat_server.engine.scheduling.prompt_lookup import PromptLookup
from ovchat_server.engine.scheduling.steps import Output

if TYPE_CHECKING:
    from ovchat_server.engine.genai.proposal_check import ProposalCheck

# Two tokens into the second block; what follows 1, 2, 3 is 4, 5 and so on.
TEXT = (*range(10, 34), *range(1, 9), 1, 2)
END = 7


@dataclass
class Inside:
    request: GenerationRequest
    check: ProposalCheck | None
    outputs: list[Output] = field(default_factory=list)
    answered: int = 0
    cached: int | None = 0
    cancelled: bool = False

    def take(self) -> list[Output]:
        self.answered += 1
        outputs, self.outputs = self.outputs, []
        return outputs

    def cancel(self) -> None:
        self.cancelled = True


class Pipeline:
    block_size = 32

    def __init__(self) -> None:
        self.added: list[Inside] = []

    def stops(self, request: GenerationRequest) -> set[int]:
        del request
        return {END}

    def proposer(self, request: GenerationRequest) -> PromptLookup:
        size = request.speculation.max_ngram_size
        return PromptLookup(request.prompt.tokens, size, self.stops(request))

    def add_sequence(
        self, request: GenerationRequest, logits: Any, scores: Any = None, check: Any = None
    ) -> Any:
        del logits, scores
        self.added.append(Inside(request, check))
        return self.added[-1]


class Running:
    """A sequence behind which 3 and 4 came, one after the other."""

    def __init__(self, **fields: Any) -> None:
        self.pipeline = Pipeline()
        request = GenerationRequest(Prompt(TEXT), 20, speculation=Speculation(8, 2), **fields)
        self.handle = SpeculatingHandle(self.pipeline, request, None, None)
        self.came(Output([3], [0.0]))
        self.came(Output([4], [0.0]))

    def came(self, output: Output) -> list[Output]:
        self.pipeline.added[-1].outputs.append(output)
        return self.handle.take()

    @property
    def added(self) -> tuple[tuple[int, ...], int]:
        """The last one: its text behind the prompt, and how much of that is checked."""
        last = self.pipeline.added[-1]
        checked = len(last.check.proposed) if last.check else 0
        return last.request.prompt.tokens[len(TEXT) :], checked


def test_a_sequence_is_added_with_what_is_proposed_and_goes_on_if_that_was_right() -> None:
    running = Running()
    assert running.handle.prepare(0) == 1
    assert running.handle.prepare(2) == 3
    assert running.added == ((3, 4, 5, 6), 2)
    assert running.pipeline.added[0].cancelled
    assert running.pipeline.added[1].request.max_tokens == 16
    running.came(Output([5, 6, 9], [0.0] * 3, accepted=2))
    assert running.handle.prepare(0) == 1
    assert len(running.pipeline.added) == 2
    assert running.handle.answered == 5


def test_it_is_added_again_with_what_came_if_that_was_wrong() -> None:
    running = Running()
    running.handle.prepare(2)
    running.came(Output([5, 9], [0.0] * 2, accepted=1, rejected=1))
    # The last token that was decoded, and those that came.
    assert running.handle.prepare(0) == 3
    assert running.added == ((3, 4, 5, 9), 0)


def test_an_answer_ends_at_a_stop_token_in_place_of_what_was_proposed() -> None:
    running = Running()
    running.handle.prepare(2)
    [told] = running.came(Output([5, END], [0.0] * 2, accepted=1, rejected=1))
    assert (told.tokens, told.finish, told.runs) == ([5, END], "stop", True)
    assert running.handle.ended


def test_it_goes_on_without_where_nothing_came_of_a_check() -> None:
    running = Running()
    running.handle.prepare(2)
    assert running.came(Output([], [], rejected=2)) == []
    running.handle.prepare(0)
    assert running.added == ((3, 4), 0)
    running.came(Output([5], [0.0]))
    assert not running.handle.chances()
    assert running.handle.answered == 3


@pytest.mark.parametrize(("length", "expected"), [(28, 2), (29, 1), (30, 0), (31, 0), (32, 2)])
def test_tokens_are_proposed_within_a_block(length: int, expected: int) -> None:
    """With 3 and 4, a text of 30 fills one; one of 31 begins another, of which nothing is read."""
    running = Running()
    text = TEXT[-length:] if length <= len(TEXT) else (*range(50, 50 + length - len(TEXT)), *TEXT)
    request = GenerationRequest(Prompt(text), 20, speculation=Speculation(8, 2))
    running.handle = SpeculatingHandle(running.pipeline, request, None, None)
    running.came(Output([3], [0.0]))
    running.came(Output([4], [0.0]))
    assert len(running.handle.chances()) == expected
