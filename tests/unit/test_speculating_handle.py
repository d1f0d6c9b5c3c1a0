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
    from collections.abc import Sequence

    from ovchat_server.engine.genai.proposal_check import ProposalCheck

# Two tokens into the second block; what follows 1, 2, 3 is 4, 5 and so on.
TEXT = (*range(20, 40), *range(1, 13), 1, 2)
END = 9


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


@dataclass
class Follower:
    """Of a grammar, as of the logits that it chooses from."""

    tokens: tuple[int, ...]
    closed: bool = False

    def close(self) -> None:
        self.closed = True

    def chosen_by(self, follower: Follower) -> Follower:
        return follower

    def behind(self, tokens: Sequence[int]) -> Follower:
        del tokens
        return self

    @property
    def processor(self) -> None:
        return None


@dataclass
class Followers:
    free: bool = True

    def seconds(self, answered: int, rest: int) -> float:
        return answered + 100 * rest


class Pipeline:
    block_size = 32
    grammars_cleared = 3

    def __init__(self) -> None:
        self.added: list[Inside] = []
        self.followers: Any = Followers()
        self.follower: Any = None

    def follow(self, request: GenerationRequest, tokens: Sequence[int]) -> Any:
        assert request.grammar
        self.follower = Follower(tuple(tokens))
        return self.follower

    def sequence_logits(self, request: GenerationRequest, answered: int) -> Any:
        del request, answered
        return self.follower

    def stops(self, request: GenerationRequest) -> set[int]:
        del request
        return {END}

    def proposer(self, request: GenerationRequest) -> PromptLookup:
        size = request.speculation.max_ngram_size
        return PromptLookup(request.prompt.tokens, size, self.stops(request))

    def answer_salt(self) -> int:
        return 7

    def add_sequence(
        self, request: GenerationRequest, logits: Any, scores: Any = None, check: Any = None
    ) -> Any:
        del logits, scores
        self.added.append(Inside(request, check))
        return self.added[-1]


class Running:
    """A sequence with blocks of its own, behind which 3, 4 and 5 came, one after the other."""

    def __init__(self, text: tuple[int, ...] = TEXT, grammar: str = "") -> None:
        self.pipeline = Pipeline()
        request = GenerationRequest(
            Prompt(text), 20, speculation=Speculation(8, 2), grammar=grammar
        )
        self.handle = SpeculatingHandle(self.pipeline, request, None, None)
        self.came(Output([3], [0.0]))
        self.handle.follow()
        self.handle.prepare(1)
        self.came(Output([4], [0.0]))
        self.came(Output([5], [0.0]))

    def came(self, output: Output) -> list[Output]:
        self.pipeline.added[-1].outputs.append(output)
        return self.handle.take()

    @property
    def added(self) -> tuple[tuple[int, ...], int]:
        """The last one: its text behind the prompt, and how much of that is checked."""
        last = self.pipeline.added[-1]
        checked = len(last.check.proposed) if last.check else 0
        return last.request.prompt.tokens[len(TEXT) :], checked


@pytest.mark.parametrize(
    ("length", "repeats", "place"),
    [
        pytest.param(6, None, None, id="too short for a salt"),
        pytest.param(7, None, 0, id="in the first block"),
        pytest.param(38, None, 0, id="the salt would not fit into the second"),
        pytest.param(39, None, 32, id="but here"),
        pytest.param(200, None, 192, id="far behind"),
        pytest.param(200, 64, 64, id="others have the same blocks"),
    ],
)
def test_first_it_gets_blocks_of_its_own(
    length: int, repeats: int | None, place: int | None
) -> None:
    """What is before others still find. One more token came than the prompt has."""
    pipeline = Pipeline()
    text = (*range(100, 100 + length - 5), 1, 2, 3, 1, 2)
    request = GenerationRequest(Prompt(text), 20, speculation=Speculation(8, 2))
    handle = SpeculatingHandle(pipeline, request, None, None)
    if repeats is not None:
        handle.own_from(repeats)
    pipeline.added[0].outputs.append(Output([3], [0.0]))
    handle.take()
    assert handle.unread == 1
    assert (len(handle.chances()) > 0) == (place is not None)
    if place is None:
        return
    assert handle.known == length + 1 - place
    assert handle.new_blocks == (length + 1) // 32 + 1 - place // 32
    assert handle.prepare(2) == handle.known
    assert handle.shared == length + 1
    added = pipeline.added[-1]
    assert (pipeline.added[0].cancelled, added.check) == (True, None)
    prompt = added.request.prompt
    assert (prompt.tokens, prompt.answer_salt) == ((*text, 3), 7)
    assert prompt.answer_place == place
    # Its block has no name before it generates.
    pipeline.added[1].outputs.append(Output([4], [0.0]))
    handle.take()
    assert not handle.chances()


def test_a_sequence_is_added_with_what_is_proposed_and_goes_on_if_that_was_right() -> None:
    running = Running()
    assert len(running.handle.chances()) == 3
    assert running.handle.prepare(0) == 1
    assert running.handle.prepare(2) == 3
    assert running.added == ((3, 4, 5, 6, 7), 2)
    assert running.pipeline.added[1].cancelled
    assert running.pipeline.added[2].request.max_tokens == 15
    running.came(Output([6, 7, 50], [0.0] * 3, accepted=2))
    assert running.handle.prepare(0) == 1
    assert len(running.pipeline.added) == 3
    assert running.handle.answered == 6


def test_it_is_added_again_with_what_came_if_that_was_wrong() -> None:
    running = Running()
    running.handle.prepare(2)
    running.came(Output([6, 50], [0.0] * 2, accepted=1, rejected=1))
    # The last token that was decoded, and those that came.
    assert running.handle.unread == 3
    assert running.handle.prepare(0) == 3
    assert running.added == ((3, 4, 5, 6, 50), 0)


def test_an_answer_ends_at_a_stop_token_in_place_of_what_was_proposed() -> None:
    running = Running()
    running.handle.prepare(2)
    [told] = running.came(Output([6, END], [0.0] * 2, accepted=1, rejected=1))
    assert (told.tokens, told.finish, told.runs) == ([6, END], "stop", True)
    assert running.handle.ended


def test_it_goes_on_without_where_nothing_came_of_a_check() -> None:
    running = Running()
    running.handle.prepare(2)
    assert running.came(Output([], [], rejected=2)) == []
    running.handle.prepare(0)
    assert running.added == ((3, 4, 5), 0)
    running.came(Output([6], [0.0]))
    assert not running.handle.chances()
    assert running.handle.answered == 4


@pytest.mark.parametrize(("length", "expected"), [(26, 3), (27, 2), (28, 1), (29, 0), (30, 0)])
def test_tokens_are_proposed_within_a_block(length: int, expected: int) -> None:
    """With 3, 4 and 5, a text of 29 fills one; one of 30 begins another, of which none is read."""
    running = Running(TEXT[-length:])
    assert len(running.handle.chances()) == expected


def test_with_the_first_proposal_its_grammar_is_followed_to_its_end() -> None:
    running = Running(grammar="g")
    first, own = running.pipeline.added
    assert (first.request.grammar, own.request.grammar) == ("g", "")
    assert running.pipeline.follower == Follower((3,))
    running.handle.prepare(2)
    assert running.pipeline.added[2].request.grammar == ""
    assert running.pipeline.added[2].check is not None
    running.came(Output([6, END], [0.0] * 2, accepted=1, rejected=1))
    assert running.pipeline.follower.closed


def with_grammar() -> tuple[Pipeline, SpeculatingHandle]:
    """A sequence of which one token came."""
    pipeline = Pipeline()
    request = GenerationRequest(Prompt(TEXT), 20, speculation=Speculation(8, 2), grammar="g")
    handle = SpeculatingHandle(pipeline, request, None, None)
    pipeline.added[0].outputs.append(Output([3], [0.0]))
    handle.take()
    return pipeline, handle


def test_following_takes_time_for_the_tokens_so_far_and_those_to_come() -> None:
    pipeline, handle = with_grammar()
    assert handle.preparation == 1 + 100 * 19
    handle.follow()
    handle.prepare(1)
    assert handle.preparation == 0
    handle.cancel()
    assert pipeline.follower.closed


@pytest.mark.parametrize("reason", ["all are taken", "it would have to be compiled again"])
def test_nothing_is_proposed_where_its_grammar_cannot_be_followed(reason: str) -> None:
    pipeline, handle = with_grammar()
    assert handle.chances()
    if reason == "all are taken":
        pipeline.followers.free = False
    else:
        pipeline.grammars_cleared += 1
    assert not handle.chances()
    # Others may have been chosen in the same step.
    handle.follow()
    assert handle.prepare(1) == 1
    assert len(pipeline.added) == 1


def test_what_cannot_be_followed_after_all_goes_on_with_its_grammar() -> None:
    pipeline, handle = with_grammar()

    pipeline.follow = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    handle.follow()
    assert handle.prepare(1) == 1
    assert not handle.chances()
    assert len(pipeline.added) == 1
