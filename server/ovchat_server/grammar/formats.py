"""Formats of answers, in the language of the engine's compiler: xgrammar's structural tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.structured_output import ConstraintKind
from ovchat_server.grammar.arguments import parameters_grammar
from ovchat_server.grammar.patterns import literal
from ovchat_server.grammar.values import json_grammar

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.structured_output import Constraint
    from ovchat_server.grammar.cache import GrammarCache

# Models put a blank line behind their reasoning.
WHITE_SPACE: JsonObject = {"type": "regex", "pattern": "[ \\n\\r\\t]{0,8}"}
ANY_OBJECT: JsonObject = {"type": "object"}
# Formats that hold a schema, and what writes its grammar.
WRITERS = {"json_schema": json_grammar, "qwen_xml_parameter": parameters_grammar}


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How a model reasons before the answer that is constrained.

    Attributes:
        opens: What it writes before the reasoning.
        closes: What it writes after it.
        opened: The prompt ends inside the reasoning; otherwise the model may leave it out.
        asked: The template or the caller asks for it; otherwise it is the model's own idea.
    """

    opens: str
    closes: str
    opened: bool
    asked: bool = True


def grammar_text(answer: JsonValue) -> str:
    """Return the text that the engine takes, of a format of answers."""
    return msgspec.json.encode({"type": "structural_tag", "format": answer}).decode()


def ebnf_format(grammar: str) -> JsonObject:
    """Return the format of what follows an EBNF, its root rule called "root"."""
    return {"type": "grammar", "grammar": grammar}


def constraint_format(constraint: Constraint, grammars: GrammarCache) -> JsonObject:
    """Return the format of answers under a constraint.

    Raises:
        SchemaError: A schema in it cannot be enforced.
    """
    value = constraint.value
    match constraint.kind:
        case ConstraintKind.JSON_OBJECT:
            return ebnf_format(grammars.grammar(json_grammar, ANY_OBJECT))
        case ConstraintKind.JSON_SCHEMA:
            return ebnf_format(grammars.grammar(json_grammar, value))
        case ConstraintKind.REGEX:
            return {"type": "regex", "pattern": value}
        case ConstraintKind.GRAMMAR:
            return {"type": "grammar", "grammar": value}
        case ConstraintKind.CHOICE:
            texts = value if isinstance(value, list) else [value]
            return {"type": "regex", "pattern": "|".join(literal(str(text)) for text in texts)}
        case ConstraintKind.STRUCTURAL_TAG:
            # Reading the request has seen that it is an object.
            tag = _with_grammars(value, grammars)
            return tag if isinstance(tag, dict) else {}


def after_text(opening: str, answer: JsonObject) -> JsonObject:
    """Return a format behind a text that stands before it."""
    if not opening:
        return answer
    before: JsonObject = {"type": "regex", "pattern": literal(opening)}
    return {"type": "sequence", "elements": [before, answer]}


def either(*formats: JsonValue) -> JsonObject:
    """Return the format of answers of one of some formats."""
    if len(formats) == 1 and isinstance(formats[0], dict):
        return formats[0]
    return {"type": "or", "elements": [*formats]}


def after_reasoning(answer: JsonObject, reasoning: Reasoning | None) -> JsonObject:
    """Return a format, reasoning first where the model reasons."""
    if reasoning is None:
        return answer
    thought: JsonObject = {
        "type": "tag",
        "begin": "" if reasoning.opened else reasoning.opens,
        "content": {"type": "any_text"},
        "end": reasoning.closes,
    }
    reasoned: JsonObject = {"type": "sequence", "elements": [thought, WHITE_SPACE, answer]}
    # A sequence with an optional start would be shorter, but the compiler has none.
    return reasoned if reasoning.opened else either(answer, reasoned)


def _with_grammars(item: JsonValue, grammars: GrammarCache) -> JsonValue:
    """Replace the JSON Schemas in a format by their grammars."""
    if isinstance(item, list):
        return [_with_grammars(child, grammars) for child in item]
    if not isinstance(item, dict):
        return item
    write = WRITERS.get(str(item.get("type")))
    if write is not None:
        return ebnf_format(grammars.grammar(write, item.get("json_schema")))
    return {key: _with_grammars(child, grammars) for key, child in item.items()}
