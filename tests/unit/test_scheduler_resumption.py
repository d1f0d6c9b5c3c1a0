"""Sequences that may call tools in free text give up their place, and come back with a grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from ovchat_server.engine.base import Resumption
from ovchat_server.engine.resumption import resumed
from tests.unit.scheduler_tools import END, Run, alone, sequence, text_of

if TYPE_CHECKING:
    from ovchat_server.engine.messages import Add


def marked(identifier: int, prompt: int, answer: int, **grammars: int) -> Add:
    """A sequence whose grammar changes with some of its tokens: {grammar: place of the token}."""
    request = sequence(identifier, prompt, answer, grammar="begun")
    said, _ = alone(request)
    resumptions = tuple(
        Resumption(text_of([said[place]]), "" if grammar == "call" else grammar)
        for grammar, place in grammars.items()
    )
    return msgspec.structs.replace(request, resumptions=resumptions)


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


def test_without_marks_the_grammar_begins_anew() -> None:
    assert resumed("begun", (), "anything") == "begun"


def test_a_sequence_comes_back_with_the_grammar_of_its_place() -> None:
    run = Run(8)
    requests = [sequence(1, 4, 22), marked(2, 4, 22, rest=1)]
    run.add(*requests)
    run.finish_all()

    run.right(*requests)
    first, *later = run.pipeline.requests[2]
    assert first.grammar == "begun"
    assert later
    assert {request.grammar for request in later} == {"rest"}


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


def test_what_cannot_be_repeated_goes_on_without_a_grammar() -> None:
    run = Run(8)
    requests = [marked(1, 4, 22, call=1), marked(2, 4, 22, call=1)]
    run.add(*requests)
    while len(run.pipeline.requests.get(2, [])) < 2:
        run.step()
    [repeating] = run.pipeline.inside[-1].beams
    said = run.tokens[2]
    repeating.tokens.append(END + 1 if said[0] != END + 1 else END + 2)
    run.finish_all()

    assert run.tokens[2] == alone(requests[1])[0]
    assert [request.grammar for request in run.pipeline.requests[2]][:3] == ["begun", "begun", ""]


def test_sequences_that_can_come_back_need_no_place_to_their_end() -> None:
    run = Run(8)
    run.add(*(marked(identifier, 4, 22, rest=1) for identifier in (1, 2, 3)))

    run.step()

    assert len(run.pipeline.inside) == 3
