"""Reading what form an answer must have: the rules, the same for both doors.

JSON that stands in a string of a request (a schema in a gRPC message, vLLM's JSON texts) is
parsed by the doors: here it is a value, with the keys of its objects in the caller's order.
Whether a schema can be enforced is seen when its grammar is written, in serving.answer_format.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ovchat_server.api.field_path import ErrorText, FieldPath
from ovchat_server.api.grammar_limits import (
    MAX_CHOICES,
    MISREAD,
    MISREAD_COMPLAINT,
    read_pattern,
    refuse_beyond_limits,
)
from ovchat_server.api.structural_tag import NATIVE_FORMATS, patterns, structural_format, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.api.reader import Reader

# vLLM's newer object, without those of its fields that only choose among its compilers.
STRUCTURED_OUTPUTS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
# What vLLM's compilers are told besides; ours takes none of it.
COMPILER_OPTIONS = (
    "whitespace_pattern",
    "disable_any_whitespace",
    "disable_additional_properties",
)


class ConstraintKind(StrEnum):
    """How a constraint is written."""

    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    CHOICE = "choice"
    GRAMMAR = "grammar"
    STRUCTURAL_TAG = "structural_tag"


@dataclass(frozen=True, slots=True)
class Constraint:
    """What form an answer must have.

    Attributes:
        kind: Says what `value` is.
        value: Of JSON_OBJECT nothing; of JSON_SCHEMA the schema; of REGEX and GRAMMAR (EBNF
            with the root rule "root") a string; of CHOICE an array of strings; of
            STRUCTURAL_TAG the format inside the tag.
        field: Path of the field that asks for it.
    """

    kind: ConstraintKind
    value: JsonValue
    field: FieldPath

    @property
    def closed(self) -> bool:
        """Whether there is no doubt where the answer ends."""
        return self.kind in {
            ConstraintKind.JSON_OBJECT,
            ConstraintKind.JSON_SCHEMA,
            ConstraintKind.CHOICE,
        }


def read_constraint(request: Reader) -> Constraint | None:
    """Read the constraint on the answer, if any; what is wrong is noted in the reader.

    More than one is a violation that names all of them.
    """
    found = [
        *_read_response_format(request),
        *_read_structured_outputs(request),
        *_read_guided(request),
    ]
    if len(found) > 1:
        fields = [ErrorText.of(" and ", constraint.field) for constraint in found[1:]]
        complaint = "cannot be combined with another constraint on the answer: got "
        request.refuse(found[-1].field, ErrorText.of(complaint, found[0].field, *fields))
    return found[0] if found else None


def _read_response_format(request: Reader) -> Iterator[Constraint]:
    form = request.object("response_format")
    if form is None or not form.require("type"):
        return
    known = ("text", "json_object", "json_schema", "structural_tag", *NATIVE_FORMATS)
    match form.choice("type", known):
        case None | "text":
            return
        case "json_object":
            yield _any_object(request, "response_format")
        case "json_schema":
            form.require("json_schema")
            described = form.object("json_schema")
            if described is not None:
                described.string("name")
                described.string("description")
                described.boolean("strict")
                described.require("schema")
                yield from _json(described, "schema", ConstraintKind.JSON_SCHEMA)
        case "structural_tag":
            yield from _tag(request, "response_format", dict(form.fields))
        case _:
            # OVMS hands a format as it is to its compiler.
            tag: JsonObject = {"type": "structural_tag", "format": dict(form.fields)}
            yield from _tag(request, "response_format", tag)


def _read_structured_outputs(request: Reader) -> Iterator[Constraint]:
    outputs = request.object("structured_outputs")
    if outputs is None:
        return
    for name in COMPILER_OPTIONS:
        if outputs.fields.get(name) not in (None, False):
            outputs.refuse(name, "is not supported; leave it out", "unsupported_parameter")
    given = [name for name in STRUCTURED_OUTPUTS if outputs.present(name)]
    if not given:
        outputs.refuse("json", f"or another of {', '.join(STRUCTURED_OUTPUTS)} is required")
    yield from _json(outputs, "json", ConstraintKind.JSON_SCHEMA)
    yield from _text(outputs, "regex", ConstraintKind.REGEX)
    yield from _choice(outputs, "choice")
    yield from _text(outputs, "grammar", ConstraintKind.GRAMMAR)
    if outputs.boolean("json_object"):
        yield _any_object(outputs, "json_object")
    elif outputs.fields.get("json_object") is False:
        outputs.refuse("json_object", "must be true; leave it out instead")
    yield from _json(outputs, "structural_tag", ConstraintKind.STRUCTURAL_TAG)


def _read_guided(request: Reader) -> Iterator[Constraint]:
    """Read the fields that vLLM had before structured_outputs."""
    yield from _json(request, "guided_json", ConstraintKind.JSON_SCHEMA)
    yield from _text(request, "guided_regex", ConstraintKind.REGEX)
    yield from _choice(request, "guided_choice")
    yield from _text(request, "guided_grammar", ConstraintKind.GRAMMAR)
    yield from _json(request, "structural_tag", ConstraintKind.STRUCTURAL_TAG)


def _any_object(reader: Reader, name: str) -> Constraint:
    return Constraint(ConstraintKind.JSON_OBJECT, None, reader.path(name))


def _json(reader: Reader, name: str, kind: ConstraintKind) -> Iterator[Constraint]:
    value = reader.json_object(name)
    if value is None:
        return
    if kind is ConstraintKind.STRUCTURAL_TAG:
        yield from _tag(reader, name, value)
    elif refuse_beyond_limits(reader, name, value):
        yield Constraint(kind, value, reader.path(name))


def _tag(reader: Reader, name: str, tag: JsonObject) -> Iterator[Constraint]:
    if not refuse_beyond_limits(reader, name, tag):
        return
    form = structural_format(reader, name, tag)
    if form is None:
        return
    for pattern in patterns(form):
        read_pattern(reader, name, pattern)
    if any(map(MISREAD.search, texts(form))):
        reader.refuse(name, MISREAD_COMPLAINT)
    yield Constraint(ConstraintKind.STRUCTURAL_TAG, form, reader.path(name))


def _text(reader: Reader, name: str, kind: ConstraintKind) -> Iterator[Constraint]:
    text = reader.string(name)
    if text is None or not read_pattern(reader, name, text):
        return
    if MISREAD.search(text) and (kind is ConstraintKind.GRAMMAR or "[" in text):
        reader.refuse(name, MISREAD_COMPLAINT)
    else:
        yield Constraint(kind, text, reader.path(name))


def _choice(reader: Reader, name: str) -> Iterator[Constraint]:
    values = reader.array(name)
    if values is None:
        return
    if not 1 <= len(values) <= MAX_CHOICES:
        reader.refuse(name, f"must hold 1 to {MAX_CHOICES} strings, got {len(values)}")
        return
    for index, value in enumerate(values):
        if not isinstance(value, str):
            reader.refuse(FieldPath.of(name, index), "must be a string", "invalid_type")
            return
        if not value:
            reader.refuse(FieldPath.of(name, index), "must not be empty")
            return
    if refuse_beyond_limits(reader, name, values):
        yield Constraint(ConstraintKind.CHOICE, values, reader.path(name))
