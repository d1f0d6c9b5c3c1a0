"""Where answers in which calls are held to a form can go on, in a dialect's own marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ovchat_server.chat.dialects import granite, hermes
from ovchat_server.chat.dialects.call_format import CalledTool
from ovchat_server.engine.scheduling.resumption import resumed
from ovchat_server.grammar.formats import Reasoning, grammar_text
from ovchat_server.serving.resumptions import NOTHING, resumptions
from tests.grammars import json_format

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.base import ToolDialect

TOOL = CalledTool("f", json_format({"type": "object"}))
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "'
BEFORE, INSIDE = (Reasoning("<think>", "</think>", opened) for opened in (False, True))
REPEAT = ""


def rest(
    dialect: ToolDialect, reasoning: Reasoning | None, text: str, *, parallel: bool = True
) -> str:
    """What follows a text: "plain", "reasoned", "nothing", or a repetition."""
    assert dialect.format is not None
    plain = dialect.format.free([TOOL], parallel=parallel)
    marks = [*resumptions(dialect.format, [TOOL], plain, reasoning, parallel=parallel)]
    names = {REPEAT: REPEAT, grammar_text(plain): "plain", grammar_text(NOTHING): "nothing"}
    return names.get(resumed("begun", marks, text), "reasoned")


@pytest.mark.parametrize(
    ("reasoning", "text", "expected"),
    [
        (None, "Well", "plain"),
        (None, f"{CALL}<tool_call>", REPEAT),
        (None, f'{CALL}"}}}}\n</tool_call> Well', "plain"),
        (BEFORE, "Well, <think>", "plain"),
        (BEFORE, "<think>Well, <tool_call>", "reasoned"),
        (BEFORE, f"<think>Well</think>{CALL}</think>", REPEAT),
        (INSIDE, "Well, I may", "reasoned"),
        (INSIDE, f'Well, {CALL}"}}}}\n</tool_call> or', "reasoned"),
        (INSIDE, "Well</think>I", "plain"),
        (INSIDE, f"Well</think>{CALL}<think>", REPEAT),
    ],
)
def test_an_answer_goes_on_as_its_place_demands(
    reasoning: Reasoning | None, text: str, expected: str
) -> None:
    assert rest(hermes.DIALECT, reasoning, text) == expected


def test_nothing_follows_the_only_call() -> None:
    text = f'{CALL}"}}}}\n</tool_call>'
    assert rest(hermes.DIALECT, None, text, parallel=False) == "nothing"


def test_what_arguments_may_hold_does_not_end_a_call() -> None:
    text = '<|tool_call|>[{"name": "f", "arguments": {"a": [1], "b": '
    assert rest(granite.DIALECT, None, text) == REPEAT
