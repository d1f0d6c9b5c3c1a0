"""From a constraint to the one text that the engine takes: a structural tag of xgrammar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.patterns import literal
from ovchat_server.api.structural_tag import with_grammars
from ovchat_server.api.structured_output import ConstraintKind
from ovchat_server.engine.json_layout import laid_out

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


def grammar_text(constraint: Constraint, reasoning: Reasoning | None = None) -> str:
    """What an answer under `constraint` may be, reasoning first where the model reasons."""
    form = _format(constraint)
    if reasoning is not None:
        form = _after_reasoning(form, reasoning)
    return msgspec.json.encode({"type": "structural_tag", "format": form}).decode()


def _format(constraint: Constraint) -> JsonValue:
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
            return with_grammars(value)


def _after_reasoning(form: JsonValue, reasoning: Reasoning) -> JsonObject:
    thought: JsonObject = {
        "type": "tag",
        "begin": "" if reasoning.opened else reasoning.opens,
        "content": {"type": "any_text"},
        "end": reasoning.closes,
    }
    reasoned: JsonObject = {"type": "sequence", "elements": [thought, WHITE_SPACE, form]}
    # A sequence with an optional start would be shorter, but the compiler has none.
    return reasoned if reasoning.opened else {"type": "or", "elements": [form, reasoned]}
