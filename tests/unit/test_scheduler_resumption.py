"""Sequences that may call tools in free text give up their place, and come back with a grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.contract.generation import Resumption
from ovchat_server.engine.scheduling.resumption import resumed
from tests.sequence_requests import changed
from tests.unit.scheduler_tools import END, Run, alone, sequence, text_of

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_messages import SequenceRequest


@pytest.fixture(autouse=True)
def _short_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that fit into the small pools of these tests."""
    monkeypatch.setattr("ovchat_server.engine.scheduling.sequence.CALL_TOKENS", 4)


def marked(identifier: int, prompt: int, answer: int, **grammars: int) -> SequenceRequest:
    """A sequence whose grammar changes with some of its tokens: {grammar: place of the token}."""
    request = sequence(identifier, prompt, answer, grammar="begun")
    said, _ = alone(request)
    resumptions = tuple(
        Resumption(text_of([said[place]]), "" if grammar == "call" else grammar)
        for grammar, place in grammars.items()
    )
    return changed(request, resumptions=resumptions)


CALLS, ENDS = ("<call>",), ("</call>",)
PLAIN = (
    Resumption("", "rest", CALLS),
    Resumption("<call>", "", ENDS),
    Resumption("</call>", "rest", CALLS),
)
# The prompt opened the reasoning, or the answer may.
INSIDE = (
    Resumption("", "thinking", ("</think>",)),
    *PLAIN[1:],
    Resumption("</think>", "rest", CALLS),
)
BEFORE = (
    *PLAIN,
    Resumption("<think>", "thinking", ("</think>",)),
    Resumption("</think>", "rest", CALLS),
)


@pytest.mark.parametrize(
    ("text", "grammar"),
    [
        ("", "begun"),
        ("Hello", "begun"),
        ("Hello <call>", ""),
        ("<call>1</call> well", "rest"),
        ("<call>1</call> well <call>", ""),
    ],
)
def test_the_last_mark_says_how_the_answer_goes_on(text: str, grammar: str) -> None:
    marks = (Resumption("<call>", ""), Resumption("</call>", "rest"))
    assert resumed("begun", marks, text) == grammar


@pytest.mark.parametrize(
    ("marks", "text", "grammar"),
    [
        (PLAIN, "Hello", "rest"),
        (PLAIN, "<call>{'a': '<call>'}</call> well", "rest"),
        (BEFORE, "<call>{'a': '<think>", ""),
        (BEFORE, "<call>{'a': '</think>", ""),
        (BEFORE, "<call>1</call> <think> <call>{'a': '", ""),
        (BEFORE, "<think>I may <call>", "thinking"),
        (BEFORE, "<think>I may <call>1</call>, or <think>", "thinking"),
        (BEFORE, "<think>I may <call></think>well", "rest"),
        (BEFORE, "<think>I may</think>well <call>{'a': '</think>", ""),
        (BEFORE, "<think>I may</think>Write <think> and <call>", ""),
        (BEFORE, "Write <think> and <call>", ""),
        (INSIDE, "I may <call>", "thinking"),
        (INSIDE, "I may <call>1</call>, or", "thinking"),
        (INSIDE, "I may <call></think>well", "rest"),
        (INSIDE, "I may</think><call>{'a': '</think>", ""),
    ],
)
def test_marks_count_only_where_they_mean_something(
    marks: tuple[Resumption, ...], text: str, grammar: str
) -> None:
    assert resumed("begun", marks, text) == grammar


def test_of_marks_at_one_place_the_longest_counts() -> None:
    marks = (Resumption("]", "short"), Resumption("]]", "long"))
    assert resumed("begun", marks, "a]]") == resumed("begun", marks[::-1], "a]]") == "long"


@pytest.mark.parametrize("text", ["Hello <ca", "<call>1</call> <", "<think>so</thi"])
def test_where_a_mark_may_have_begun_no_grammar_can(text: str) -> None:
    assert resumed("begun", BEFORE, text) == ""


def test_without_marks_the_grammar_begins_anew() -> None:
    assert resumed("begun", (), "anything") == "begun"


def test_a_sequence_comes_back_with_the_grammar_of_its_place() -> None:
    run = Run(8)
    requests = [sequence(1, 4, 22), marked(2, 4, 22, rest=1)]
    run.add(*requests)
    run.finish_all()

    run.right(*requests)
    first, *later = run.pipeline.requests[2]
    assert first.generation.grammar == "begun"
    assert later
    assert {request.generation.grammar for request in later} == {"rest"}


def test_a_sequence_inside_of_a_call_gives_up_its_place_last() -> None:
    run = Run(8)
    requests = [sequence(1, 4, 22), marked(2, 4, 22, call=1)]
    run.add(*requests)
    run.finish_all()

    run.right(*requests)
    assert len(run.pipeline.requests[2]) == 1
    assert len(run.pipeline.requests[1]) > 1


def test_where_all_are_inside_of_calls_the_youngest_begins_again_where_it_began() -> None:
    run = Run(8)
    requests = [marked(1, 4, 22, call=1), marked(2, 4, 22, call=1)]
    run.add(*requests)
    run.finish_all()

    run.right(*requests)
    assert len(run.pipeline.requests[1]) == 1
    assert len(run.pipeline.requests[2]) > 1
    assert set(run.pipeline.requests[2]) == {requests[1]}


def test_what_cannot_be_repeated_ends_with_what_it_said() -> None:
    run = Run(8)
    requests = [marked(1, 4, 22, call=1), marked(2, 4, 22, call=1)]
    run.add(*requests)
    while len(run.pipeline.requests.get(2, [])) < 2:
        run.step()
    [repeating] = run.pipeline.inside[-1].beams
    said = [*run.tokens[2]]
    repeating.tokens.append(END + 1 if said[0] != END + 1 else END + 2)
    run.finish_all()

    assert run.tokens[2] == said
    assert run.finish[2] == "length"
    assert {request.generation.grammar for request in run.pipeline.requests[2]} == {"begun"}
    run.right(requests[0])


def test_sequences_that_can_come_back_need_no_place_to_their_end() -> None:
    # Tokens of three prompts and calls, and a block that the last needs besides.
    run = Run(3 * 3 + 1)
    run.add(*(marked(identifier, 4, 22, rest=1) for identifier in (1, 2, 3)))

    run.step()

    assert len(run.pipeline.inside) == 3


@pytest.mark.parametrize(("total", "together"), [(7, 2), (6, 1)])
def test_newcomers_leave_room_for_a_call(total: int, together: int) -> None:
    run = Run(total)
    run.add(marked(1, 4, 14, rest=1), marked(2, 4, 14, rest=1))
    run.step()

    assert len(run.pipeline.inside) == together


def test_an_answer_shorter_than_a_call_needs_no_room_for_one() -> None:
    run = Run(5)
    run.add(marked(1, 4, 2, rest=1), marked(2, 4, 2, rest=1))
    run.step()

    assert len(run.pipeline.inside) == 2


def test_room_for_a_call_does_not_keep_a_sequence_from_running_alone() -> None:
    run = Run(6)
    request = marked(1, 4, 14, rest=1)
    run.add(sequence(2, 4, 14), request)
    run.finish_all()

    run.right(request)


def test_who_waits_for_room_begins_when_the_last_ends_though_another_waits_for_a_grammar() -> None:
    run = Run(8)
    run.scheduler._resume_grammars._compiled = lambda grammar: grammar != "rest"
    whole = marked(2, 4, 12, rest=0)
    back = changed(whole, generated=tuple(alone(whole)[0][:5]))
    first, last = (
        sequence(1, 4, 6, reserve_max_tokens=True),
        sequence(3, 20, 4, reserve_max_tokens=True),
    )
    run.add(first)
    run.step()
    run.add(back, last)
    while 1 not in run.finish:
        run.step()

    assert run.scheduler.busy

    for _ in range(6):
        run.step()
    run.right(last)
