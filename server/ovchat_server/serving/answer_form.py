"""What form a chat's answer is held to: as the caller asks for, and as calls are written."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.api.chat import PromptEnding, ToolMode
from ovchat_server.api.errors import ApiError, InvalidRequestError
from ovchat_server.api.grammar_limits import beyond_limits
from ovchat_server.chat.dialects.base import CombinedDialect, ReasoningDialect, ToolDialect
from ovchat_server.chat.dialects.call_form import CalledTool
from ovchat_server.engine.contract.generation import Resumption
from ovchat_server.grammar.formats import (
    Reasoning,
    after_reasoning,
    either,
    form_of,
    grammar_text,
)
from ovchat_server.grammar.json_layout import laid_out
from ovchat_server.grammar.schema.shapes import SchemaError
from ovchat_server.grammar.schema_support import of_objects
from ovchat_server.serving.structured_output import NO_GRAMMAR, Grammar, checked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.api.chat import ChatRequest, Tool
    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.chat.dialects.call_form import CallForm
    from ovchat_server.serving.models import ServedModel
    from ovchat_server.serving.worker_pool import WorkerPool

ANY_ARGUMENTS: JsonObject = {"type": "object"}
NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
NOTHING: JsonObject = {"type": "regex", "pattern": "()"}


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What form an answer has.

    Attributes:
        grammar: What the engine follows.
        bound: The whole answer was asked to have a form: nothing else may stand in it.
        reasoned: Reasoning may come before it.
        trusted: Calls in it are well formed.
        leading: Calls may only begin it.
    """

    grammar: Grammar = NO_GRAMMAR
    bound: bool = False
    reasoned: bool = True
    trusted: bool = False
    leading: bool = False


async def answer_form(
    model: ServedModel, request: ChatRequest, reasoning: Reasoning | None, workers: WorkerPool
) -> AnswerForm:
    """What form the answer to a request has.

    Args:
        model: Who answers.
        request: Says what is asked for.
        reasoning: How the model reasons before it answers; None: it does not.
        workers: Write grammars.

    Raises:
        InvalidRequestError: What is asked for cannot be enforced.
        UnavailableError: Nobody can tell now.
    """
    constraint, choice = request.generation.constraint, request.tool_choice
    offered = choice.mode is not ToolMode.NONE and bool(request.tools)
    if constraint is None and not choice.forced:
        return await _free(model, request, reasoning, workers) if offered else AnswerForm()
    # Without tools no call is forced: reading the request has refused that.
    calls = await workers.run(partial(_calls, model, request)) if offered else []
    if constraint is None or choice.forced:
        form, field, closed = either(*calls), choice.field, False
    else:
        opening = "" if _continues(request) else _answer_opening(model)
        form = await workers.run(partial(form_of, constraint, opening))
        field, closed = constraint.field, constraint.closed
        if calls:
            form, closed = either(*calls, form), False
    text = await checked(model, after_reasoning(form, reasoning), field)
    return AnswerForm(
        Grammar(text, closed),
        bound=True,
        reasoned=reasoning is not None,
        # Where no tag tells a call from the answer, only the whole of it does.
        trusted=choice.forced or _is_told(model),
        leading=not choice.forced,
    )


def reasoning_before(
    model: ServedModel, request: ChatRequest, prompt: str, *, opened: bool
) -> Reasoning | None:
    """How the model reasons before it answers; None where it does not.

    Args:
        model: Who answers.
        request: What it answers.
        prompt: The text of the prompt.
        opened: The prompt ends inside the reasoning.
    """
    dialect = model.dialects.reasoning
    if isinstance(dialect, CombinedDialect):
        return None if _continues(request) else Reasoning(dialect.opening, dialect.closing, opened)
    if not isinstance(dialect, ReasoningDialect):
        return None
    closed = _continues(request) or prompt.rstrip().endswith(dialect.closing)
    return None if closed and not opened else Reasoning(dialect.opening, dialect.closing, opened)


def _calls(model: ServedModel, request: ChatRequest) -> list[JsonValue]:
    """The forms of an answer that calls.

    Raises:
        InvalidRequestError: There is none.
    """
    choice, constraint = request.tool_choice, request.generation.constraint
    written = _call_form(model)
    if written is not None:
        called = _called(request)
        if choice.forced:
            return [written.forced(called, parallel=choice.parallel)]
        return written.instead(called, parallel=choice.parallel)
    field = choice.field if choice.forced or constraint is None else constraint.field
    complaint = (
        "cannot be served: calls of this model cannot be forced."
        if choice.forced
        else "cannot be combined with tools: no grammar knows how this model calls them."
    )
    raise InvalidRequestError.about(field, complaint, "unsupported_value")


async def _free(
    model: ServedModel, request: ChatRequest, reasoning: Reasoning | None, workers: WorkerPool
) -> AnswerForm:
    """Any text, in which calls follow their tools' schemas where the model can be held to them.

    Raises:
        InvalidRequestError: It cannot, but that was asked for.
        UnavailableError: Nobody can tell now, but that was asked for.
    """
    choice, params, written = request.tool_choice, request.generation, _call_form(model)
    unruly = params.beams or params.ending.ignore_eos or params.ending.min_tokens
    holds = written is not None and written.trigger and not (unruly or _continues(request))
    asked = choice.allowed is not None or any(tool.strict for tool in request.tools)
    if holds and written and (model.constrains_calls or asked):
        tools = await workers.run(partial(_called, request))
        plain = written.free(tools, parallel=choice.parallel)
        begun = _reasoned_or_not(plain, reasoning)
        try:
            text = await checked(model, begun, choice.field)
        except ApiError:
            # Nobody asked for a grammar: without one it is answered all the same.
            if asked:
                raise
            return AnswerForm()
        places = _resumptions(written, tools, plain, reasoning, parallel=choice.parallel)
        # Harmony has ways to call that no trigger tells from thoughts about a call.
        trusted = isinstance(model.dialects.tools, ToolDialect)
        return AnswerForm(Grammar(text, resumptions=tuple(places)), trusted=trusted)
    if choice.allowed is not None:
        complaint = "cannot be served: calls of this model cannot be limited."
        raise InvalidRequestError.about(choice.field, complaint, "unsupported_value")
    return AnswerForm()


def _reasoned_or_not(form: JsonObject, reasoning: Reasoning | None) -> JsonObject:
    """Text that may hold calls, after reasoning or instead of it.

    What looks like a call inside the reasoning is held to nothing.
    """
    if reasoning is None:
        return form
    reasoned = after_reasoning(form, reasoning)
    return either(form, reasoned) if reasoning.opened else reasoned


def _resumptions(
    written: CallForm,
    tools: Sequence[CalledTool],
    plain: JsonObject,
    reasoning: Reasoning | None,
    *,
    parallel: bool,
) -> Iterator[Resumption]:
    """How an answer of `_free` goes on, wherever its sequence lost its place.

    Reasoning is only at the beginning, and what looks like a mark inside of it, or inside of a
    call, is none.
    """
    rest = grammar_text(plain)
    # What arguments may hold, too, does not tell that a call has ended.
    ends = tuple(end for end in written.ends(tools) if len(end) > 1)
    if reasoning is None or not reasoning.opened:
        yield Resumption("", rest, written.triggers)
    for trigger in written.triggers:
        yield Resumption(trigger, "", ends or written.triggers)
    for end in ends:
        yield Resumption(end, rest if parallel else grammar_text(NOTHING), written.triggers)
    if reasoning is not None:
        inside = Reasoning(reasoning.opens, reasoning.closes, opened=True)
        thinking = grammar_text(_reasoned_or_not(plain, inside))
        begins = "" if reasoning.opened else reasoning.opens
        yield Resumption(begins, thinking, (reasoning.closes,))
        yield Resumption(reasoning.closes, rest, written.triggers)


def _call_form(model: ServedModel) -> CallForm | None:
    dialect = model.dialects.tools
    return dialect.form if dialect else None


def _is_told(model: ServedModel) -> bool:
    """Whether a call begins as nothing else does."""
    form = _call_form(model)
    return form is not None and bool(form.trigger)


def _answer_opening(model: ServedModel) -> str:
    """What the model writes before an answer that is no call."""
    dialect = model.dialects.reasoning or model.dialects.tools
    return dialect.answer if isinstance(dialect, CombinedDialect) else ""


def _continues(request: ChatRequest) -> bool:
    return request.prompt_ending is PromptEnding.FINAL_MESSAGE


def _called(request: ChatRequest) -> list[CalledTool]:
    """The tools that may be called, with what their arguments are held to."""
    choice = request.tool_choice
    return [_with_schema(tool) for tool in request.tools if choice.allows(tool.name)]


def _with_schema(tool: Tool) -> CalledTool:
    schema = NO_ARGUMENTS if tool.parameters is None else of_objects(tool.parameters)
    # Where it was asked for strictly, reading the request has refused it.
    if not beyond_limits(schema):
        with contextlib.suppress(SchemaError):
            return CalledTool(tool.name, schema, laid_out(schema))
    return CalledTool(tool.name, ANY_ARGUMENTS, laid_out(ANY_ARGUMENTS))
