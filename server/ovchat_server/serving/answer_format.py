"""The stage that turns what an answer must be into the grammar that the engine follows.

A constraint, the tools and the model's reasoning go in. Each schema is written as a grammar once,
in a thread; what was written is shared with other requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.api.chat import ToolMode
from ovchat_server.api.errors import ApiError, InvalidRequestError, Violation
from ovchat_server.api.grammar_limits import beyond_limits
from ovchat_server.chat.dialects.base import CombinedDialect, ToolDialect
from ovchat_server.chat.dialects.call_format import CalledTool
from ovchat_server.grammar.formats import (
    Reasoning,
    after_reasoning,
    after_text,
    constraint_format,
    ebnf_format,
    either,
    grammar_text,
)
from ovchat_server.grammar.schema.shapes import SchemaError
from ovchat_server.grammar.values import json_grammar
from ovchat_server.serving.reasoning import continues, reasoned_or_not
from ovchat_server.serving.resumptions import resumptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.api.chat import ChatRequest, Tool
    from ovchat_server.api.field_path import FieldPath
    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.api.structured_output import Constraint
    from ovchat_server.chat.dialects.call_format import CallFormat
    from ovchat_server.engine.contract.generation import Resumption
    from ovchat_server.grammar.cache import GrammarCache
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.worker_pool import WorkerPool

NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
ANY_ARGUMENTS: JsonObject = {"type": "object"}


@dataclass(frozen=True, slots=True)
class Grammar:
    """What the engine is to follow; see engine.contract.generation.GenerationRequest.

    Attributes:
        text: "": nothing.
    """

    text: str = ""
    closed: bool = False
    resumptions: tuple[Resumption, ...] = ()


NO_GRAMMAR = Grammar()


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The format of a chat's answer.

    Attributes:
        grammar: What the engine follows.
        bound: The whole answer was asked to have a format: nothing else may stand in it.
        reasoned: Reasoning may come before it.
        trusted: Calls in it are well formed.
        leading: Calls may only begin it.
    """

    grammar: Grammar = NO_GRAMMAR
    bound: bool = False
    reasoned: bool = True
    trusted: bool = False
    leading: bool = False


class AnswerFormats:
    """Says which format answers have."""

    def __init__(self, grammars: GrammarCache, workers: WorkerPool) -> None:
        """Write grammars in `workers`, and share what is written of schemas through `grammars`."""
        self._grammars = grammars
        self._workers = workers

    async def of_text(self, model: TextModel, constraint: Constraint | None) -> Grammar:
        """Return the grammar of a whole answer.

        Raises:
            InvalidRequestError: It cannot be followed; says the compiler's reason.
            UnavailableError: Nobody can tell now.
        """
        if constraint is None:
            return NO_GRAMMAR
        answer = await self._workers.run(partial(self._constrained, constraint))
        text = await _checked(model, answer, constraint.field)
        return Grammar(text, constraint.closed)

    async def of_chat(
        self, model: TextModel, request: ChatRequest, reasoning: Reasoning | None
    ) -> AnswerFormat:
        """Return the format of the answer to a chat.

        Args:
            model: Who answers.
            request: Says what is asked for.
            reasoning: How the model reasons before it answers; None: it does not.

        Raises:
            InvalidRequestError: What is asked for cannot be enforced.
            UnavailableError: Nobody can tell now.
        """
        plan = _Plan(model, request, reasoning)
        if not plan.offered and plan.constraint is None:
            return AnswerFormat()
        tools, answer = await self._workers.run(partial(self._written, plan))
        if plan.constraint is None and not plan.choice.forced:
            return await _free(plan, tools)
        calls = _calls(plan, tools) if plan.offered else []
        # Without tools no call is forced: reading the request has refused that.
        if plan.constraint is None or answer is None or plan.choice.forced:
            whole, field, closed = either(*calls), plan.choice.field, False
        else:
            whole, field = either(*calls, answer), plan.constraint.field
            closed = plan.constraint.closed and not calls
        text = await _checked(model, after_reasoning(whole, reasoning), field)
        return AnswerFormat(
            Grammar(text, closed),
            bound=True,
            reasoned=reasoning is not None,
            # Where no mark tells a call from the answer, only the whole of it does.
            trusted=plan.choice.forced or bool(plan.calls and plan.calls.trigger),
            leading=not plan.choice.forced,
        )

    def _written(self, plan: _Plan) -> tuple[list[CalledTool], JsonObject | None]:
        """The tools that may be called, and the format that was asked for.

        Raises:
            InvalidRequestError: Says what of all schemas cannot be enforced.
        """
        faults: list[Violation] = []
        tools: list[CalledTool] = []
        answer = None
        if plan.constraint is not None:
            try:
                answer = after_text(plan.opening, self._constrained(plan.constraint))
            except InvalidRequestError as error:
                faults += error.violations
        for tool in plan.held_tools():
            try:
                tools.append(self._called(tool, plan.calls))
            except SchemaError as error:
                faults.append(_unenforced(tool.field, error))
        if faults:
            raise InvalidRequestError.of(faults)
        return tools, answer

    def _constrained(self, constraint: Constraint) -> JsonObject:
        try:
            return constraint_format(constraint, self._grammars)
        except SchemaError as error:
            raise InvalidRequestError.of([_unenforced(constraint.field, error)]) from error

    def _called(self, tool: Tool, calls: CallFormat | None) -> CalledTool:
        """A tool with what its arguments are held to.

        Raises:
            SchemaError: It is strict, but cannot be enforced.
        """
        write = json_grammar if calls is None else calls.arguments
        schema = NO_ARGUMENTS if tool.parameters is None else of_objects(tool.parameters)
        try:
            # Where it was asked for, reading the request has refused one beyond the limits.
            held = ANY_ARGUMENTS if beyond_limits(schema) else schema
            arguments = self._grammars.grammar(write, held)
        except SchemaError:
            if tool.strict:
                raise
            arguments = self._grammars.grammar(write, ANY_ARGUMENTS)
        return CalledTool(tool.name, ebnf_format(arguments))


class _Plan:
    """What is asked for, and what the model can be held to."""

    def __init__(self, model: TextModel, request: ChatRequest, reasoning: Reasoning | None) -> None:
        self.model = model
        self.reasoning = reasoning
        self.choice = request.tool_choice
        self.constraint = request.generation.constraint
        self.offered = self.choice.mode is not ToolMode.NONE and bool(request.tools)
        dialect = model.dialects.tools
        self.calls = dialect.format if dialect else None
        # Harmony has ways to call that no trigger tells from thoughts about a call.
        self.told = isinstance(dialect, ToolDialect)
        self.opening = "" if continues(request) else _answer_opening(model)
        self.asked = self.choice.allowed is not None or any(tool.strict for tool in request.tools)
        params = request.generation
        unruly = params.beams or params.ending.ignore_eos or params.ending.min_tokens
        # Whether calls that the model makes of its own accord follow their schemas.
        self.holds = (
            self.calls is not None
            and bool(self.calls.trigger)
            and not (unruly or continues(request))
            and (model.constrains_calls or self.asked)
        )
        self._tools = request.tools

    def held_tools(self) -> Iterator[Tool]:
        """The tools whose calls follow a grammar; strict ones are at least looked at."""
        every = self.constraint is not None or self.choice.forced or self.holds
        for tool in self._tools if self.offered else ():
            if self.choice.allows(tool.name) and (every or tool.strict):
                yield tool


def of_objects(schema: JsonObject) -> JsonObject:
    """Return the schema of the objects that follow one: a call's arguments are an object."""
    kinds = schema.get("type", "object")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        return {**schema, "type": "object"}
    # Of another type as well: nothing follows it.
    return {"allOf": [{"type": kinds}, {"type": "object"}]}


def _calls(plan: _Plan, tools: list[CalledTool]) -> list[JsonValue]:
    """The formats of an answer that calls.

    Raises:
        InvalidRequestError: There is none.
    """
    choice = plan.choice
    if plan.calls is not None:
        if choice.forced:
            return [plan.calls.forced(tools, parallel=choice.parallel)]
        return plan.calls.instead(tools, parallel=choice.parallel)
    if choice.forced or plan.constraint is None:
        complaint = "cannot be served: calls of this model cannot be forced."
        raise InvalidRequestError.about(choice.field, complaint, "unsupported_value")
    complaint = "cannot be combined with tools: no grammar knows how this model calls them."
    raise InvalidRequestError.about(plan.constraint.field, complaint, "unsupported_value")


async def _free(plan: _Plan, tools: list[CalledTool]) -> AnswerFormat:
    """Any text, in which calls follow their tools' schemas where the model can be held to them.

    Raises:
        InvalidRequestError: It cannot, but that was asked for.
        UnavailableError: Nobody can tell now, but that was asked for.
    """
    choice, calls = plan.choice, plan.calls
    if calls is None or not plan.holds:
        if choice.allowed is not None:
            complaint = "cannot be served: calls of this model cannot be limited."
            raise InvalidRequestError.about(choice.field, complaint, "unsupported_value")
        return AnswerFormat()
    plain = calls.free(tools, parallel=choice.parallel)
    begun = reasoned_or_not(plain, plan.reasoning)
    try:
        text = await _checked(plan.model, begun, choice.field)
    except ApiError:
        # Nobody asked for a grammar: without one it is answered all the same.
        if plan.asked:
            raise
        return AnswerFormat()
    places = resumptions(calls, tools, plain, plan.reasoning, parallel=choice.parallel)
    return AnswerFormat(Grammar(text, resumptions=tuple(places)), trusted=plan.told)


async def _checked(model: TextModel, answer: JsonObject, field: FieldPath) -> str:
    """The grammar of answers of a format, which `field` asks for.

    Raises:
        InvalidRequestError: It cannot be followed; says the compiler's reason.
        UnavailableError: Nobody can tell now.
    """
    text = grammar_text(answer)
    if reason := await model.engine.check_grammar(text):
        raise InvalidRequestError.about(field, f"cannot be enforced: {reason}.")
    return text


def _answer_opening(model: TextModel) -> str:
    """What the model writes before an answer that is no call."""
    dialect = model.dialects.reasoning or model.dialects.tools
    return dialect.answer if isinstance(dialect, CombinedDialect) else ""


def _unenforced(field: FieldPath, error: SchemaError) -> Violation:
    return Violation.of(field, f"{error}.", "unsupported_schema")
