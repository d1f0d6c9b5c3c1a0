"""From a constraint to the one text that the engine takes: a structural tag of xgrammar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.structured_output import ConstraintKind
from ovchat_server.grammar.json_layout import laid_out
from ovchat_server.grammar.patterns import literal
from ovchat_server.grammar.structural_tag import with_grammars

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.api.structured_output import Constraint

# Models put a blank line behind their reasoning.
WHITE_SPACE: JsonObject = {"type": "regex", "pattern": "[ \\n\\r\\t]{0,8}"}
ANY_OBJECT: JsonObject = {"type": "object"}


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How a model reasons before the answer that is constrained.

    Attributes:
        opens: What it writes before the reasoning.
        closes: What it writes after it.
        opened: The prompt ends inside the reasoning; otherwise the model may leave it out.
    """

    opens: str
    closes: str
    opened: bool


def grammar_text(form: JsonValue) -> str:
    """A grammar of answers of a form."""
    return msgspec.json.encode({"type": "structural_tag", "format": form}).decode()


def form_of(constraint: Constraint, opening: str = "") -> JsonObject:
    """What an answer under `constraint` may be, behind the text `opening`."""
    form = _form_of(constraint)
    if not opening:
        return form
    before: JsonObject = {"type": "regex", "pattern": literal(opening)}
    return {"type": "sequence", "elements": [before, form]}


def either(*forms: JsonValue) -> JsonObject:
    """One of some forms."""
    if len(forms) == 1 and isinstance(forms[0], dict):
        return forms[0]
    return {"type": "or", "elements": [*forms]}


def _form_of(constraint: Constraint) -> JsonObject:
    value = constraint.value
    match constraint.kind:
        case ConstraintKind.JSON_OBJECT:
            return laid_out(ANY_OBJECT)
        case ConstraintKind.JSON_SCHEMA:
            return laid_out(value)
        case ConstraintKind.REGEX:
            return {"type": "regex", "pattern": value}
        case ConstraintKind.GRAMMAR:
            return {"type": "grammar", "grammar": value}
        case ConstraintKind.CHOICE:
            texts = value if isinstance(value, list) else [value]
            return {"type": "regex", "pattern": "|".join(literal(str(text)) for text in texts)}
        case ConstraintKind.STRUCTURAL_TAG:
            form = with_grammars(value)
            # Reading the request has seen that it is one.
            return form if isinstance(form, dict) else {}


def after_reasoning(form: JsonObject, reasoning: Reasoning | None) -> JsonObject:
    """A form, reasoning first where the model reasons."""
    if reasoning is None:
        return form
    thought: JsonObject = {
        "type": "tag",
        "begin": "" if reasoning.opened else reasoning.opens,
        "content": {"type": "any_text"},
        "end": reasoning.closes,
    }
    reasoned: JsonObject = {"type": "sequence", "elements": [thought, WHITE_SPACE, form]}
    # A sequence with an optional start would be shorter, but the compiler has none.
    return reasoned if reasoning.opened else either(form, reasoned)
