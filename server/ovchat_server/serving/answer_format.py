"""Makes the grammar that the engine enforces, from constraint, tools and the model's reasoning.

Each schema is written as a grammar once, in a thread, and shared with other requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import CombinedDialect, ToolDialect
from ovchat_server.domain.chat import ToolMode
from ovchat_server.domain.errors import ApiError, InvalidRequestError, OverloadedError, Violation
from ovchat_server.domain.field_path import FieldPath, SchemaPath
from ovchat_server.grammar.formats import (
    Reasoning,
    after_reasoning,
    after_text,
    constraint_format,
    either,
    grammar_text,
)
from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.held_tools import held_tool
from ovchat_server.serving.reasoning import before_form, continues, reasoned_or_not
from ovchat_server.serving.resumptions import resumptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.chat.dialects.call_format import CalledTool
    from ovchat_server.domain.chat import ChatRequest, Tool
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.structured_output import Constraint
    from ovchat_server.engine.contract.generation import ReasoningBudget, Resumption
    from ovchat_server.grammar.cache import GrammarCache
    from ovchat_server.serving.held_tools import HeldTool
    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.worker_pool import WorkerPool


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of an answer; see engine.contract.generation.GenerationRequest.

    Attributes:
        text: "" if anything is allowed.
        field: What asks for it.
        required: Whether the request is not answered without.
    """

    text: str = ""
    field: FieldPath = FieldPath()
    self_terminating: bool = False
    resumptions: tuple[Resumption, ...] = ()
    required: bool = True


NO_GRAMMAR = Grammar()


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The format of a chat's answer.

    Attributes:
        grammar: The grammar that the engine enforces.
        constrains_whole_answer: Whether the grammar covers the whole answer.
        reasoning: How the model reasons before an answer that is wholly constrained; None if it
            does not.
        calls_enforced: Whether the grammar guarantees that calls are well formed.
        calls_only_first: Whether calls may only begin the answer.
        unenforced: The parts of the schemas of calls that the grammar leaves out.
        budget: How long the reasoning may be; None for any length.
    """

    grammar: Grammar = NO_GRAMMAR
    constrains_whole_answer: bool = False
    reasoning: Reasoning | None = None
    calls_enforced: bool = False
    calls_only_first: bool = False
    unenforced: tuple[SchemaPath, ...] = ()
    budget: ReasoningBudget | None = None

    @property
    def excludes_reasoning(self) -> bool:
        """Whether the answer begins with its format."""
        return self.constrains_whole_answer and self.reasoning is None


class AnswerFormats:
    """Makes the formats of answers."""

    def __init__(self, grammars: GrammarCache, workers: WorkerPool) -> None:
        """Write grammars in `workers`, and share the grammars of schemas through `grammars`."""
        self._grammars = grammars
        self._workers = workers

    async def of_text(self, model: TextModel, constraint: Constraint | None) -> Grammar:
        """Return the grammar of a whole answer.

        Raises:
            InvalidRequestError: It cannot be enforced, with the compiler's reason.
            OverloadedError: Too many of the caller's grammars wait to be checked.
            UnavailableError: It cannot be checked now.
        """
        if constraint is None:
            return NO_GRAMMAR
        answer = await self._workers.run(partial(self._constrained, constraint))
        text = await _checked(model, answer, constraint.field)
        return Grammar(text, constraint.field, constraint.self_terminating)

    async def of_chat(
        self, model: TextModel, request: ChatRequest, reasoning: Reasoning | None
    ) -> AnswerFormat:
        """Return the format of the answer to a chat.

        Args:
            model: The model.
            request: The request.
            reasoning: How the model reasons before it answers; None if it does not.

        Raises:
            InvalidRequestError: The format cannot be enforced.
            OverloadedError: Too many of the caller's grammars wait to be checked.
            UnavailableError: The grammar cannot be checked now.
        """
        wanted = _FormatRequest(model, request, reasoning)
        if not wanted.offered and wanted.constraint is None:
            return AnswerFormat()
        tools, answer = await self._workers.run(partial(self._written, wanted))
        if wanted.constraint is None and not wanted.choice.forced:
            return await _free(wanted, tools)
        calls = _calls(wanted, _called(tools)) if wanted.offered else []
        # Without tools no call is forced: reading the request has refused that.
        if wanted.constraint is None or answer is None or wanted.choice.forced:
            whole, field, self_terminating = either(*calls), wanted.choice.field, False
        else:
            whole, field = either(*calls, answer), wanted.constraint.field
            self_terminating = wanted.constraint.self_terminating and not calls
        reasoning = before_form(reasoning)
        text = await _checked(model, after_reasoning(whole, reasoning), field)
        return AnswerFormat(
            Grammar(text, field, self_terminating),
            constrains_whole_answer=True,
            reasoning=reasoning,
            # Without a trigger, a call is told from other text only by the answer as a whole.
            calls_enforced=wanted.choice.forced or bool(wanted.calls and wanted.calls.trigger),
            calls_only_first=not wanted.choice.forced,
            unenforced=_unenforced(tools),
        )

    def _written(self, wanted: _FormatRequest) -> tuple[list[HeldTool], JsonObject | None]:
        """Return the tools that may be called, and the format of other answers.

        Raises:
            InvalidRequestError: Schemas cannot be enforced; all of them are named.
        """
        faults: list[Violation] = []
        tools: list[HeldTool] = []
        answer = None
        if wanted.constraint is not None:
            try:
                answer = after_text(wanted.opening, self._constrained(wanted.constraint))
            except InvalidRequestError as error:
                faults += error.violations
        for tool in wanted.held_tools():
            try:
                tools.append(held_tool(tool, wanted.calls, self._grammars))
            except SchemaError as error:
                faults.append(_fault(tool.field, error, tool.part))
        if faults:
            raise InvalidRequestError.of(faults)
        return tools, answer

    def _constrained(self, constraint: Constraint) -> JsonObject:
        try:
            return constraint_format(constraint, self._grammars)
        except SchemaError as error:
            raise InvalidRequestError.of([_fault(constraint.field, error)]) from error


class _FormatRequest:
    """The format that a request asks for, and how much of it can be enforced."""

    def __init__(self, model: TextModel, request: ChatRequest, reasoning: Reasoning | None) -> None:
        self.model = model
        self.reasoning = reasoning
        self.choice = request.tool_choice
        self.constraint = request.generation.constraint
        self.offered = self.choice.mode is not ToolMode.NONE and bool(request.tools)
        dialect = model.dialects.tools
        self.calls = dialect.format if dialect else None
        # In Harmony, no trigger tells some forms of calls from reasoning about a call.
        self.trusts_calls = isinstance(dialect, ToolDialect)
        self.opening = "" if continues(request) else _answer_opening(model)
        self.asked = self.choice.allowed is not None or any(tool.strict for tool in request.tools)
        params = request.generation
        unruly = params.beams or params.ending.ignore_eos or params.ending.min_tokens
        # Whether calls that the model chooses to make follow their schemas.
        self.holds = (
            self.calls is not None
            and bool(self.calls.trigger)
            and not (unruly or continues(request))
            and (model.constrains_calls or self.asked)
        )
        self._tools = request.tools

    def held_tools(self) -> Iterator[Tool]:
        """Yield the tools whose calls follow a grammar, and strict ones, which are checked."""
        every = self.constraint is not None or self.choice.forced or self.holds
        for tool in self._tools if self.offered else ():
            if self.choice.allows(tool.name) and (every or tool.strict):
                yield tool


def _calls(wanted: _FormatRequest, tools: list[CalledTool]) -> list[JsonValue]:
    """Return the formats of an answer with calls."""
    choice = wanted.choice
    if wanted.calls is not None:
        if choice.forced:
            return [wanted.calls.forced(tools, parallel=choice.parallel)]
        return wanted.calls.instead(tools, parallel=choice.parallel)
    if choice.forced or wanted.constraint is None:
        complaint = "is not supported by this model: its tool calls cannot be forced."
        raise InvalidRequestError.about(choice.field, complaint, "unsupported_value")
    complaint = "cannot be combined with tools: this model's call format has no grammar."
    raise InvalidRequestError.about(wanted.constraint.field, complaint, "unsupported_value")


def _called(tools: list[HeldTool]) -> list[CalledTool]:
    return [tool.called for tool in tools]


def _unenforced(tools: list[HeldTool]) -> tuple[SchemaPath, ...]:
    return tuple(path for tool in tools for path in tool.unenforced)


async def _free(wanted: _FormatRequest, tools: list[HeldTool]) -> AnswerFormat:
    """Return the format of text in which calls follow their schemas, if that can be enforced.

    Raises:
        InvalidRequestError: It cannot be enforced, but the request requires it.
        UnavailableError: It cannot be checked now, but the request requires it.
    """
    choice, calls = wanted.choice, wanted.calls
    if calls is None or not wanted.holds:
        if choice.allowed is not None:
            complaint = "is not supported by this model: its tool calls cannot be restricted."
            raise InvalidRequestError.about(choice.field, complaint, "unsupported_value")
        return AnswerFormat()
    called = _called(tools)
    plain = calls.free(called, parallel=choice.parallel)
    answer = reasoned_or_not(plain, wanted.reasoning)
    try:
        text = await _checked(wanted.model, answer, choice.field)
    except OverloadedError:
        # It would be checked if the caller asked for less at once: no reason to answer worse.
        raise
    except ApiError:
        # The request does not require a grammar: answer without one, and say so.
        if wanted.asked:
            raise
        return AnswerFormat(unenforced=tuple(SchemaPath(tool.field) for tool in tools))
    places = resumptions(calls, called, plain, wanted.reasoning, parallel=choice.parallel)
    return AnswerFormat(
        Grammar(text, choice.field, resumptions=tuple(places), required=wanted.asked),
        calls_enforced=wanted.trusts_calls,
        unenforced=_unenforced(tools),
    )


async def _checked(model: TextModel, answer: JsonObject, field: FieldPath) -> str:
    """Check the grammar of a format, which `field` asks for, and return it.

    Raises:
        InvalidRequestError: It cannot be enforced, with the compiler's reason.
        OverloadedError: Too many of the caller's grammars wait to be checked.
        UnavailableError: It cannot be checked now.
    """
    text = grammar_text(answer)
    if reason := await model.engine.check_grammar(text, current_caller(0)):
        raise InvalidRequestError.about(field, f"cannot be enforced: {reason}.")
    return text


def _answer_opening(model: TextModel) -> str:
    """Return the text that the model writes before an answer without calls."""
    dialect = model.dialects.reasoning or model.dialects.tools
    return dialect.answer if isinstance(dialect, CombinedDialect) else ""


def _fault(field: FieldPath, error: SchemaError, part: str = "") -> Violation:
    """Return what is wrong with a schema, or with the `part` of it that stands at `field`."""
    known = part and error.place == part
    complaint = f"{error.complaint}, which cannot be enforced" if known else str(error)
    return Violation.of(field, f"{complaint}.", "unsupported_schema")
