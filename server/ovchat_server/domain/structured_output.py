"""Reading what form an answer must have: the rules, the same for both doors.

JSON that stands in a string of a request (a schema in a gRPC message, vLLM's JSON texts) is
parsed by the doors: here it is a value, with the keys of its objects in the caller's order.
Whether a schema can be enforced is seen when its grammar is written, in serving.answer_format.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import shortened
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.grammar_limits import (
    MAX_CHOICES,
    MISREAD,
    MISREAD_COMPLAINT,
    read_pattern,
    refuse_beyond_limits,
)
from ovchat_server.domain.structural_tag import (
    NATIVE_FORMATS,
    TAG_KEYS,
    patterns,
    read_format,
    read_structural_tag,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.reader import Reader

SCHEMA_KEYS = frozenset({"name", "description", "strict", "schema"})
RESPONSE_FORMATS = {
    "text": frozenset({"type"}),
    "json_object": frozenset({"type", "schema"}),
    "json_schema": frozenset({"type", "json_schema"}) | SCHEMA_KEYS,
    "structural_tag": TAG_KEYS,
    **NATIVE_FORMATS,
}
# vLLM's newer object.
STRUCTURED_OUTPUTS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
# What vLLM's compilers are told besides; ours takes none of it.
COMPILER_OPTIONS = (
    "whitespace_pattern",
    "disable_any_whitespace",
    "disable_additional_properties",
)
# What chooses among its compilers, as its releases call it: nothing to choose here.
COMPILER_CHOICES = (
    "backend",
    "backend_was_auto",
    "_backend",
    "_backend_was_auto",
    "disable_fallback",
)
STRUCTURED_OUTPUTS_KEYS = frozenset({*STRUCTURED_OUTPUTS, *COMPILER_OPTIONS, *COMPILER_CHOICES})


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
        described: What OpenAI's `json_schema` says of a schema besides: `name`, `description` and
            `strict`, as far as they are given. None: it was asked for otherwise.
    """

    kind: ConstraintKind
    value: JsonValue
    field: FieldPath
    described: JsonObject | None = None

    @property
    def self_terminating(self) -> bool:
        """Whether there is no doubt where the answer ends."""
        return self.kind in {
            ConstraintKind.JSON_OBJECT,
            ConstraintKind.JSON_SCHEMA,
            ConstraintKind.CHOICE,
        }


def read_constraint(request: Reader) -> Constraint | None:
    """Read the constraint on the answer, if any; what is wrong is noted in the reader.

    More than one is a violation that names all of them. The same one by several names, as clients
    of old and new vLLM send it, is one.
    """
    different: dict[tuple[ConstraintKind, str], Constraint] = {}
    for constraint in (
        *_read_response_format(request),
        *_read_structured_outputs(request),
        *_read_guided(request),
    ):
        # To the letter: to Python 1 is true, and the order of keys nothing.
        different.setdefault((constraint.kind, repr(constraint.value)), constraint)
    found = list(different.values())
    if len(found) > 1:
        fields = [ErrorText.of(" and ", constraint.field) for constraint in found[1:]]
        complaint = "cannot be combined with another constraint on the answer: got "
        request.refuse(found[-1].field, ErrorText.of(complaint, found[0].field, *fields))
    return found[0] if found else None


def _read_response_format(request: Reader) -> Iterator[Constraint]:
    form = request.object("response_format", RESPONSE_FORMATS)
    if form is None or not form.require("type"):
        return
    match form.choice("type", RESPONSE_FORMATS):
        case None | "text":
            return
        case "json_object" if form.present("schema"):
            # As llama.cpp and Together: still an object, unless the schema says otherwise.
            yield from _schema(form, "schema", default_type="object")
        case "json_object":
            yield _any_object(request, "response_format")
        case "json_schema":
            yield from _described_schema(form)
        case "structural_tag":
            yield from _tag(form, read_structural_tag)
        case _:
            # OVMS hands a format as it is to its compiler.
            yield from _tag(form, read_format)


def _described_schema(form: Reader) -> Iterator[Constraint]:
    inner = form.object("json_schema", SCHEMA_KEYS)
    # Beside the type it is as llama.cpp and Together take it.
    if not form.present("schema") and form.require("json_schema") and inner is not None:
        inner.require("schema")
    for reader in filter(None, (form, inner)):
        facts: JsonObject = {
            "name": reader.string("name"),
            "description": reader.string("description"),
            "strict": reader.boolean("strict"),
        }
        described: JsonObject = {name: value for name, value in facts.items() if value is not None}
        for constraint in _schema(reader, "schema"):
            yield replace(constraint, described=described)


def _read_structured_outputs(request: Reader) -> Iterator[Constraint]:
    outputs = request.object("structured_outputs", STRUCTURED_OUTPUTS_KEYS)
    if outputs is None:
        return
    for name in COMPILER_OPTIONS:
        if outputs.fields.get(name) not in (None, False):
            outputs.refuse(name, "is not supported; leave it out", "unsupported_parameter")
    given = [name for name in STRUCTURED_OUTPUTS if outputs.present(name)]
    if not given:
        got = shortened(", ".join(outputs.fields)) or "none"
        known = ", ".join(STRUCTURED_OUTPUTS)
        outputs.refuse("json", f"or another of {known} is required, got {got}")
    yield from _schema(outputs, "json")
    yield from _text(outputs, "regex", ConstraintKind.REGEX)
    yield from _choice(outputs, "choice")
    yield from _text(outputs, "grammar", ConstraintKind.GRAMMAR)
    if outputs.boolean("json_object"):
        yield _any_object(outputs, "json_object")
    elif outputs.fields.get("json_object") is False:
        outputs.refuse("json_object", "must be true; leave it out instead")
    yield from _tag(outputs.object("structural_tag", TAG_KEYS), read_structural_tag)


def _read_guided(request: Reader) -> Iterator[Constraint]:
    """Read the fields that vLLM had before structured_outputs."""
    yield from _schema(request, "guided_json")
    yield from _text(request, "guided_regex", ConstraintKind.REGEX)
    yield from _choice(request, "guided_choice")
    yield from _text(request, "guided_grammar", ConstraintKind.GRAMMAR)
    yield from _tag(request.object("structural_tag", TAG_KEYS), read_structural_tag)


def _any_object(reader: Reader, name: str) -> Constraint:
    return Constraint(ConstraintKind.JSON_OBJECT, None, reader.path(name))


def _schema(reader: Reader, name: str, default_type: str | None = None) -> Iterator[Constraint]:
    value = reader.json_object(name)
    if value is not None and refuse_beyond_limits(reader, name, value):
        if default_type:
            value = {**value, "type": value.get("type", default_type)}
        yield Constraint(ConstraintKind.JSON_SCHEMA, value, reader.path(name))


def _tag(tag: Reader | None, read: Callable[[Reader], JsonObject | None]) -> Iterator[Constraint]:
    # Faults inside are those of the whole, as the compiler's are.
    whole = FieldPath()
    if tag is None or not refuse_beyond_limits(tag, whole, dict(tag.fields)):
        return
    form = read(tag)
    if form is None:
        return
    for pattern in patterns(form):
        read_pattern(tag, whole, pattern)
    if any(map(MISREAD.search, texts(form))):
        tag.refuse(whole, MISREAD_COMPLAINT)
    yield Constraint(ConstraintKind.STRUCTURAL_TAG, form, tag.path(whole))


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
        reader.refuse(name, f"must contain 1 to {MAX_CHOICES} strings, got {len(values)}")
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
