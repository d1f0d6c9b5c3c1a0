"""From untrusted fields to a request of the Responses API."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.domain.chat import SYSTEM_ROLES, ChatRequest, ToolMode
from ovchat_server.domain.chat_request import read_template_kwargs, read_thinking_budget
from ovchat_server.domain.declared import Hosted, read_declared
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.generation_request import (
    read_generation,
    read_stream_options,
    read_top_logprobs,
    refuse_with_constraint,
)
from ovchat_server.domain.grammar_limits import refuse_beyond_limits
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.reader import Reader
from ovchat_server.domain.responses.body import LOGPROBS, Body, SchemaFormat
from ovchat_server.domain.responses.conversation import messages_of
from ovchat_server.domain.responses.items import ItemReference, MessageItem, TextPart
from ovchat_server.domain.responses.listing import listed_items, repeated
from ovchat_server.domain.responses.parameters import GENERATION, RESPONSES
from ovchat_server.domain.responses.request import ResponsesRequest
from ovchat_server.domain.responses.tools import ignored_in, read_tool_choice, read_tools
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.domain.tools import refuse_large_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.generation import GenerationParams
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.limits import Limits

# What a format says of its schema besides.
DESCRIPTION = {"name", "description", "strict"}


def read_responses_request(
    fields: Mapping[str, JsonValue], *, strict: bool = False, limits: Limits = DEFAULT_LIMITS
) -> ResponsesRequest:
    """Read a request of the Responses API.

    Args:
        fields: OpenAI's request object.
        strict: Refuse unknown fields instead of ignoring them.
        limits: How much it may hold.

    Raises:
        InvalidRequestError: With every fault found.
    """
    reader = Reader.of_request(fields, limits)
    # Where it cannot be read, its defaults stand in for it, until all else is read.
    body = read_declared(reader, Body) or Body.model_construct()
    if not reader.present("previous_response_id"):
        reader.require("input")
    tools, called = read_tools(reader, body.tools)
    chat = ChatRequest(
        model=reader.string("model") or "",
        messages=messages_of(body.input),
        generation=_read_generation(reader, body),
        tools=tools,
        tool_choice=read_tool_choice(
            reader,
            body.tool_choice,
            tools,
            called,
            parallel=reader.boolean("parallel_tool_calls") is not False,
        ),
        reasoning_effort=body.reasoning.effort,
        thinking_budget=read_thinking_budget(reader),
        template_kwargs=read_template_kwargs(reader),
        drops_oldest=body.truncation == "auto",
        # There is always usage at the end of a stream.
        stream=read_stream_options(reader) and StreamOptions(include_usage=True),
    )
    if chat.tool_choice.forced or chat.tool_choice.allowed is not None:
        refuse_with_constraint(reader, chat.tool_choice.field, None)
    if chat.tool_choice.mode is not ToolMode.NONE:
        refuse_large_schemas(reader, tools, chat.tool_choice)
    instructions = _read_instructions(reader, body)
    previous, store = reader.string("previous_response_id"), reader.boolean("store")
    unknown = RESPONSES.check(reader, strict=strict)
    accepted = RESPONSES.accepted_in(reader)
    if "verbosity" in body.text.model_fields_set:
        accepted += ("text.verbosity",)
    return ResponsesRequest(
        chat=replace(reader.checked(chat), ignored=(*unknown, *_ignored(body)), accepted=accepted),
        instructions=instructions,
        tools=called,
        referring=body.input if any(isinstance(item, ItemReference) for item in body.input) else (),
        input_items=listed_items(fields.get("input")),
        repeated=repeated(fields),
        previous_response_id=previous,
        store=store is not False,
        summarized=(body.reasoning.summary or body.reasoning.generate_summary) is not None,
    )


def _read_generation(reader: Reader, body: Body) -> GenerationParams:
    shared = {name: value for name, value in reader.fields.items() if name in GENERATION}
    generation = read_generation(
        Reader(shared, reader.violations, unknown=reader.unknown, limits=reader.limits),
        max_tokens_fields=("max_output_tokens",),
    )
    alternatives = read_top_logprobs(reader, "top_logprobs", None) or 0
    return replace(
        generation,
        logprobs=alternatives > 0 or LOGPROBS in body.include,
        top_logprobs=alternatives,
        constraint=_read_constraint(reader, body, generation.constraint),
    )


def _read_constraint(reader: Reader, body: Body, other: Constraint | None) -> Constraint | None:
    """Read the form of the text, where `other` is that which vLLM's field asks for."""
    form, field = body.text.format, FieldPath.of("text", "format")
    if isinstance(form, SchemaFormat):
        field /= "schema"
        refuse_beyond_limits(reader, field, form.schema_)
        described = form.model_dump(include=DESCRIPTION, exclude_none=True)
        constraint = Constraint(ConstraintKind.JSON_SCHEMA, form.schema_, field, described)
    elif form and form.type == "json_object":
        constraint = Constraint(ConstraintKind.JSON_OBJECT, None, field)
    else:
        return other
    if other:
        reader.refuse(other.field, ErrorText.of("cannot be combined with ", field))
    refuse_with_constraint(reader, constraint.field, None)
    return constraint


def _read_instructions(reader: Reader, body: Body) -> str | None:
    given = reader.fields.get("instructions")
    if isinstance(given, str):
        return given or None
    texts: list[str] = []
    for index, item in enumerate(body.instructions or ()):
        if isinstance(item, MessageItem) and item.role not in SYSTEM_ROLES:
            role = FieldPath.of("instructions", index, "role")
            reader.refuse(role, "must be 'system' or 'developer'")
        parts = item.content if isinstance(item, MessageItem) else []
        found = [part.text for part in parts if isinstance(part, TextPart)]
        if not found or len(found) < len(parts):
            reader.refuse(FieldPath.of("instructions", index), "must be a message of text")
        texts += found
    return "\n\n".join(texts) or None


def _ignored(body: Body) -> list[str]:
    """Return the paths of items and tools of OpenAI's service, which do not act."""
    items = [
        FieldPath.of("input", index)
        for index, item in enumerate(body.input)
        if isinstance(item, Hosted)
    ]
    return [str(path) for path in (*items, *ignored_in(body.tools))]
