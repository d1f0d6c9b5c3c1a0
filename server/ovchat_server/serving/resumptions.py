"""How to resume the grammar of an answer with tool calls in its middle, after a preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.engine.contract.generation import Resumption
from ovchat_server.grammar.formats import Reasoning, grammar_text
from ovchat_server.serving.reasoning import reasoned_or_not

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.chat.dialects.call_format import CalledTool, CallFormat
    from ovchat_server.domain.json_value import JsonObject

NOTHING: JsonObject = {"type": "regex", "pattern": "()"}


def resumptions(
    calls: CallFormat,
    tools: Sequence[CalledTool],
    plain: JsonObject,
    reasoning: Reasoning | None,
    *,
    parallel: bool,
) -> Iterator[Resumption]:
    """Yield how an answer continues, wherever it was interrupted.

    Reasoning is only at the beginning, and what looks like a mark inside of it, or inside of a
    call, is none.

    Args:
        calls: How the model writes calls.
        tools: The tools that it may call.
        plain: The format of text that may hold calls.
        reasoning: How the model reasons before it; None if it does not.
        parallel: Whether text may follow a call.
    """
    rest = grammar_text(plain)
    # An end that arguments may contain as well does not tell that a call has ended.
    ends = tuple(end for end in calls.ends(tools) if len(end) > 1)
    if reasoning is None or not reasoning.opened:
        yield Resumption("", rest, calls.triggers)
    for trigger in calls.triggers:
        yield Resumption(trigger, "", ends or calls.triggers)
    for end in ends:
        yield Resumption(end, rest if parallel else grammar_text(NOTHING), calls.triggers)
    if reasoning is not None:
        inside = Reasoning(reasoning.opens, reasoning.closes, opened=True)
        thinking = grammar_text(reasoned_or_not(plain, inside))
        begins = "" if reasoning.opened else reasoning.opens
        yield Resumption(begins, thinking, (reasoning.closes,))
        yield Resumption(reasoning.closes, rest, calls.triggers)
